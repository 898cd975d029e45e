"""``check`` as scripts use it: JSON, the verdict and the exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.supervisor import command

OK, USAGE, CONFIGURATION = 0, 2, 78
PLACE = {"file", "line", "column", "path", "message", "remedy"}


def checked(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = command("check", *arguments, "--json")
    assert done.stderr == "", done.stderr
    return done.returncode, json.loads(done.stdout)


# --- JSON ----------------------------------------------------------------------------------------


def test_check_json_has_every_error_with_place_path_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("elections:\n  app: {keey: a}\n  other: {session: {ttl: 10}}\n")
    code, report = checked(str(file))
    assert code == CONFIGURATION and report["valid"] is False and report["items"] == []
    first, second = report["errors"]
    assert first == {
        "file": str(file),
        "line": 2,
        "column": 9,
        "path": "elections.app.keey",
        "message": "cannot be set here: no such key, did you mean key?",
        "remedy": "no such key, did you mean key?",
    }
    assert (second["line"], second["path"]) == (3, "elections.other.session.ttl")


def test_check_json_has_the_figures_and_warnings_of_a_valid_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "elections:\n"
        "  app: {session: {ttl: 5s, lock_delay: 45s}, acquire_delay: 2s, on_lose: [{shell: a}]}\n"
        "  seen: {contend: false}\n"
        "semaphores: {rebuild: {limit: 3}}\n"
    )
    code, report = checked(str(file))
    assert (code, report["valid"], report["errors"], report["connect"]) == (OK, True, [], None)
    assert [(warning["path"], set(warning) == PLACE) for warning in report["warnings"]] == [
        ("elections.app.session.ttl", True)
    ]
    app, seen, rebuild = report["items"]
    assert app["lease"] | {"silence_s": 0, "cut_off_s": 0, "interval_s": 0, "exchange_s": 0} == {
        "guard": "lock_delay",
        "guard_s": 45.0,
        "ttl_s": 5.0,
        "margin_s": 2.25,
        "lose_time_s": 6.0,
        "room_s": 36.75,
        "interval_s": 0,
        "exchange_s": 0,
        "silence_s": 0,
        "cut_off_s": 0,
        "failover_s": 57.0,
        "acquire_delay_s": 2.0,
        "busy_s": 0.0,
        "key_delay_s": 45.0,
        "wait_s": 0.0,
        "asked_s": 45.0,
        "belief_s": 36.75,
        "lose_terms": [{"what": "on_lose[0]", "length_s": 6.0}],
    }
    assert seen == {
        "name": "seen",
        "kind": "election",
        "key": "service/seen/leader",
        "contend": False,
        "lease": None,
    }
    assert (rebuild["key"], rebuild["lease"]["guard"]) == ("service/rebuild/.lock", "prune_delay")


def test_check_json_has_one_shape_for_valid_and_invalid_files(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    shapes = []
    for text in ("elections: {app: {}}", "elections: {app: 1}"):
        file.write_text(text)
        shapes.append(list(checked(str(file))[1]))
    assert shapes[0] == shapes[1] == ["version", "valid", "errors", "warnings", "items", "connect"]


# --- the verdict ---------------------------------------------------------------------------------


def test_the_last_line_is_the_verdict_and_quiet_prints_no_more(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "elections: {app: {session: {ttl: 5s, lock_delay: 45s}}}\nsemaphores: {some: {limit: 2}}\n"
    )
    verdict = f"{file}: valid, 1 election, 1 semaphore, 1 warning"
    *figures, last = command("check", str(file)).stdout.splitlines()
    assert last == verdict and figures[-1] == "" and len(figures) > 10
    assert command("check", "--quiet", str(file)).stdout == f"{verdict}\n"


def test_quiet_and_json_exclude_each_other(tmp_path: Path) -> None:
    done = command("check", "--quiet", "--json", str(tmp_path))
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "cannot use --quiet with --json" in done.stderr


# --- several configurations ----------------------------------------------------------------------


def test_several_files_are_checked_separately_and_every_mistake_is_reported(tmp_path: Path) -> None:
    """Two items of one name in two files are no fault, because the files are separate configurations."""
    good, bad, doubtful, worse = (tmp_path / f"{name}.yaml" for name in ("good", "bad", "doubtful", "worse"))
    good.write_text("elections: {app: {on_lose: [{shell: a}]}, other: {contend: false}}\n")
    bad.write_text("elections: {app: {keey: a}}\n")
    doubtful.write_text("elections: {app: {session: {ttl: 5s, lock_delay: 45s}, on_lose: [{shell: a}]}}\n")
    worse.write_text("elections: {app: {key: /a}}\nnothing: 1\n")
    done = command("check", *map(str, (good, bad, doubtful, worse)))
    assert done.returncode == CONFIGURATION
    valid, warning, also_valid = done.stdout.splitlines()
    assert valid == f"{good}: valid, 2 elections, no warnings"
    assert warning.startswith(f"warning: {doubtful}:1:")
    assert also_valid == f"{doubtful}: valid, 1 election, 1 warning"
    assert [line.split(" ")[0] for line in done.stderr.splitlines()] == [
        f"{bad}:1:19:", f"{bad}:", f"{worse}:1:24:", f"{worse}:2:1:", f"{worse}:",
    ]  # fmt: skip
    quiet = command("check", "--quiet", *map(str, (good, bad, doubtful, worse)))
    assert (quiet.returncode, quiet.stderr) == (CONFIGURATION, done.stderr)
    assert quiet.stdout.splitlines() == [valid, also_valid]
    done = command("check", str(good), str(doubtful))
    assert (done.returncode, done.stderr) == (OK, "")


@pytest.mark.parametrize("option", ["--json", "--connect"])
def test_an_option_for_one_configuration_does_not_take_several(option: str, tmp_path: Path) -> None:
    done = command("check", option, str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))
    assert done.returncode == USAGE and done.stdout == ""
    assert done.stderr == (
        f"consul-supervisor: cannot use {option} with several PATHs: it is about one configuration\n"
    )


# --- hooks that cannot start on this machine ---------------------------------------------------------

UNSTARTABLE = """\
elections:
  web:
    session: {lock_delay: 45s}
    on_acquire:
      - exec: [/nonexistent/promotte]
      - {exec: ["true"], user: no-such-user}
    on_lose:
      - shell: ":"
        cwd: /nonexistent
      - webhook: https://h.example/
        secret_file: /nonexistent/key
    on_change: [{exec: [/etc/passwd]}]
    candidate_check:
      exec: [no-such-check]
    run: {exec: [/etc]}
