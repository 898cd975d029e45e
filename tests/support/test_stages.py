"""The choice of the stages that a change has to pass, and the report of one that fails."""

import os
from pathlib import Path

import pytest

from tests import stages
from tests.stages import Stage, planned
from tests.support.share import share_of

ROOT = Path(__file__).resolve().parents[2]
KNOWN = [Stage("a", ("core/",)), Stage("b", ("web/", "docs/x.py")), Stage("c", ("d/",)), Stage("d", ("e/",))]
KNOWN.insert(2, Stage("s", ("page/",), in_turn=False))


def chosen(files: set[str], turn: int) -> str:
    return "".join(stage.run for stage, why in planned(KNOWN, files, turn) if why)


def test_a_change_passes_what_it_touches_and_a_third_of_the_others() -> None:
    assert [chosen({"core/a.py", "docs/x.py"}, turn) for turn in range(4)] == ["abc", "abd", "ab", "abc"]
    assert [chosen(set(), turn) for turn in range(3)] == ["ad", "b", "c"]


def test_a_stage_that_is_never_in_turn_is_passed_by_what_touches_it_alone() -> None:
    assert [chosen({"page/x.html"}, turn) for turn in range(3)] == ["asd", "bs", "sc"]


def test_a_change_that_touches_many_stages_passes_their_brief_form() -> None:
    known = [Stage(str(number), ("core/",), "SHARE={turn}/2") for number in range(stages.WIDE + 1)]
    assert [stage.run for stage, _ in planned(known, {"core/a.py"}, 7)][:2] == ["0 SHARE=7/2", "1 SHARE=7/2"]
    assert [stage.run for stage, _ in planned(known[1:], {"core/a.py"}, 7)][:2] == ["1", "2"]


@pytest.mark.parametrize(("share", "kept"), [("1/3", "be"), ("5/3", "cf"), ("0/1", "abcdef")])
def test_a_share_is_every_so_many_th(share: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARE", share)
    assert "".join(share_of("abcdef")) == kept


def test_each_stage_is_a_target_and_each_of_its_paths_exists() -> None:
    targets = (ROOT / "Makefile").read_text()
    for stage in stages.stages():
        assert f"\n{stage.run.split()[0]}:" in targets
        assert [path for path in stage.paths if not list(ROOT.glob(f"{path}*"))] == []


def test_a_stage_that_fails_is_named_in_the_last_lines_and_keeps_no_other_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failure, summary = (
        "FAILED tests/x.py::test_y - AssertionError: why",
        "===== 1 failed, 6 passed in 1s =====",
    )
    said = ["seed 7", *["noise"] * 500, failure, summary]
    bad = "; ".join(f"echo '{line}'" for line in said)
    (tmp_path / "Makefile").write_text(f"bad:\n\t@{bad}; false\ngood:\n\t@echo '== 2 passed in 1s =='\n")
    monkeypatch.setattr(stages, "ROOT", tmp_path)
    monkeypatch.setattr(stages, "LOGS", tmp_path / "logs")
    monkeypatch.delitem(os.environ, "MAKEFLAGS", raising=False)
    assert stages.play([Stage("bad")], [Stage("good")]) == 1
    last = capsys.readouterr().out.splitlines()[-30:]
    for line in ("bad: seed 7", f"bad: {failure}", "8 passed, 1 failed"):
        assert line in last
    assert f"    all of it: {tmp_path}/logs/bad.log" in last and any(line.startswith("ok ") for line in last)
