"""The language server of a worker. Each file is opened in it only once."""

from collections.abc import Iterator

import pytest

from tests.system.editors.language_server import LanguageServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    """Yield a language server that knows our schema only from the modelines of the files that are opened."""
    with LanguageServer(tmp_path_factory.mktemp("language-server")) as running:
        yield running
