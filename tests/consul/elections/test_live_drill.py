"""``drill --live`` on a real Consul: what a client sees of a hand-over and the way back, and each refusal."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from tests.consul.elections.scene import Scene
from tests.consul.elections.test_handover import candidate, started, step_down
from tests.consul.elections.test_operator import operate
from tests.consul.elections.test_reload import item
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, Supervisor, command, until

pytestmark = pytest.mark.long

DONE, NEGATIVE, USAGE, UNREACHABLE = 0, 1, 2, 69
REST_AND_REASON = ["--for", "1s", "--reason", "drill"]


class Typed:
    """A command whose standard input is a terminal, at which a person types."""

    def __init__(self, words: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=ENVIRON,
        )
        os.close(theirs)
        self._read = ""

    def __enter__(self) -> "Typed":
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.communicate()
        os.close(self._ours)

    def type(self, answer: str) -> None:
        os.write(self._ours, f"{answer}\n".encode())

    def line(self, text: str) -> str:
        """Return the next line of the output that has this text."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._read += line
            if text in line:
                return line
        raise AssertionError(f"{text} is not in {self._read}")

    def ended(self) -> tuple[str, int]:
        """Return all output, and the exit code."""
        rest, _ = self._process.communicate(timeout=PATIENCE_S)
        return self._read + rest, self._process.returncode


def words(scene: Scene, node: Supervisor, *more: str) -> list[str]:
    socket = str(node.folder / "control.sock")
    return ["drill", "--live", scene.name, "--socket", socket, *more, str(node.config_path)]


