"""The files that a package installs beside the modules, below ``share``.

    python -m docs.package_data FOLDER    writes the generated files to their places below the folder

They are the man pages, the completion of shells, and the unit of systemd with the examples of its drop-ins.
hatchling runs this when it builds a wheel. pyproject.toml names the libraries that the build needs for it.
The recipe of the Debian package runs it for the generated files.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

UNIT = "consul-supervisor/systemd"


def write(share: Path) -> None:
    """Write the man pages and the completion of shells to their places below this folder."""
    from docs import completion, man

    for file, text in {**man.pages(), **completion.scripts()}.items():
        (share / file).parent.mkdir(parents=True, exist_ok=True)
        (share / file).write_text(text, encoding="utf-8")


class PackageData(BuildHookInterface[Any]):
    """The hook of hatchling that makes the files and adds them to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files before the wheel is built. An editable installation gets none, because they age."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="share-")
        share = Path(self._folder.name)
        sys.path.insert(0, self.root)  # the modules of this tree and no others
        write(share)
        build_data["shared_data"] |= {str(share): "share", f"{self.root}/systemd": f"share/{UNIT}"}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the files after the wheel is built."""
        if version != "editable":
            self._folder.cleanup()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
