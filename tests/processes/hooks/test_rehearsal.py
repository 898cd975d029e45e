"""``test-hook``: the real command runs one hook of a file, and prints its output, result and share."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from supervisor.adapters.hooks.reasons import REASONS
from supervisor.adapters.hooks.rehearsal import SESSION, hooks_by_place
from supervisor.config import load
from supervisor.config.formats.templates import PREFIX
from supervisor.core.actions import Reason
from supervisor.core.lease import lease_of, lose_terms
from tests.processes.hooks.trial import alive
from tests.support.configured import loaded
from tests.support.pages import HOOKS, rows
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import COMMAND, ENVIRON, ROOT, command, until

pytestmark = pytest.mark.long

OK, FAILED, USAGE, CONFIGURATION, INTERRUPTED = 0, 1, 2, 78, 130
FACTS = f"env | grep ^{PREFIX} | sort; cat"
ITEM = {
    "session": {"lock_delay": "60s"},
    "on_acquire": [{"shell": FACTS, "kill_after": "2s"}],
    "on_lose": [{"shell": FACTS, "name": "stop"}, {"shell": FACTS, "timeout": "2s"}],
    "on_lose_failure": [{"shell": FACTS}],
    "on_change": [{"shell": FACTS}],
    "candidate_check": {"shell": FACTS},
}


def written(folder: Path, item: Mapping[str, Any], section: str = "elections") -> Path:
    file = folder / "c.yaml"
    item = {"limit": 2, **item} if section == "semaphores" else item
    file.write_text(yaml.safe_dump({section: {"app": json.loads(json.dumps(item))}}))
    return file


def tried(file: Path, hook: str, *more: str, **environ: str) -> subprocess.CompletedProcess[str]:
    done = command("test-hook", "app", hook, "--config", str(file), *more, environ=environ)
    assert "Traceback" not in done.stderr
    return done


def output(done: subprocess.CompletedProcess[str], stream: str = "stdout") -> list[str]:
    """Return the lines that the hook wrote to this stream."""
    return re.findall(rf"^{stream} +(.*)$", done.stdout, re.MULTILINE)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the rows below the output, by their label."""
    return dict(re.findall(r"^  (\w+) +(.*)$", done.stdout, re.MULTILINE))


def failed(folder: Path, **hook: object) -> tuple[str, str]:
    """Run a hook of on_lose that must fail. Return its result, and the line on standard error."""
    done = tried(written(folder, {"on_lose": [hook]}), "on_lose[0]")
    assert done.returncode == FAILED
    result, line = figures(done)["result"], done.stderr
    assert line == f"consul-supervisor: on_lose[0] of app failed: {result.removeprefix('failed: ')}\n"
    return result, line


# --- the facts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hook", "event", "reason"),
    [
        ("on_acquire[0]", "acquire", "acquired"),
        ("on_lose[0]", "lose", "shutdown"),
        ("on_lose_failure[0]", "lose-failure", "lose-failed"),
        ("on_change[0]", "change", "leader-changed"),
        ("candidate_check", "check", "scheduled"),
    ],
)
@pytest.mark.parametrize("section", ["elections", "semaphores"])
def test_each_kind_of_hook_gets_its_event_as_variables_and_on_standard_input(
    tmp_path: Path, section: str, hook: str, event: str, reason: str
) -> None:
    done = tried(written(tmp_path, ITEM, section), hook)
    assert (done.returncode, done.stderr) == (OK, "")
    *variables, document = output(done)
    facts = json.loads(document)
    assert [line.partition("=")[0] for line in variables] == sorted(PREFIX + fact.upper() for fact in facts)
    assert (facts["event"], facts["reason"], facts["kind"]) == (event, reason, section[:-1])
    assert (facts["name"], facts["attempt"], facts["fencing_token"]) == ("app", 1, 0)
    has_session = event != "check" and (section, event) != ("semaphores", "change")
    assert facts["session"] == (SESSION if has_session else "")
    assert ("time_left" in facts) is event.startswith("lose")
    assert facts.get("role") == {"change": "holding", "check": "waiting"}.get(event)
    leads = event in ("acquire", "change")
    if section == "semaphores":
        assert [each["session"] for each in facts["holders"]] == ([SESSION] if leads else [])
        assert facts["slot"] == (0 if has_session else None)
    else:
        own = json.dumps({"Node": os.uname().nodename}, separators=(",", ":"))
        assert facts["leader"] == (own if leads else None)
        assert facts["previous_leader"] == (own if event.startswith("lose") else None)