def drill(scene: Scene, node: Supervisor, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a live drill on this node, without a terminal."""
    done = command(*words(scene, node, *more))
    assert "Traceback" not in done.stderr, done.stderr
    return done


def refused(scene: Scene, node: Supervisor, *more: str) -> str:
    """Return why a live drill is refused, which changes nothing."""
    entry = scene.agent.kv_get(scene.key)
    done = drill(scene, node, "--yes", *more)
    assert (done.returncode, done.stdout) == (NEGATIVE, ""), done
    assert scene.agent.kv_get(scene.key) == entry
    (line,) = done.stderr.splitlines()
    start = f"consul-supervisor: cannot drill {scene.name} live: "
    assert line.startswith(start)
    return line.removeprefix(start)


def by(node: Supervisor) -> str:
    """Return the value of --back-by that runs the command beside this node."""
    run = f'{shlex.quote(sys.executable)} -m supervisor "$@" --socket {node.folder / "control.sock"}'
    return f"set -- {{command}}; shift; {run}"


def promises(handover: dict[str, Any]) -> dict[str, tuple[str, str, bool]]:
    return {one["what"]: (one["promised"], one["measured"], one["kept"]) for one in handover["promises"]}


def test_the_lock_goes_to_the_other_node_and_comes_back(scene: Scene) -> None:
    a, b = started(scene, "a", "b")
    token = item(a)["fencing_token"]
    done = drill(scene, a, "--yes", "--back-by", by(b), "--json")
    assert done.returncode == DONE, done.stderr
    document = json.loads(done.stdout)
    there, back = document["handovers"]
    assert (there["handover"], back["handover"]) == ("there", "back")
    assert document["kept"] and all(kept for _, _, kept in (promises(there) | promises(back)).values())
    assert token == document["fencing_token"] < there["fencing_token"] < back["fencing_token"]
    assert 0 <= there["gap_s"] < 1 and 0 <= back["gap_s"] < 1
    assert document["holder"]["session"] == item(a)["session"] and item(a)["holds"]
    assert scene.calls("a") == ["acquire acquired", "lose step-down", "acquire acquired"]
    assert scene.calls("b") == ["acquire acquired", "lose step-down"]
    assert promises(there)["losing has ended (lose_time)"][0] == "at most 1.1s"
    assert "on_acquire has finished (its timeouts)" in promises(back)
    assert a.wait_line("command", verb="step-down")["note"] == "drill"


def test_a_person_confirms_and_types_the_way_back_on_the_other_node(scene: Scene) -> None:
    a, b = started(scene, "a", "b")
    with Typed(words(scene, a)) as drilling:
        drilling.type("y")
        shown = drilling.line("consul-supervisor step-down")
        typed = shown.partition("consul-supervisor ")[2].split()
        assert shown.startswith(f"within 5m, run on {item(b)['session']}: ")
        assert typed[:3] == ["step-down", scene.name, "--to"] and typed[-4:] == REST_AND_REASON
        assert operate(b, *typed) == (DONE, "")
        output, code = drilling.ended()
    assert code == DONE, output
    assert f"live drill of {scene.name}: " in output and "This moves the real leader" in output
    assert "is holder in Consul, fencing token" in output and "holds: on_acquire has finished" in output
    gaps = re.findall(r"gap     no (?:node was holder in Consul for \d+ ms|answer of Consul showed)", output)
    assert len(gaps) == 2
    last = output.splitlines()[-1]
    assert re.fullmatch(r"10 promises: all kept; [0-9a-f-]{36} holds it; fencing tokens \d+, \d+, \d+", last)
    assert item(a)["holds"]


def test_a_drill_one_way_leaves_the_lock_there(scene: Scene) -> None:
    a, b = started(scene, "a", "b")
    done = drill(scene, a, "--yes", "--one-way")
    assert done.returncode == DONE, done.stderr
    assert f"{item(b)['session']} holds it; fencing tokens" in done.stdout.splitlines()[-1]
    assert scene.wait_leader() == "b"


def test_the_answer_no_changes_nothing(scene: Scene) -> None:
    a, _ = started(scene, "a", "b")
    with Typed(words(scene, a)) as drilling:
        drilling.type("n")
        output, code = drilling.ended()
    assert code == NEGATIVE and "was not handed over" in output
    done = drill(scene, a)
    assert done.returncode == USAGE and "standard input is no terminal; add --yes" in done.stderr
    assert scene.calls("a") == ["acquire acquired"]


def test_nothing_is_done_when_the_candidates_change_before_the_answer(scene: Scene) -> None:
    a, _ = started(scene, "a", "b")
    with Typed(words(scene, a, "--to", (first := candidate(scene)))) as drilling:
        drilling.line("check promises")
        scene.agent.session_destroy(first)
        drilling.type("y")
        output, code = drilling.ended()
    assert code == NEGATIVE and f"{first} is no candidate" in output
    assert scene.calls("a") == ["acquire acquired"]


def test_a_way_back_that_is_not_taken_is_a_broken_promise(scene: Scene) -> None:
    a, b = started(scene, "a", "b")
    done = drill(scene, a, "--yes", "--timeout", "3s", "--json")
    assert done.returncode == NEGATIVE, done.stderr
    document = json.loads(done.stdout)
    there, back = document["handovers"]
    assert there["kept"] and not document["kept"] and back["gap_s"] is None
    ours = item(a)["session"]
    assert promises(back)["the next holder"] == (ours, f"{item(b)['session']} still holds it", False)
    assert document["holder"]["session"] == item(b)["session"]


def test_a_command_for_the_way_back_that_fails_ends_the_drill(scene: Scene) -> None:
    a, _ = started(scene, "a", "b")
    done = drill(scene, a, "--yes", "--back-by", "echo no route to {node} >&2; exit 255", "--json")
    assert done.returncode == NEGATIVE
    back = json.loads(done.stdout)["handovers"][1]
    assert promises(back)["exit code of --back-by"] == ("0", "255", False)
    assert "no route to test-" in done.stderr


def test_a_third_node_that_takes_over_is_a_broken_promise(scene: Scene) -> None:
    a, b = started(scene, "a", "b")
    dead = candidate(scene)
    done = drill(scene, a, "--yes", "--to", dead, "--json")
    assert done.returncode == NEGATIVE
    document = json.loads(done.stdout)
    (there,) = document["handovers"]
    assert promises(there)["the next holder"] == (dead, item(b)["session"], False)
    assert "did not take over" in promises(there)["step-down"][1]
    assert there["gap_s"] > 5 and not promises(there)["no node is holder (acquire_delay)"][2]
    scene.agent.session_destroy(dead)


def test_a_drill_that_is_not_possible_is_refused_and_nothing_changes(scene: Scene) -> None:
    a = scene.leader("a", session={"name": f"{scene.name}-all"})
    assert refused(scene, a) == "no other node waits for it"
    b = scene.node("b", session={"name": f"{scene.name}-all"})
    scene.wait(node="b", stage="end", event="change")
    until(lambda: item(b)["session"], "b has a session")
    why = refused(scene, b)
    assert (
        why.startswith("this node does not hold it (role: waiting); test-") and "run the drill there" in why
    )
    other = candidate(scene)
    node = next(each["Node"] for each in scene.sessions())
    assert f"{node} has 2 candidates, name a session" in refused(scene, a, "--to", node)
    assert "nobody is no candidate; there are" in refused(scene, a, "--to", "nobody")
    scene.agent.session_destroy(other)
    assert operate(a, "pause", scene.name) == (DONE, "")
    assert (
        f"this node is paused and would not take it back; first: consul-supervisor resume {scene.name}"
        in (refused(scene, a))
    )
    assert operate(b, "pause", scene.name) == (DONE, "")
    until(lambda: not item(b)["session"], "b has no session")
    assert "role: paused" in refused(scene, b)
    assert step_down(scene, a)[0] == NEGATIVE
    assert refused(scene, a).endswith("(role: paused); no node holds it")


def test_a_daemon_that_does_not_run_is_unreachable(scene: Scene) -> None:
    a = scene.leader("a")
    assert a.stop() == 0
    assert drill(scene, a, "--yes").returncode == UNREACHABLE
