"""A folder of drop-ins: merged in the order of names, no key set twice, every fault with its file."""

import os
from pathlib import Path

import pytest

from supervisor.config import ConfigError, load


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


def refusals(folder: Path) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load(folder, {}, "node1")
    return [str(problem).replace(f"{folder}{os.sep}", "") for problem in refused.value.problems]


def test_elections_are_united_in_the_order_of_file_names(tmp_path: Path) -> None:
    write(tmp_path, b="elections: {two: {}}", a="elections: {one: {}, zero: {}}", base="log: {level: debug}")
    config = load(tmp_path, {}, "node1")
    assert [election.name for election in config.items] == ["one", "zero", "two"]
    assert config.log.level == "debug"


def test_defaults_of_one_file_apply_to_the_elections_of_all_files(tmp_path: Path) -> None:
    write(tmp_path, a="elections: {one: {}}", z="defaults: {session: {lock_delay: 40s}}")
    assert load(tmp_path, {}, "node1").items[0].session.lock_delay_s == 40.0


def test_files_with_another_suffix_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, a="elections: {one: {}}")
    (tmp_path / "b.yml").write_text("elections: {two: {}}")
    for name in ("c.yaml.bak", ".d.yaml", "README", ".#a.yaml"):
        (tmp_path / name).write_text("not: [yaml")
    (tmp_path / "sub").mkdir()
    assert [election.name for election in load(tmp_path, {}, "node1").items] == ["one", "two"]


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        (
            "elections:\n  app: {}\n",
            "elections:\n  other: {}\n  app: {}\n",
            "3:3: elections.app: cannot be set twice: a.yaml:2:3 sets it, remove one",
        ),
        (
            "elections:\n  app: {key: x}\n",
            "elections:\n  other: {key: x}\n",
            "2:16: elections.other.key: cannot share its key with elections.app (a.yaml:2:14):"
            " give each its own",
        ),
        (
            "log: {level: info}\nelections: {app: {}}\n",
            "log: {format: json}\n",
            "1:1: log: cannot be set twice: a.yaml:1:1 sets it, remove one",
        ),
    ],
    ids=["name", "key", "section"],
)
def test_what_two_files_set_is_refused_with_both_places(tmp_path: Path, a: str, b: str, problem: str) -> None:
    write(tmp_path, a=a, b=b)
    assert refusals(tmp_path) == [f"b.yaml:{problem}"]


def test_every_file_shows_all_its_faults(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="elections: {app: {key: 1}}",
        b="elections: [1]",
        c="elections: {x: {contend: {{",
        d="- 1",
        e="elections: {y: {contend: 2}}",
        f="log: *it",
    )
    assert [problem.split(": ")[0] for problem in refusals(tmp_path)] == [
        "a.yaml:1:24",
        "b.yaml:1:1",
        "c.yaml:1:27",
        "d.yaml:1:1",
        "e.yaml:1:26",
        "f.yaml:1:6",
    ]


def test_a_folder_without_files_or_without_items_is_refused(tmp_path: Path) -> None:
    assert refusals(tmp_path) == [f"{tmp_path}: cannot be used: the folder has no file *.yaml or *.yml"]
    write(tmp_path, a="log: {level: info}")
    assert refusals(tmp_path) == [
        f"{tmp_path}: cannot be used: it has no elections and no semaphores, declare at least one"
    ]


def test_a_folder_fifo_or_dangling_link_among_drop_ins_is_refused_and_does_not_block(tmp_path: Path) -> None:
    write(tmp_path, a="elections: {app: {}}")
    (tmp_path / "b.yaml").mkdir()
    os.mkfifo(tmp_path / "c.yaml")
    (tmp_path / "d.yaml").symlink_to("nowhere")
    assert refusals(tmp_path) == [
        "b.yaml: cannot be read: it is not a regular file",
        "c.yaml: cannot be read: it is not a regular file",
        "d.yaml: cannot be read: No such file or directory",
    ]


def test_the_size_of_all_drop_ins_together_is_bounded(tmp_path: Path) -> None:
    padding = "#" + "x" * (1024 * 1024 - 100) + "\n"
    write(tmp_path, **{name: f"elections: {{{name}: {{}}}}\n{padding}" for name in "abc"})
    assert refusals(tmp_path) == ["c.yaml: cannot be read: the folder's files are larger than 2 MiB together"]


def test_the_number_of_drop_ins_is_bounded(tmp_path: Path) -> None:
    write(tmp_path, **{f"a{n}": f"elections: {{a{n}: {{}}}}" for n in range(513)})
    assert refusals(tmp_path) == [f"{tmp_path}: cannot be used: it has 513 files, at most 512 are read"]
