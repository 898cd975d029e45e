"""The page of a package index comes from pyproject.toml, and its links lead into the repository."""

import re
import tomllib

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from docs import package_index
from tests.support.pages import README, REPOSITORY, ROOT


def test_the_built_metadata_has_the_addresses_and_the_readme() -> None:
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    assert core.urls == package_index.urls(REPOSITORY)
    assert core.readme == package_index.with_absolute_links(README.read_text(), REPOSITORY)
    assert core.readme_content_type == "text/markdown"


def test_the_metadata_links_to_issues_documentation_and_changes() -> None:
    urls = package_index.urls("https://example.net/project")
    assert urls["Issues"] == "https://example.net/project/issues"
    assert urls["Documentation"] == "https://example.net/project/blob/HEAD/docs/README.md"
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}


def test_the_repository_is_named_in_one_line() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    assert [line for line in lines if REPOSITORY in line] == [f'repository = "{REPOSITORY}"']
    assert not REPOSITORY.endswith("/") and REPOSITORY.startswith("https://")


def test_every_link_of_the_readme_works_on_a_package_index() -> None:
    before = re.findall(r"\]\(([^)\s]+)\)", README.read_text())
    after = re.findall(r"\]\(([^)\s]+)\)", package_index.with_absolute_links(README.read_text(), REPOSITORY))
    assert len(after) == len(before) > 20
    for link, absolute in zip(before, after, strict=True):
        if link.startswith("https://"):
            assert absolute == link
        else:
            assert absolute == f"{REPOSITORY}/blob/HEAD/{link}"
            assert not link.startswith("#"), "an index makes no anchors of headings"
    assert not re.search(r"!\[|<img|^\[[^]]+\]:", README.read_text(), re.MULTILINE), "not made absolute"


def test_each_place_that_names_a_release_names_the_newest_of_the_changelog() -> None:
    """A build is named by tag and commit, but for one without both."""
    released = re.search(
        r"^## \[(\d\S*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert released is not None
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    assert hatch["version"]["fallback-version"] == f"{released[1]}.dev0"
    assert f", tag: v{released[1]}.dev0+g$" in (ROOT / ".git_archival.txt").read_text()
    assert f"\nversion: {released[1]}\n" in (ROOT / "examples" / "ansible" / "galaxy.yml").read_text()
