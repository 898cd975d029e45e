"""The shipped files that the tests of this folder install or inspect, built once for each worker."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.system.packaging.builds import build, copy_tree, run


@dataclass(frozen=True)
class Built:
    """The files that are shipped, and the tree from which they were built."""

    tree: Path
    wheel: Path
    sdist: Path

    def wheel_of_sdist(self, folder: Path) -> Path:
        """Build a wheel from the unpacked sdist alone."""
        folder.mkdir()
        run("tar", "-xf", str(self.sdist), cwd=folder)
        (unpacked,) = folder.iterdir()
        return build(unpacked, folder / "wheel", "wheel")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    tree = copy_tree(folder / "tree")
    return Built(tree, build(tree, folder / "wheel", "wheel"), build(tree, folder / "sdist", "sdist"))
