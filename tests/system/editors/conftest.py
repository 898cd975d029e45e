"""One language server a worker: each file is opened in it once."""

from collections.abc import Iterator

import pytest

from tests.system.editors.language_server import LanguageServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    """It knows our schema from the modelines of the files that are opened, and from nowhere else."""
    with LanguageServer(tmp_path_factory.mktemp("language-server")) as running:
        yield running