consul: {token_file: /nonexistent/token, address: "https://127.0.0.1", tls: {ca_file: /nonexistent/ca}}
"""
PLACES = [
    (5, 9, "elections.web.on_acquire[0].exec", "cannot start here: no such program: /nonexistent/promotte"),
    (6, 26, "elections.web.on_acquire[1].user", "cannot start here: unknown user 'no-such-user'"),
    (9, 9, "elections.web.on_lose[0].cwd", "cannot start here: cannot enter /nonexistent: No such file"),
    (
        11,
        9,
        "elections.web.on_lose[1].secret_file",
        "cannot start here: cannot read /nonexistent/key: No such",
    ),
    (12, 18, "elections.web.on_change[0].exec", "cannot start here: user "),
    (14, 7, "elections.web.candidate_check.exec", "cannot start here: no such program: no-such-check is in"),
    (15, 11, "elections.web.run.exec", "cannot start here: /etc is not a program"),
    (16, 10, "consul.token_file", "cannot read /nonexistent/token: No such file or directory"),
    (16, 78, "consul.tls.ca_file", "cannot read /nonexistent/ca: No such file or directory"),
]


def assert_places(problems: list[dict[str, Any]]) -> None:
    about = [each for each in problems if "cannot start here" in each["message"] or "read" in each["message"]]
    for problem, (line, column, path, message) in zip(about, PLACES, strict=True):
        assert (problem["line"], problem["column"], problem["path"]) == (line, column, path)
        assert problem["message"].startswith(message) and problem["remedy"]


def test_each_hook_that_cannot_start_is_a_warning_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(UNSTARTABLE)
    code, report = checked(str(file))
    assert (code, report["valid"]) == (OK, True)
    assert_places(report["warnings"])
    text = command("check", str(file)).stdout
    assert (
        f"warning: {file}:5:9: elections.web.on_acquire[0].exec: cannot start here: no such program" in text
    )


@pytest.mark.parametrize(
    ("systemctl", "sum_"),
    [
        ("echo 4s", "WatchdogSec 4s"),
        ("echo 1min 30s", "WatchdogSec 90s"),
        ("[ $1 = show ] && echo infinity", "WatchdogSec 10s"),  # a unit that is not there
        # A unit that has never started, with a drop-in.
        (
            r"[ $1 = show ] && echo infinity || printf 'WatchdogSec=9s\n#WatchdogSec=8s\nWatchdogSec=4sec\n'",
            "WatchdogSec 4s",
        ),
        (r"[ $1 = show ] && echo infinity || printf 'WatchdogSec = 1min 500ms\n'", "WatchdogSec 60.5s"),
        (r"[ $1 = show ] && echo infinity || printf ' WatchdogSec=7\n'", "WatchdogSec 7s"),
        ("echo 4s; exit 1", "WatchdogSec 10s"),
        ("exec sleep 60", "WatchdogSec 10s"),
    ],
)
def test_with_here_the_watchdog_is_that_of_the_unit(
    tmp_path: Path, systemctl: str, sum_: str, start: str = "3s"
) -> None:
    """A program plays systemd. Without --here nobody asks it."""
    program = tmp_path / "systemctl"
    start = f'[ "$2" != --property=TimeoutStartUSec ] || exec echo {start}'
    program.write_text(f"#!/bin/sh\n{start}\n{systemctl}\n")
    program.chmod(0o755)
    file = tmp_path / "c.yaml"
    file.write_text(
        "elections: {app: {session: {lock_delay: 5s}, run: {exec: [sleep, '9'], stop_timeout: 1s}}}"
    )
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert sum_ in command("check", str(file), "--here", environ=environ).stdout
    assert "WatchdogSec 10s" in command("check", str(file), environ=environ).stdout


def test_with_here_a_start_that_systemd_kills_later_counts_as_well(tmp_path: Path) -> None:
    later = "RestartSec 1s + TimeoutStartSec 90s + RestartSec again 1s + start 1s"
    test_with_here_the_watchdog_is_that_of_the_unit(tmp_path, "echo 4s", later, "1min 30s")
    none = "WatchdogSec 10s"  # systemd shows its own default for a unit that is not there
    test_with_here_the_watchdog_is_that_of_the_unit(tmp_path, "exit 0", none, "1min 30s")


@pytest.mark.parametrize(
    ("watchdog", "why"),
    [
        ("{device: /nonexistent}", "cannot open /nonexistent: No such file or directory"),
        ("{device: /etc/passwd}", "cannot open /etc/passwd: it is no device"),
        ("{device: /nonexistent, required: false}", ""),
        ("{device: /dev/null}", ""),
    ],
)
def test_with_here_a_watchdog_that_cannot_be_used_is_an_error(
    tmp_path: Path, watchdog: str, why: str
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"watchdog: {watchdog}\nelections: {{app: {{on_lose: [{{exec: ['true']}}]}}}}\n")
    problems = [checked(str(file), "--here")[1]["errors"], checked(str(file))[1]["warnings"]]
    for found in problems:
        about = [(each["line"], each["path"], each["message"]) for each in found if "open" in each["message"]]
        assert [each[:2] for each in about] == ([(1, "watchdog")] if why else [])
        assert all(message.startswith(why) for *_, message in about)
    assert checked(str(file), "--here")[0] == (CONFIGURATION if why else OK)


def test_with_here_a_watchdog_that_the_unit_hides_is_an_error(tmp_path: Path) -> None:
    """A program plays systemd."""
    program, file = tmp_path / "systemctl", tmp_path / "c.yaml"
    program.write_text('#!/bin/sh\n[ "$2" != --property=PrivateDevices,ProtectClock ] || echo no yes\n')
    program.chmod(0o755)
    file.write_text("watchdog: {device: /dev/null}\nelections: {app: {}}\n")
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = command("check", str(file), "--here", environ=environ)
    assert (
        f"{file}:1:1: watchdog: cannot open /dev/null: the unit hides it: install the drop-in" in done.stderr
    )
    assert done.returncode == CONFIGURATION
    assert command("check", str(file), environ=environ).returncode == OK


def test_with_here_each_hook_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    file, good = tmp_path / "c.yaml", tmp_path / "good.yaml"
    file.write_text(UNSTARTABLE)
    good.write_text("elections: {app: {on_lose: [{exec: ['true']}]}}\n")
    code, report = checked(str(file), "--here")
    assert (code, report["valid"]) == (CONFIGURATION, False)
    assert_places(report["errors"])
    done = command("check", str(file), "--here")
    *faults, verdict = done.stderr.splitlines()
    assert done.returncode == CONFIGURATION and len(faults) == len(PLACES)
    assert verdict == f"{file}: not valid, {len(PLACES)} faults"
    assert checked(str(good), "--here")[0] == OK
    several = command("check", str(good), str(file), "--here")
    assert several.returncode == CONFIGURATION and f"{good}: valid" in several.stdout
