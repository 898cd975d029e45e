"""The hook for pre-commit, in a repository of a user: a mistake is not committed.

pre-commit comes from wherever pip gets packages on this machine, and installs this tree as it installs any
hook: from a commit of a repository.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.support.captured import captured
from tests.system.packaging.builds import COMMAND_S, clean_environ, copy_tree, run

PRE_COMMIT = "pre-commit==4.6.0"
ID = "consul-supervisor-check"
GOOD = "elections: {app: {session: {lock_delay: 45s}, on_lose: [{shell: systemctl stop app}]}}\n"
BAD = """\
elections:
  app:
    session: {ttl: 10}
    on_loose:
      - shell: systemctl stop app
"""
# Nothing of a user's own git settings applies: no signature, no template, no hook.
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
WHO = {
    f"GIT_{role}_{what}": "user@example.net" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


class Repository:
    """A user's repository in which pre-commit is installed; ``product`` is our commit that it uses."""

    def __init__(self, folder: Path, environ: Mapping[str, str], product: tuple[Path, str]) -> None:
        self.folder = folder
        self._environ = environ
        self._product = product
        folder.mkdir()
        self.git("init", "--quiet")
        self.hook({})
        run("pre-commit", "install", cwd=folder, environ=environ)

    def git(self, *arguments: str) -> str:
        return run("git", *arguments, cwd=self.folder, environ=self._environ)

    def hook(self, settings: Mapping[str, object]) -> None:
        path, commit = self._product
        repo = {"repo": str(path), "rev": commit, "hooks": [{"id": ID, **settings}]}
        self.write(".pre-commit-config.yaml", yaml.safe_dump({"repos": [repo]}))

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", name)

    def commit(self) -> subprocess.CompletedProcess[str]:
        """Make a commit and return its result, with the output of git and the hook on standard error."""
        return captured(
            ["git", "commit", "--message", "change"],
            cwd=self.folder,
            env={**clean_environ(), **self._environ},
            timeout=COMMAND_S,
        )

    def commits(self) -> int:
        return int(self.git("rev-list", "--all", "--count"))


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment with pre-commit on PATH and a folder of its own for its installations."""
    folder = tmp_path_factory.mktemp("pre-commit")
    run(sys.executable, "-m", "venv", str(folder / "venv"), cwd=folder)
    run(str(folder / "venv" / "bin" / "pip"), "install", "--quiet", PRE_COMMIT, cwd=folder)
    path = f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}"
    return {**GIT, **WHO, "PATH": path, "PRE_COMMIT_HOME": str(folder / "home"), "PRE_COMMIT_COLOR": "never"}


@pytest.fixture(scope="module")
def product(environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return this tree, uncommitted changes included, as a commit of a repository."""
    folder = copy_tree(tmp_path_factory.mktemp("product") / "clone")

    def git(arguments: Sequence[str]) -> str:
        return run("git", *arguments, cwd=folder, environ=environ)

    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        git(arguments)
    return folder, git(["rev-parse", "HEAD"]).strip()


@pytest.fixture
def repository(environ: dict[str, str], product: tuple[Path, str], tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository", environ, product)


def test_a_file_without_a_mistake_is_committed(repository: Repository) -> None:
    repository.write("files/consul-supervisor/app.yaml", GOOD)
    said = repository.commit()
    assert (said.returncode, repository.commits()) == (0, 1), said
    assert "Passed" in said.stderr


def test_mistakes_stop_a_commit_and_all_are_reported_with_their_places(repository: Repository) -> None:
    """The mistakes of each file are reported, independently of the other files."""
    one, other, good = (f"files/consul-supervisor/{name}.yaml" for name in ("one", "the other", "good"))
    repository.write(one, BAD)
    repository.write(other, BAD)
    repository.write(good, GOOD)
    said = repository.commit()
    assert (said.returncode, repository.commits()) == (1, 0), said
    assert "Failed" in said.stderr and "exit code: 78" in said.stderr
    told = [line for line in said.stderr.splitlines() if line.startswith("files/")]
    assert f"{good}: valid, 1 election, no warnings" in told
    places = [line.split(" elections")[0] for line in told if "valid" not in line]
    assert sorted(places) == [f"{one}:3:20:", f"{one}:4:5:", f"{other}:3:20:", f"{other}:4:5:"]
    repository.write(one, GOOD)
    repository.write(other, GOOD)
    assert repository.commit().returncode == 0


def test_the_hook_leaves_other_files_alone(repository: Repository) -> None:
    repository.write("compose.yaml", BAD)
    repository.write("files/consul-supervisor/deeper/values.yaml", BAD)
    repository.write("files/consul-supervisor/README.md", BAD)
    said = repository.commit()
    assert said.returncode == 0 and "no files to check" in said.stderr, said


@pytest.mark.parametrize(
    "name", ["consul-supervisor.yaml", "nodes/consul-supervisor-app.yml", "consul-supervisor.d/a.yml"]
)
def test_the_hook_finds_a_configuration_by_its_name_or_folder(repository: Repository, name: str) -> None:
    repository.write(name, BAD)
    said = repository.commit()
    assert said.returncode == 1 and f"{name}:3:20:" in said.stderr, said


def test_drop_ins_are_checked_as_a_folder_when_the_user_says_so(repository: Repository) -> None:
    """Each file is valid by itself, but together they are not."""
    repository.hook({"args": ["nodes"], "pass_filenames": False, "files": "^nodes/"})
    repository.write("nodes/a.yaml", GOOD)
    repository.write("nodes/b.yaml", GOOD)
    said = repository.commit()
    assert said.returncode == 1 and "nodes/b.yaml:1:13: elections.app:" in said.stderr, said
