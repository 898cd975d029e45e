"""A build is named by the newest tag and the commit, also where there is no tag, and where git is not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.packaging.builds import build, copy_tree, run

UNTAGGED = "0.3.0.dev0"
FREE = {"SETUPTOOLS_SCM_PRETEND_VERSION": ""}  # what a test usually builds has the version of what it runs
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


class Clone:
    """A clone of this tree with two commits and no tag."""

    def __init__(self, folder: Path) -> None:
        self.tree = copy_tree(folder / "clone")
        self.git("init", "-q")
        self.commit()
        self.commit()

    def git(self, *arguments: str) -> str:
        return run(*GIT, *arguments, cwd=self.tree).strip()

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "--message", "change")

    @property
    def commit_id(self) -> str:
        return self.git("rev-parse", "HEAD")

    def archive(self, folder: Path) -> Path:
        """Unpack what a forge offers as the archive of this commit, which has no history."""
        folder.mkdir()
        run("sh", "-euc", f"git archive HEAD | tar -x -C {folder}", cwd=self.tree)
        return folder


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def version(tree: Path) -> str:
    return run(sys.executable, "-m", "hatchling", "version", cwd=tree, environ=FREE).strip()


def test_each_commit_has_a_name_of_its_own_before_and_after_a_tag(clone: Clone) -> None:
    assert version(clone.tree) == f"0.3.0.dev2+g{clone.commit_id[:9]}"
    (clone.tree / "README.md").write_text("changed")
    assert re.fullmatch(rf"0\.3\.0\.dev2\+g{clone.commit_id[:9]}\.d\d{{8}}", version(clone.tree))
    clone.commit()
    clone.git("tag", "v0.3.0")
    assert version(clone.tree) == "0.3.0"
    clone.commit()
    assert version(clone.tree) == f"0.3.1.dev1+g{clone.commit_id[:9]}"


def test_an_archive_and_a_tree_without_git_have_a_version(clone: Clone, tmp_path: Path) -> None:
    untagged = version(clone.archive(tmp_path / "untagged"))
    assert untagged.startswith(f"{UNTAGGED}+g") and clone.commit_id.startswith(untagged.partition("+g")[2])
    clone.git("tag", "v0.3.0")
    clone.commit()
    tagged = version(clone.archive(tmp_path / "tagged"))
    assert tagged.startswith("0.3.1.dev1+g") and clone.commit_id.startswith(tagged.partition("+g")[2])
    assert version(copy_tree(tmp_path / "copy")) == UNTAGGED


def test_an_sdist_keeps_its_version_and_what_is_built_of_it_shows_that(clone: Clone, tmp_path: Path) -> None:
    sdist = build(clone.tree, tmp_path / "sdist", "sdist", FREE)
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path / "unpacked"], check=True)
    (tree,) = (tmp_path / "unpacked").iterdir()
    assert version(tree) == f"0.3.0.dev2+g{clone.commit_id[:9]}"
    wheel = build(tree, tmp_path / "wheel", "wheel", FREE)
    shown = run(
        sys.executable, "-m", "supervisor", "--version", cwd=tmp_path, environ={"PYTHONPATH": str(wheel)}
    )
    assert shown == f"consul-supervisor {version(tree)}\n"
