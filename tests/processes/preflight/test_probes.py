"""The probes: each reason why a hook cannot start, and no other fault."""

import asyncio
import os
import pwd
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from supervisor.core.settings import Command, ElectionSettings, Fence, Hook, SessionSettings, Tls, Webhook
from supervisor.daemon.preflight.needs import probes_of, tls_probes
from supervisor.daemon.preflight.probe_run import Answer, make_probes
from supervisor.daemon.preflight.probes import Fault, FileProbe, Probe, ProgramProbe
from tests.support.patience import PATIENCE_S, patient

PATH = "/usr/bin:/bin"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root looks as another user")


def probe(program: str = "true", path: str = PATH, **more: Any) -> ProgramProbe:
    return ProgramProbe(program, path, **more)


def answers(*probes: Probe, within_s: float = PATIENCE_S, strict: bool = True) -> dict[int, list[Fault]]:
    found: list[Answer] = []

    async def answered(answers: list[Answer]) -> None:
        found.extend(answers)

    asyncio.run(make_probes(probes, answered, strict=strict, within_s=within_s))
    assert sorted(index for index, _ in found) == list(range(len(probes))), "each is answered once"
    return dict(found)


def found(**more: Any) -> list[str]:
    """Return the reasons, without the remedies."""
    return [why for _, why, _ in answers(probe(**more))[0]]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "program"
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return made