def test_the_reason_is_the_one_that_was_given(tmp_path: Path) -> None:
    done = tried(written(tmp_path, ITEM), "stop", "--reason", "step-down")
    assert f"{PREFIX}REASON=step-down" in output(done)


def test_each_run_has_a_transition_of_its_own(tmp_path: Path) -> None:
    """A receiver drops a webhook whose transition it has seen."""
    file = written(tmp_path, ITEM)
    transitions = {json.loads(output(tried(file, "stop"))[-1])["transition"] for _ in range(2)}
    assert len(transitions) == 2


@pytest.mark.parametrize(
    ("hook", "least_s"), [("stop", 18.0), ("on_lose[1]", 12.0), ("on_lose_failure[0]", 9.0)]
)
def test_time_left_is_the_least_when_the_hooks_before_took_all_of_theirs(
    tmp_path: Path, hook: str, least_s: float
) -> None:
    """stop takes 6 s, on_lose[1] 3 s and on_lose_failure[0] 6 s, and the margin is 5 % of 60 s."""
    facts = json.loads(output(tried(written(tmp_path, ITEM), hook))[-1])
    assert least_s - 2.9 < facts["time_left"] <= least_s  # every hook takes 3 s at least


def test_the_reasons_are_those_of_the_documentation_for_each_event() -> None:
    documented = {(event, reason.strip("`")) for reason, event, _ in rows(HOOKS, "reason")}
    assert {(event, reason) for event, reasons in REASONS.items() for reason in reasons} == documented
    assert {reason for reasons in REASONS.values() for reason in reasons} == set(Reason)
    shown = " ".join(command("test-hook", "--help").stdout.split())
    *firsts, last = [reasons[0] for reasons in REASONS.values()]
    assert f"(default: {', '.join(firsts)} or {last})" in shown


def test_every_hook_of_a_file_has_a_place(tmp_path: Path) -> None:
    (settings,) = load(written(tmp_path, {**ITEM, "fence": {"shell": FACTS}}), {}, "node1").items
    assert {hook for _, hook in hooks_by_place(settings).values()} == set(settings.hooks)


# --- the fence -------------------------------------------------------------------------------------

FENCED: Mapping[str, Any] = {
    "fence": {"shell": FACTS, "target": "db1"},
    "on_acquire": [{"shell": FACTS}],
    "on_lose": [{"shell": FACTS}],
}
FORMER = {"previous_target": "db2", "previous_node": "db2", "previous_host": "db2", "previous_token": 0}
NOBODY = dict.fromkeys(FORMER, "") | {"previous_end": "released", "previous_token": 0}


