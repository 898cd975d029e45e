"""What a package index shows: the project's addresses, and the README with links that work there.

hatchling runs this when it builds the package. The line ``repository`` in pyproject.toml is the only
source of addresses, in the form of GitHub: files are below ``/blob/HEAD/``, faults below ``/issues``.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class PackageIndex(MetadataHookInterface):
    """The hook of hatchling that fills in the fields ``urls`` and ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put both fields into the metadata of the project."""
        repository = self.config["repository"]
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = urls(repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(text, repository)}


def urls(repository: str) -> dict[str, str]:
    """Return the project's addresses, by labels that package indexes know."""
    return {
        "Homepage": repository,
        "Documentation": file_url(repository, "docs/README.md"),
        "Changelog": file_url(repository, "CHANGELOG.md"),
        "Issues": f"{repository}/issues",
    }


def with_absolute_links(text: str, repository: str) -> str:
    """Return the Markdown text with each link to a file of the repository made absolute."""
    return re.sub(r"\]\((?!https?://)([^)\s]+)\)", lambda link: f"]({file_url(repository, link[1])})", text)


def file_url(repository: str, path: str) -> str:
    """Return the address of a file of the repository."""
    return f"{repository}/blob/HEAD/{path}"
