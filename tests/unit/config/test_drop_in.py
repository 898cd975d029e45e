"""A lone drop-in for a folder: its last version does not clash with it, and faults elsewhere do not refuse
it.
"""

import os
from pathlib import Path

import pytest

from supervisor.config import ConfigError, drop_in
from supervisor.config.drop_in import Placed
from tests.unit.config.test_directory import write


class Folder:
    """The folder of drop-ins, and a temporary file as configuration management writes it."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path / "conf.d"
        self.path.mkdir()
        self.file = tmp_path / "ansible-tmp-1" / "source"
        self.file.parent.mkdir()

    def check(self, text: str, name: str | None = None) -> Placed:
        self.file.write_text(text)
        return drop_in.load(drop_in.DropIn(self.file, self.path, name), {}, "node1")

    def refusals(self, text: str, name: str | None = None) -> list[str]:
        with pytest.raises(ConfigError) as refused:
            self.check(text, name)
        said = [str(problem).replace(str(self.file), "NEW") for problem in refused.value.problems]
        return [each.replace(f"{self.path}{os.sep}", "").replace(str(self.path), "DIR") for each in said]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def names(placed: Placed) -> list[str]:
    assert placed.config is not None
    return [item.name for item in placed.config.items]


def test_a_new_drop_in_is_added_to_the_folder(folder: Folder) -> None:
    write(folder.path, base="defaults: {session: {lock_delay: 44s}}", a="elections: {one: {}}")
    placed = folder.check("elections: {two: {}}")
    assert names(placed) == ["one", "two"] and placed.replaces is None
    assert placed.config is not None and placed.config.items[1].session.lock_delay_s == 44.0


@pytest.mark.parametrize(
    "changed",
    [
        "elections: {app: {contend: false}}",
        "elections: {renamed: {key: service/hdfs/leader}}",
        "elections: {app: {}, more: {}}",
        "semaphores: {app: {limit: 2}}",
        "log: {level: debug}\nelections: {other: {}}",
    ],
    ids=["changed", "renamed", "extended", "other-kind", "by-section"],
)
def test_a_drop_in_does_not_clash_with_its_last_version(folder: Folder, changed: str) -> None:
    write(folder.path, a="elections: {one: {}}", b="elections: {app: {key: service/hdfs/leader}}\nlog: {}")
    placed = folder.check(changed)
    assert placed.replaces == folder.path / "b.yaml"
    assert names(placed)[0] == "one" and placed.standing == ()


def test_the_given_name_decides_which_drop_in_is_replaced(folder: Folder) -> None:
    write(folder.path, a="elections: {one: {}}", b="elections: {two: {}}")
    placed = folder.check("elections: {three: {}}", "b.yaml")
    assert placed.replaces == folder.path / "b.yaml" and names(placed) == ["one", "three"]


def test_a_drop_in_with_a_new_name_is_added_and_may_repeat_nothing(folder: Folder) -> None:
    write(folder.path, a="elections: {one: {}}")
    assert folder.check("elections: {two: {}}", "b.yaml").replaces is None
    (refused,) = folder.refusals("elections: {one: {}}", "b.yaml")
    assert refused == "NEW:1:13: elections.one: cannot be set twice: a.yaml:1:13 sets it, remove one"


def test_a_drop_in_replaces_the_file_of_its_own_name(folder: Folder) -> None:
    write(folder.path, a="elections: {one: {}}", b="elections: {two: {}}")
    folder.file = folder.file.parent / "a.yaml"
    assert names(folder.check("elections: {two2: {}}")) == ["two2", "two"]
    folder.file = folder.path / "b.yaml"
    assert names(folder.check("elections: {three: {}}")) == ["one", "three"]


def test_a_drop_in_that_repeats_items_of_two_files_is_refused(folder: Folder) -> None:
    write(folder.path, a="elections: {one: {}}", b="elections: {two: {}, three: {}}")
    (refused,) = folder.refusals("elections: {one: {}, two: {}, three: {}}")
    assert refused == "NEW:1:13: elections.one: cannot be set twice: a.yaml:1:13 sets it, remove one"


def test_a_drop_in_is_checked_together_with_the_folder(folder: Folder) -> None:
    """A default of the drop-in may be the cause when an election of another file has no room left."""
    write(folder.path, a="elections: {one: {on_lose: [{shell: a, timeout: 20s}]}}")
    (refused,) = folder.refusals("defaults: {session: {lock_delay: 10s}}")
    assert refused.startswith("a.yaml:1:13: elections.one.session.lock_delay: cannot end on_lose")
    (refused,) = folder.refusals("elections: {two: {key: service/one/leader}}", "b.yaml")
    assert "cannot share its key with elections.one" in refused


def test_faults_of_other_drop_ins_do_not_refuse_a_new_one(folder: Folder) -> None:
    """Otherwise two broken files could never be mended one after the other."""
    write(folder.path, a="elections: {one: {keey: 1}}", b="elections: {two: {")
    placed = folder.check("elections: {two: {}}", "b.yaml")
    assert placed.config is None
    assert [problem.path for problem in placed.standing] == ["elections.one.keey"]
    assert len(folder.refusals("elections: {two: {keey: 1}}", "b.yaml")) == 1


def test_the_first_files_of_a_new_folder_may_be_without_elections(folder: Folder) -> None:
    placed = folder.check("consul: {address: 'http://127.0.0.1:8500'}")
    assert placed.config is None and len(placed.standing) == 1
    write(folder.path, a="log: {level: debug}")
    assert folder.check("consul: {address: 'http://127.0.0.1:8500'}").config is None
    write(folder.path, a="elections: {one: {}}")
    (refused,) = folder.refusals("log: {level: debug}", "a.yaml")
    assert refused == "DIR: cannot be used: it has no elections and no semaphores, declare at least one"


def test_a_missing_folder_or_drop_in_is_a_fault(folder: Folder, tmp_path: Path) -> None:
    for file, where in ((tmp_path / "none", folder.path), (folder.path, tmp_path / "none")):
        with pytest.raises(ConfigError) as refused:
            drop_in.load(drop_in.DropIn(file, where), {}, "node1")
        assert str(tmp_path / "none") in str(refused.value)