def previous(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the facts about the former holder, of which only the value is none of its tenure record's."""
    assert (done.returncode, done.stderr) == (OK, "")
    facts = json.loads(output(done)[-1]).items()
    return {fact: value for fact, value in facts if re.match("previous_(?!leader)", fact)}


def test_a_fence_is_told_the_machine_that_was_named_and_on_acquire_follows_it(tmp_path: Path) -> None:
    file = written(tmp_path, FENCED)
    done = tried(file, "fence", "--target", "db2")
    assert previous(done) == {"previous_end": ""} | FORMER
    facts = json.loads(output(done)[-1])
    assert (facts["event"], facts["reason"], facts["fencing_token"]) == ("fence", "acquired", 0)
    assert facts["previous_leader"] == facts["leader"] and "time_left" not in facts
    assert figures(done)["share"] == "none of lose_time"
    assert previous(tried(file, "on_acquire[0]", "--target", "db2")) == {"previous_end": "fenced"} | FORMER
    assert previous(tried(file, "on_acquire[0]")) == NOBODY
    assert previous(tried(file, "on_lose[0]")) == {}


def test_each_method_of_a_fence_is_tried_or_one_by_its_name(tmp_path: Path) -> None:
    methods = [{"name": "bmc", "shell": "exit 1"}, {"name": "pdu", "shell": FACTS}]
    file = written(tmp_path, {"fence": {"try": methods, "target": "db1"}, "on_acquire": [{"shell": FACTS}]})
    done = tried(file, "fence", "--target", "db2")
    assert done.returncode == FAILED and re.findall("method +(.*)", done.stdout) == ["bmc", "pdu"]
    assert "fence.try[0]" in done.stderr and "fence.try[1]" not in done.stderr
    alone = tried(file, "pdu", "--target", "db2")
    assert json.loads(output(alone)[-1])["fence_method"] == "pdu" and alone.returncode == OK
    after = tried(file, "on_acquire[0]", "--target", "db2")
    assert json.loads(output(after)[-1])["fence_method"] == "bmc"


@pytest.mark.parametrize("target", ["db1", "DB1"])
def test_a_fence_does_not_switch_off_this_machine_unless_that_is_confirmed(
    tmp_path: Path, target: str
) -> None:
    file = written(tmp_path, FENCED)
    done = tried(file, "fence", "--target", target)
    assert (done.returncode, done.stdout) == (USAGE, "")
    asked = f"cannot ask whether to switch off {target}, this machine itself: standard input is no terminal"
    assert done.stderr == f"consul-supervisor: {asked}; add --yes\n"
    assert previous(tried(file, "fence", "--target", target, "--yes"))["previous_target"] == target


def test_a_file_that_names_no_target_means_this_host(tmp_path: Path) -> None:
    done = tried(written(tmp_path, {"fence": {"shell": FACTS}}), "fence", "--target", os.uname().nodename)
    assert (done.returncode, done.stdout) == (USAGE, "")


def test_a_target_is_never_guessed_and_never_ignored(tmp_path: Path) -> None:
    file = written(tmp_path, FENCED)
    for arguments, why in (
        (
            ("fence",),
            "cannot run fence of app without a machine, because it switches that machine off: "
            "name one by --target",
        ),
        (
            ("on_lose[0]", "--target", "db2"),
            "cannot use --target with on_lose[0] of app: it is for fence, and for on_acquire of an "
            "election with fence",
        ),
    ):
        done = tried(file, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (USAGE, "", f"consul-supervisor: {why}\n")


def test_a_candidate_check_without_a_command_has_no_place(tmp_path: Path) -> None:
    (settings,) = loaded(tmp_path, "elections: {app: {candidate_check: {maintenance: true}}}\n").items
    assert hooks_by_place(settings) == {}


# --- as the daemon would -----------------------------------------------------------------------------


def test_a_hook_does_not_inherit_what_the_daemon_withholds(tmp_path: Path) -> None:
    """The variable of the webhook's URL is a secret, too, and the hook's own env comes last."""
    hook = {
        "shell": "echo ${MINE-none} ${PASSWORD-none} ${CONSUL_HTTP_TOKEN-none} ${NOTIFY_SOCKET-none} $OURS"
    }
    item = {"on_lose": [{**hook, "env": {"OURS": "own"}}, {"webhook": "http://h/${PASSWORD}"}]}
    secret = {"PASSWORD": "p", "CONSUL_HTTP_TOKEN": "t", "NOTIFY_SOCKET": "/n", "MINE": "kept", "OURS": "x"}
    done = tried(written(tmp_path, item), "on_lose[0]", **secret)
    assert output(done) == ["kept none none none own"]


def test_output_is_printed_as_the_log_has_it(tmp_path: Path) -> None:
    hooks = [{"shell": r"printf '\033[2J\n'; echo trouble >&2"}, {"shell": "seq 2000"}]
    file = written(tmp_path, {"on_lose": hooks})
    done = tried(file, "on_lose[0]")
    assert (output(done), output(done, "stderr")) == ([r"\x1b[2J"], ["trouble"])
    dropped = re.findall(r"… (\d+) lines? dropped: more than 1000 in 10s", tried(file, "on_lose[1]").stdout)
    assert sum(map(int, dropped)) == 1000


# --- the result ------------------------------------------------------------------------------------


def test_a_hook_of_on_lose_is_shown_beside_its_share_of_lose_time(tmp_path: Path) -> None:
    file = written(tmp_path, ITEM)
    shown = figures(tried(file, "on_lose[1]"))
    assert list(shown) == ["result", "duration", "share", "lose_time"]
    assert shown["result"] == "ok: exit 0"
    assert re.fullmatch(r"\d\.\d{3}s of 3s = timeout 2s \+ kill_after 1s", shown["duration"])
    assert shown["share"] == "3s of lose_time"
    (settings,) = load(file, {}, "node1").items
    assert ("on_lose[1]", 3.0) in lose_terms(settings) and lease_of(settings).lose_time_s == 17.0
    assert shown["lose_time"] in command("check", str(file)).stdout


def test_only_the_kill_after_of_on_acquire_counts(tmp_path: Path) -> None:
    shown = figures(tried(written(tmp_path, ITEM), "on_acquire[0]"))
    assert shown["share"].startswith("2s of lose_time: kill_after") and "lose_time" in shown


@pytest.mark.parametrize("hook", ["on_change[0]", "candidate_check"])
def test_hooks_that_do_not_count_have_no_share(tmp_path: Path, hook: str) -> None:
    shown = figures(tried(written(tmp_path, ITEM), hook))
    assert shown["share"] == "none of lose_time" and "lose_time" not in shown


def test_each_failure_is_1_with_its_reason(tmp_path: Path) -> None:
    assert failed(tmp_path, shell="exit 3")[0] == "failed: exit 3"
    assert failed(tmp_path, exec=["/nonexistent/x"])[0] == (
        "failed: cannot start: No such file or directory: /nonexistent/x"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_a_signal_kills_the_hook(tmp_path: Path, number: signal.Signals) -> None:
    file = written(tmp_path, {"on_lose": [{"shell": f"echo $$ > {tmp_path}/pid; exec sleep 600"}]})
    argv = ["env", f"--default-signal={number.name.removeprefix('SIG')}", *COMMAND]
    argv += ["test-hook", "app", "on_lose[0]", "--config", str(file)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, cwd=ROOT, env=ENVIRON) as process:
        pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it runs"))
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (INTERRUPTED, b"")
    assert not alive(pid)


# --- wrong names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("ap", "stop"), "cannot find election or semaphore ap in FILE: it has app, did you mean app?"),
        (("nothing", "stop"), "cannot find election or semaphore nothing in FILE: it has app"),
        (("app", "on_los[0]"), "cannot find on_los[0] of app: it has PLACES, did you mean on_lose[0]?"),
        (("app", "stpo"), "cannot find stpo of app: it has PLACES, did you mean stop?"),
        (("app", "run"), "cannot find run of app: it has PLACES"),
        (
            ("app", "on_acquire[0]", "--reason", "acquire"),
            "cannot use --reason acquire with on_acquire[0]: it has acquired, adopted, "
            "did you mean acquired?",
        ),
        (
            ("app", "candidate_check", "--reason", "step-down"),
            "cannot use --reason step-down with candidate_check: it has scheduled",
        ),
    ],
)
def test_a_wrong_name_is_2_and_says_which_was_meant(
    tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    file = written(tmp_path, ITEM)
    done = command("test-hook", *arguments, "--config", str(file))
    places = "on_acquire[0], on_lose[0], stop, on_lose[1], on_change[0], on_lose_failure[0], candidate_check"
    expected = why.replace("FILE", str(file)).replace("PLACES", places)
    assert (done.returncode, done.stdout, done.stderr) == (USAGE, "", f"consul-supervisor: {expected}\n")
