"""Every refusal: its place, its path, the fault and the remedy, for all faults of a file at once."""

from pathlib import Path

import pytest

from supervisor.config import ConfigError, Problem, load

TABLE = (Path(__file__).parent / "bad_files.txt").read_text(encoding="utf-8")
ENVIRON = {
    "SECRET": "hunter2",
    "SPACED": "hunter2 x",
    "TWO_LINES": "hunter2\nb",
    "REFERENCE": "${SECRET}",
    "EMPTY": "",
}
FILE = "consul.yaml"
NO_TEXT = "cannot be filled in: IT is not UTF-8 or has control characters"


def cases() -> list[tuple[str, str, list[str]]]:
    """Return title, text of the file and expected problems of each entry of the table."""
    found = []
    for entry in TABLE.split("\n### ")[1:]:
        title, *lines = entry.splitlines()
        text = "\n".join(line for line in lines if not line.startswith(">>> "))
        expected = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
        found.append((title, text + "\n", expected))
    return found


def refusals(path: Path, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load(path, ENVIRON if environ is None else environ, "node1")
    assert str(refused.value) == "\n".join(map(str, refused.value.problems))
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("text", "expected"), [case[1:] for case in cases()], ids=[case[0] for case in cases()]
)
def test_a_bad_file_is_refused_with_place_path_and_remedy(
    text: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(FILE).write_text(text)
    problems = refusals(Path(FILE))
    assert [problem.removeprefix(FILE).lstrip(": ") for problem in problems] == expected
    assert "hunter2" not in "".join(problems)


@pytest.mark.long
@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        (b"elections:\n  app: {key: \xff}\n", ":2:14", "not UTF-8"),
        (b"a: 1\nb: \x07\n", ":2:4", 'control character "\\x07"'),
        ("elections: {app: {}}\n".encode("utf-16"), ":1:1", "not UTF-8"),
        ("elections: {app: {}}\n".encode("utf-16-le"), ":1:2", "save it as UTF-8"),
        (b"elections: {}\n#" + b"x" * 1024 * 1024, "", "larger than 1 MiB"),
        (b"a: [" + b"1," * 100_001 + b"]", ":1:200001", "more than 100000 values"),
    ],
)
def test_a_file_that_is_no_bounded_text_is_refused(
    content: bytes, place: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    (problem,) = refusals(file)
    assert problem.startswith(f"{file}{place}: ")
    assert words in problem


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(b"\xef\xbb\xbfelections: {app: {}}\n")
    assert load(file, {}, "node1").items[0].name == "app"


def test_a_path_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    assert refusals(missing) == [f"{missing}: cannot be read: No such file or directory"]
    assert refusals(Path("/dev/zero")) == ["/dev/zero: cannot be read: it is not a regular file"]
    assert refusals(Path("a\0b")) == ["a\0b: cannot be read: no file can have this path"]


def test_the_number_of_reported_problems_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("elections: {app: {}}\n" + "".join(f"key{n}: 1\n" for n in range(1100)))
    assert len(refusals(file)) == 1000


@pytest.mark.parametrize(
    ("value", "content", "problem"),
    [
        ("${IT}" * 20, "x" * 100_000, "more than 1048576 characters in all"),
        ("${IT}", "x" * 65_537, "elections.app.value: cannot be 65537 bytes long: at most 65536"),
        ("${IT}", "a\x00b", NO_TEXT),
        ("${IT}", "a\x1bb", NO_TEXT),
        ("${IT}", "\udcff", NO_TEXT),
    ],
    ids=["too long a text", "too long for the environment of a hook", "NUL", "escape", "not UTF-8"],
)
def test_a_variable_that_a_text_cannot_hold_is_refused(
    value: str, content: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f'elections: {{app: {{value: "{value}"}}}}\n')
    (refusal,) = refusals(file, {"IT": content})
    assert refusal.endswith(problem)


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    hooks = ", ".join(['{shell: "true", timeout: 100ms, kill_after: 0s}'] * 33)
    file.write_text(f"elections:\n  app: {{on_change: [{hooks}]}}\n")
    assert refusals(file) == [f"{file}:2:9: elections.app.on_change: cannot have 33 entries: at most 32"]


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("cannot be set here: no such key, did you mean key?", "no such key, did you mean key?"),
        ("cannot be read as YAML: not valid: check the quotes", "check the quotes"),
        ('cannot be "a: b": quote a text that has ": " in it', 'quote a text that has ": " in it'),
        (
            "cannot end (x: y): set it, or accept (accept_overlap: true)",
            "set it, or accept (accept_overlap: true)",
        ),
        ("cannot have a key that is not text: write KEY: VALUE", "write KEY: VALUE"),
        (
            "cannot be used: it is empty; begin with elections: or semaphores:",
            "it is empty; begin with elections: or semaphores:",
        ),
        ("cannot be nested deeper than 32 levels", ""),
    ],
)
def test_the_remedy_is_the_last_part_of_the_message(message: str, remedy: str) -> None:
    assert Problem("c.yaml", 1, 1, "elections", message).remedy == remedy