def test_a_hook_that_can_start_has_no_fault(program: Path, tmp_path: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    probes = (probe(), probe(program=str(program)), probe(program="./program", cwd=str(tmp_path)))
    assert answers(*probes, probe(user=me), probe(dies_with_us=True)) == {index: [] for index in range(5)}


def test_each_reason_why_a_hook_cannot_start_is_reported(program: Path, tmp_path: Path) -> None:
    us = f"user {pwd.getpwuid(os.geteuid()).pw_name}"
    missing = str(tmp_path / "missing")
    assert found(program=missing) == [f"no such program: {missing}"]
    assert found(program="no-such") == [f"no such program: no-such is in no folder of PATH, {PATH}"]
    assert found(program=str(tmp_path)) == [f"{tmp_path} is not a program"]
    assert found(program="", path="/usr/bin:/bin") == ["/usr/bin/ is not a program"]
    assert found(cwd=missing) == [f"cannot enter {missing}: No such file or directory"]
    assert found(cwd=str(program)) == [f"cannot enter {program}: Not a directory"]
    assert found(user="no-such-user") == ["unknown user 'no-such-user'"]
    assert found(group="no-such-group") == ["unknown group 'no-such-group'"]
    assert found(program=missing, user="no-such-user") == [
        "unknown user 'no-such-user'",
        f"no such program: {missing}",
    ]
    program.write_text("#!/no/such/python\n")
    assert found(program=str(program)) == [
        f"{program} is run by /no/such/python, which cannot be executed here"
    ]
    program.chmod(0o644)
    assert found(program=str(program)) == [f"{us} cannot execute {program}"]
    assert found(program="program", path=f"{PATH}:{tmp_path}") == [f"{us} cannot execute {program}"]


@as_root
def test_a_program_is_checked_as_the_user_of_its_hook() -> None:
    """Only its own user may enter pytest's folder, so this test has another one."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        script, inner = folder / "script", folder / "inner"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o700)
        inner.mkdir(mode=0o700)
        assert found(program=str(script)) == []
        assert found(program=str(script), user="nobody") == [f"user nobody cannot execute {script}"]
        assert found(cwd=str(inner), user="nobody") == [f"user nobody may not enter {inner}"]
        script.chmod(0o705)
        assert found(program=str(script), user="nobody") == []


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    missing, there = str(tmp_path / "missing"), tmp_path / "there"
    there.write_text("secret")
    faults = answers(*(FileProbe("secret_file", str(name)) for name in (missing, there, tmp_path)))
    assert [*faults[0][0]][:2] == ["secret_file", f"cannot read {missing}: No such file or directory"]
    assert faults[1] == [] and faults[2][0][1] == f"cannot read {tmp_path}: it is not a regular file"


def test_a_folder_of_authorities_is_checked_as_a_folder(tmp_path: Path) -> None:
    missing, file = str(tmp_path / "missing"), tmp_path / "file"
    file.touch()
    probes = [each for name in (missing, str(file), str(tmp_path)) for each in tls_probes(Tls(ca_path=name))]
    faults = answers(*probes)
    why = f"cannot read {missing}: No such file or directory"
    assert [*faults[0][0]] == ["CONSUL_CAPATH", why, "make it, or correct CONSUL_CAPATH"]
    assert faults[1][0][1] == f"cannot read {file}: it is not a folder" and faults[2] == []


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ('/opt/stop --fast "$X" >/dev/null 2>&1 && sync;\n', "/opt/stop"),
        ("  ./stop -x\n", "./stop"),
        ("./stop | logger", ""),
        ("./stop\nexit 0", ""),
        ("./notify & ./start", ""),
        ("/opt/stop || true", ""),
        ("$HOME/stop", ""),
        ("'/opt/stop'", ""),
        ("exec /opt/stop", ""),
        ("A=/opt/x stop", ""),
        ("A=b/c", ""),
        ("/opt/stop;true", ""),
        ("~/stop", ""),
    ],
)
def test_a_program_that_a_shell_begins_with_is_looked_at(text: str, script: str) -> None:
    hook = Hook("h", Command(("/bin/sh", "-c", text)), 1.0)
    item = ElectionSettings("a", "k", b"", SessionSettings("n"), on_lose=(hook,))
    assert [probe.script for probe in probes_of((item,), {}).probes if isinstance(probe, ProgramProbe)] == [
        script
    ]


def test_a_shell_starts_what_it_would_take_for_a_text(program: Path) -> None:
    program.write_text("exit 0\n")
    missing = str(program.with_name("missing"))
    assert (
        found(program="/bin/sh", script=str(program)) == [] == found(program=str(program), dies_with_us=True)
    )
    assert found(program=str(program)) == [f"{program} does not begin with #! and the program that runs it"]
    assert found(program="/bin/sh", script=missing) == [f"no such program: {missing}"]


def test_a_probe_that_hangs_does_not_delay_the_other_probes(
    tmp_path: Path, hangs: Callable[[Path], None]
) -> None:
    scripts = [tmp_path / name for name in ("one", "two")]
    for script in scripts:
        hangs(script)
    within_s = round(patient(1.5), 1)
    faults = answers(
        *(probe(program=str(script)) for script in scripts), probe(), probe(program="/x"), within_s=within_s
    )
    for index, script in enumerate(scripts):
        ((_, why, remedy),) = faults[index]
        assert why == f"{script} did not answer within {within_s:g} s" and remedy
    assert faults[2] == [] and faults[3][0][1] == "no such program: /x"


def test_a_process_that_is_slow_to_end_beside_a_probe_that_hangs_breaks_nothing(
    tmp_path: Path, hangs: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine short of time ends a process long after the process has told its last answer."""
    script, end = tmp_path / "one", os._exit
    hangs(script)

    def slow_end(code: int) -> None:
        time.sleep(1.0)
        end(code)

    monkeypatch.setattr(os, "_exit", slow_end)
    faults = answers(probe(program=str(script)), probe(), within_s=1.5)
    assert "did not answer" in faults[0][0][1] and faults[1] == []


def test_equal_probes_are_made_once_and_hold_no_secret() -> None:
    """1,000 items with the same programs need only a few probes."""
    hooks = (
        Hook("a", Command(("/bin/sh", "-c", "x"), env=(("SECRET", "s3cr3t"),)), 1.0),
        Hook("b", Webhook("https://s3cr3t/", headers=(("a", "s3cr3t"),), tls=Tls(ca_file="/ca")), 1.0),
    )
    items = tuple(
        ElectionSettings(f"n{number}", "k", b"s3cr3t", SessionSettings("n"), on_lose=hooks)
        for number in range(1000)
    )
    wanted = probes_of(items, {"PATH": PATH, "CONSUL_HTTP_TOKEN": "s3cr3t"})
    assert len(wanted.probes) == 2 and len(wanted.needs) == 2000
    assert "s3cr3t" not in str(wanted.probes)


def test_hooks_of_observers_and_on_change_do_not_keep_a_node_from_contending() -> None:
    hook = Hook("h", Command(("true",)), 1.0)
    seen = ElectionSettings("seen", "k", b"", SessionSettings("n"), contend=False, on_change=(hook,))
    held = ElectionSettings("held", "h", b"", SessionSettings("n"), on_change=(hook,), on_lose=(hook,))
    needs = probes_of((seen, held), {}).needs
    assert [(need.item, need.path[2], need.needed) for need in needs] == [
        ("seen", "on_change", False),
        ("held", "on_lose", True),
        ("held", "on_change", False),
    ]


def test_a_fence_that_cannot_start_keeps_a_node_from_contending_only_where_it_is_required() -> None:
    fence = Fence(Hook("fence", Command(("true",)), 1.0))
    spared = ElectionSettings("spared", "k", b"", SessionSettings("n"), fence=fence)
    bound = replace(spared, name="bound", fence=replace(fence, required=True))
    needs = probes_of((spared, bound), {}).needs
    assert [(need.item, need.path[2], need.needed) for need in needs] == [
        ("spared", "fence", False),
        ("bound", "fence", True),
    ]
