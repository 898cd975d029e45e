"""The commands about all nodes, as a new operator types them, on a real Consul and through a client agent.

The commands are ``members``, ``sessions``, ``wait``, ``status --cluster``, ``leader --json`` and ``verify
NAME``. In some tests no node takes part, the token has no rights, or sessions have hostile names.
"""

import json
import os
import pty
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.adapters.consul.endpoints import READS_SESSIONS
from supervisor.commands.cli.cluster_commands import HIDDEN
from tests.support.consul import Agent, free_ports
from tests.support.guarded import Guarded, below
from tests.support.proxy import Proxy
from tests.support.supervisor import COMMAND, ENVIRON, PATIENCE_S, ROOT, command

pytestmark = pytest.mark.long

DONE, NEGATIVE, USAGE, UNREACHABLE, CONFIGURATION = 0, 1, 2, 69, 78
EVIL = "\x1b[2J\x1b]0;owned\x07\n日本"
NO_SESSION = "2f8e9dd4-3c55-4c9a-9a0e-0f3c1c7a8a11"
WIDE = {"COLUMNS": "300"}


class File:
    """A configuration of one election, ``app``, and one semaphore, ``slots``."""

    def __init__(self, path: Path, agent: Agent, unique: str, token: str = "") -> None:
        self.path, self.agent, self.unique = path, agent, unique
        self.key, self.prefix = f"{unique}/leader", f"{unique}/slots"
        secret = f", token: '{token}'" if token else ""
        self.path.write_text(
            f"consul: {{address: '{agent.url}'{secret}}}\n"
            f"elections: {{app: {{key: {self.key}, session: {{name: '{unique} app'}}}}}}\n"
            f"semaphores: {{slots: {{prefix: {self.prefix}, limit: 2, prune_delay: 20s,"
            f" session: {{name: '{unique} slots'}}}}}}\n"
        )

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        done = command(*arguments, "--config", str(self.path), environ={**WIDE, **environ})
        assert "Traceback" not in done.stderr, done.stderr
        assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stdout + done.stderr
        return done

    def document(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == DONE, done
        return json.loads(done.stdout)

    def session(self, name: str = "app", **fields: Any) -> str:
        made = {"Name": f"{self.unique} {name}", "TTL": "600s", "LockDelay": "25s", **fields}
        return self.agent.session_create(**made)

    def leads(self, value: bytes = b'{"Node": "node1"}', **fields: Any) -> str:
        made = self.session(**fields)
        assert self.agent.acquire(self.key, made, value)
        return made

    def in_line(self, *, holders: int, waiting: int) -> list[str]:
        """Return new sessions with contender keys, the holders first."""
        made = [self.session("slots") for _ in range(holders + waiting)]
        for number, each in enumerate(made):
            body = json.dumps({"Node": f"node{number}", "PruneDelay": "40s"}).encode()
            assert self.agent.acquire(f"{self.prefix}/{each}", each, body)
        numbers = {session: number for number, session in enumerate(made[:holders])}
        record = {"Limit": 2, "Holders": dict.fromkeys(numbers, True), "Slots": numbers}
        assert self.agent.kv_put(f"{self.prefix}/.lock", json.dumps(record).encode())
        return made


@pytest.fixture
def file(shared_agent: Agent, unique: str, tmp_path: Path) -> Iterator[File]:
    made = File(tmp_path / "c.yaml", shared_agent, unique)
    yield made
    for each in shared_agent.sessions():
        shared_agent.session_destroy(each["ID"])


# --- members -------------------------------------------------------------------------------------


def test_members_are_the_holder_and_then_who_waits_the_longest_first(file: File) -> None:
    holder, first, second = file.leads(), file.session(), file.session(TTL="")
    (item,) = file.document("members", "app")["items"]
    assert [(one["part"], one["session"]) for one in item["members"]] == [
        ("holder", holder),
        ("candidate", first),
        ("candidate", second),
    ]
    assert item["complete"] and item["limit"] == 1 and item["key"] == file.key
    shown = item["members"][0]
    assert (shown["node"], shown["ttl"], shown["lock_delay_s"]) == ("node1", "600s", 25.0)
    assert shown["consul_node"] and item["members"][2]["ttl"] is None and item["members"][1]["node"] is None
    done = file.run("members", "app")
    assert (done.returncode, done.stderr) == (DONE, "")
    head, _, titles, *rows = done.stdout.splitlines()
    assert head == f"app: election {file.key}, 1 holder, 2 candidates"
    assert titles.split()[:2] == ["PART", "NODE"] and "paused" in rows[-1]
    assert [row.split()[0] for row in rows[:3]] == ["holder", "candidate", "candidate"]


def test_members_of_a_semaphore_are_its_contender_keys(file: File) -> None:
    one, two, three = file.in_line(holders=2, waiting=1)
    file.session("slots")  # without a contender key
    (item,) = file.document("members", "slots")["items"]
    shown = [(each["part"], each["session"], each["node"]) for each in item["members"]]
    assert shown == [("holder", one, "node0"), ("holder", two, "node1"), ("candidate", three, "node2")]
    file.agent.kv_delete(f"{file.prefix}/{one}")
    (item,) = file.document("members", "slots")["items"]
    assert [each["part"] for each in item["members"]] == ["holder", "candidate", "vanished"]
    assert [each["slot"] for each in item["members"]] == [1, None, 0]
    assert "holder, slot 1 " in file.run("members", "slots").stdout
    assert file.run("members", "slots").stdout.startswith(
        f"slots: semaphore {file.prefix}/.lock, 1 holder of 2, "
    )
    file.agent.kv_put(f"{file.prefix}/.lock", b"\x1b{")
    (item,) = file.document("members", "slots")["items"]
    assert [each["part"] for each in item["members"]] == ["candidate", "candidate"]
    assert item["limit"] is None and not item["complete"] and "it is no JSON" in item["notes"][0]


@pytest.mark.parametrize("name", ["app", "slots"])
def test_an_item_in_which_nobody_takes_part_is_a_no(file: File, name: str) -> None:
    done = file.run("members", name)
    assert done.returncode == NEGATIVE and "0 candidates" in done.stdout and "paused" in done.stdout
    assert done.stderr == f"consul-supervisor: nobody takes part in {name}\n"
    done = file.run("members", name, "--json")
    assert done.returncode == NEGATIVE and json.loads(done.stdout)["items"][0]["members"] == []


def test_no_control_character_of_another_program_reaches_a_terminal(file: File) -> None:
    file.leads(json.dumps({"Node": EVIL}).encode(), Name=EVIL)
    done = file.run("members", "app")  # run looks for escape characters
    assert done.returncode == DONE and "\\x1b[2J" in done.stdout and "日本" in done.stdout
    assert "\\x1b" in file.run("sessions").stdout
    assert json.loads(file.document("leader", "app")["value"])["Node"] == EVIL


def test_a_session_name_with_a_variable_is_found_on_all_nodes(file: File) -> None:
    text = file.path.read_text()
    file.path.write_text(text.replace(f"'{file.unique} app'", "'app on ${HOSTNAME} of ${UNSET}'"))
    file.agent.session_create(Name="app on n1 of here", TTL="600s")
    file.agent.session_create(Name="happ on n1 of here", TTL="600s")
    (item,) = file.document("members", "app")["items"]
    assert [one["session_name"] for one in item["members"]] == ["app on n1 of here"]
    file.path.write_text(text.replace(f"'{file.unique} app'", "'${HOSTNAME}'"))
    done = file.run("members", "app")
    assert done.returncode == NEGATIVE and "as far as" in done.stderr and "only a variable" in done.stdout


def test_narrow_terminals_get_no_wider_lines(file: File) -> None:
    file.leads(json.dumps({"Node": "n" * 300}).encode())
    for columns in (20, 60, 80, 100):
        for arguments in (("members", "app"), ("sessions",), ("status", "--cluster")):
            lines = file.run(*arguments, COLUMNS=str(columns)).stdout.splitlines()
            assert max(map(len, lines)) <= columns, arguments


# --- status --cluster ----------------------------------------------------------------------------


def test_the_cluster_is_one_table_of_all_items(file: File) -> None:
    holder = file.leads()
    done = file.run("status", "--cluster")
    assert (done.returncode, done.stderr) == (DONE, "")
    titles, *rows = done.stdout.splitlines()
    assert titles.split()[:2] == ["ITEM", "PART"]
    assert rows[0].split()[:3] == ["app", "holder", "node1"] and holder in rows[0]
    assert rows[1].split()[:2] == ["slots", "nobody"]
    both = file.document("status", "--cluster")["items"]
    assert [item["name"] for item in both] == ["app", "slots"]
    assert [item["name"] for item in file.document("status", "--cluster", "slots")["items"]] == ["slots"]


# --- sessions ------------------------------------------------------------------------------------


def test_sessions_are_those_of_supervisors_and_say_what_each_holds(file: File) -> None:
    holder = file.leads()
    waits = file.session(Name="consul-supervisor:other")
    file.session(Name="another program's")
    slot, line = file.in_line(holders=1, waiting=1)
    shown = {one["session"]: one for one in file.document("sessions")["sessions"]}
    assert set(shown) == {holder, waits, slot, line}
    assert shown[holder]["parts"] == [{"item": "app", "part": "holder"}]
    assert shown[slot]["parts"] == [{"item": "slots", "part": "holder"}]
    assert shown[line]["parts"] == [{"item": "slots", "part": "candidate"}]
    assert shown[waits]["parts"] == shown[waits]["named_as"] == [] and not shown[waits]["orphan"]
    text = file.run("sessions").stdout
    assert "holder of app" in text and "candidate of slots" in text and "no item of the configuration" in text


def test_orphans_have_no_part_and_a_session_beside_them_that_is_in_use(file: File) -> None:
    older, newer = file.session(TTL=""), file.session()
    assert orphans(file) == [older]
    file.agent.acquire(file.key, older)
    assert orphans(file) == [newer]  # a holder's daemon has no other
    file.in_line(holders=1, waiting=1)
    lost = file.session("slots")
    assert orphans(file) == [newer, lost]
    assert "orphan of slots" in file.run("sessions", "--orphans").stdout


def orphans(file: File) -> list[str]:
    return [one["session"] for one in file.document("sessions", "--orphans")["sessions"]]


def test_no_sessions_and_no_orphans_are_no_error(file: File) -> None:
    assert (done := file.run("sessions")).returncode == DONE and done.stdout == "no sessions of supervisors\n"
    assert (done := file.run("sessions", "--orphans")).returncode == DONE and done.stdout == "no orphans\n"


def test_destroy_first_says_what_is_held_and_until_when(file: File) -> None:
    holder = file.leads()
    done = file.run("sessions", "destroy", holder)
    assert done.returncode == USAGE and "--yes" in done.stderr  # no daemon answers
    assert f"app: it holds {file.key}; its supervisor runs on_lose at once" in done.stdout
    assert "25 s after the destroy (the lock-delay)" in done.stdout
    assert file.agent.kv_get(file.key)["Session"] == holder  # type: ignore[index]
    done = file.run("sessions", "destroy", holder, "--yes")
    assert (done.returncode, done.stderr) == (DONE, "") and done.stdout.endswith("\ndestroyed\n")
    assert file.agent.kv_get(file.key)["Session"] == ""  # type: ignore[index]
    done = file.run("sessions", "destroy", holder, "--yes")
    assert done.returncode == NEGATIVE and "no such session" in done.stderr


def test_destroy_of_a_slot_names_the_largest_prune_delay(file: File) -> None:
    slot, line = file.in_line(holders=1, waiting=1)
    assert "40 s after the destroy (the prune delay)" in file.run("sessions", "destroy", slot).stdout
    assert "stands in line" in file.run("sessions", "destroy", line).stdout
    assert "holds nothing" in file.run("sessions", "destroy", file.session("slots")).stdout


def test_destroy_leaves_other_programs_sessions_alone(file: File) -> None:
    foreign = file.session(Name="another program's")
    done = file.run("sessions", "destroy", foreign, "--yes")
    assert done.returncode == NEGATIVE and "another program made it" in done.stderr
    assert foreign in {one["ID"] for one in file.agent.sessions()}


def test_destroy_does_nothing_when_the_session_has_changed_while_it_asks(file: File) -> None:
    """An operator may think for minutes, and a candidate may have become the holder."""
    made = file.session()
    ours, theirs = pty.openpty()
    argv = [*COMMAND, "sessions", "destroy", made, "--config", str(file.path)]
    with subprocess.Popen(
        argv, stdin=theirs, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRON
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.read(len("Destroy it?")) == "Destroy it?"
        assert file.agent.acquire(file.key, made)
        os.write(ours, b"y\n")
        _, error = process.communicate(timeout=PATIENCE_S)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == NEGATIVE and "has changed meanwhile" in error
    assert made in {one["ID"] for one in file.agent.sessions()}


# --- leader and verify ---------------------------------------------------------------------------


def test_leader_as_json_has_all_that_consul_shows(file: File) -> None:
    holder = file.leads()
    entry = file.agent.kv_get(file.key)
    assert entry is not None
    by_name = file.document("leader", "app")
    by_key = json.loads(file.run("leader", "--key", file.key, "--json").stdout)
    assert by_name == by_key
    assert (by_name["session"], by_name["node"], by_name["value"]) == (holder, "node1", '{"Node": "node1"}')
    assert by_name["fencing_token"] == entry["ModifyIndex"] and by_name["ttl"] == "600s"
    file.agent.kv_put(file.key, b"\xff")
    after = file.document("leader", "app")
    assert after["fencing_token"] is None and after["session"] == holder  # no index of the beginning is left
    file.agent.session_destroy(holder)
    done = file.run("leader", "app", "--json")
    assert (done.returncode, done.stdout) == (NEGATIVE, "") and "nobody holds" in done.stderr


def test_a_key_is_asked_of_the_consul_of_the_configuration(file: File) -> None:
    """With --config the file names Consul; without --config only the environment does."""
    holder = file.leads(b"me")
    nobody = {"CONSUL_HTTP_ADDR": f"127.0.0.1:{free_ports(1)[0]}"}
    assert file.run("leader", "--key", file.key, **nobody).stdout == "me\n"
    assert file.run("verify", "--key", file.key, "--session", holder, **nobody).returncode == DONE
    assert command("leader", "--key", file.key, environ=nobody).returncode == UNREACHABLE


@pytest.mark.parametrize("name", ["app", "slots"])
def test_verify_takes_a_name_as_it_takes_a_key(file: File, name: str) -> None:
    session = file.leads() if name == "app" else file.in_line(holders=1, waiting=0)[0]
    assert file.run("verify", name, "--session", session).returncode == DONE
    done = file.run("verify", name, "--session", NO_SESSION)
    assert done.returncode == NEGATIVE and "no longer the holder" in done.stderr
    assert file.run("verify", "none", "--session", session).returncode == USAGE


# --- wait ----------------------------------------------------------------------------------------


def waiting(file: File, *arguments: str) -> subprocess.Popen[str]:
    argv = [*COMMAND, "wait", *arguments, "--config", str(file.path)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRON)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, error = process.communicate(timeout=PATIENCE_S)
    return process.returncode, error


def test_wait_ends_when_it_is_so(file: File) -> None:
    leader = waiting(file, "app", "--for", "leader")
    time.sleep(1)
    assert leader.poll() is None
    holder = file.leads()
    assert ended(leader) == (DONE, "")
    assert file.run("wait", "app", "--for", "leader").returncode == DONE  # at once
    free = waiting(file, "app", "--for", "free")
    time.sleep(1)
    assert free.poll() is None
    file.agent.release(file.key, holder)
    assert ended(free) == (DONE, "")


def test_a_semaphore_is_free_while_a_slot_is(file: File) -> None:
    assert file.run("wait", "slots", "--for", "free").returncode == DONE
    file.in_line(holders=2, waiting=0)
    free = waiting(file, "slots", "--for", "free")
    time.sleep(1)
    assert free.poll() is None
    file.agent.kv_put(f"{file.prefix}/.lock", b'{"Limit": 2, "Holders": {}}')
    assert ended(free) == (DONE, "")
    done = file.run("wait", "slots", "--for", "leader")
    assert done.returncode == USAGE and "a semaphore has holders" in done.stderr


@pytest.mark.parametrize("timeout", ["0s", "1s"])
def test_wait_ends_with_its_time(file: File, timeout: str) -> None:
    done = file.run("wait", "app", "--for", "leader", "--timeout", timeout)
    assert done.returncode == NEGATIVE and "nobody holds" in done.stderr


def test_wait_is_a_blocking_query_and_no_polling(file: File) -> None:
    """A wait of two seconds sends a handful of requests, although the last ones become short."""
    with Proxy(file.agent.host, file.agent.port) as proxy:
        file.path.write_text(file.path.read_text().replace(file.agent.url, proxy.url))
        asked = proxy.hold("request", "GET", file.key, for_s=0.001)
        assert file.run("wait", "app", "--for", "leader", "--timeout", "2s").returncode == NEGATIVE
        first, *later = [each.target for each in asked.caught]
    assert "index=0" in first and len(later) <= 8, later
    assert all("wait=" in each and "index=0" not in each for each in later[:-1])


def test_wait_rides_out_a_consul_that_does_not_answer_yet(tmp_path: Path, unique: str) -> None:
    with Agent(tmp_path / "consul", persistent=True) as agent:
        file = File(tmp_path / "c.yaml", agent, unique)
        agent.stop()
        process = waiting(file, "app", "--for", "free")
        time.sleep(1)
        assert process.poll() is None
        agent.start()
        assert ended(process) == (DONE, "")
        agent.stop()
        done = file.run("wait", "app", "--for", "free", "--timeout", "1s")
        assert done.returncode == UNREACHABLE and "cannot ask Consul" in done.stderr


# --- wrong input, and Consul that does not answer --------------------------------------------------


def test_without_the_right_to_read_sessions_it_is_told(guarded: Guarded, tmp_path: Path, unique: str) -> None:
    rules = f'key "{unique}/leader" {{ policy = "read" }}\n' + below(f"{unique}/slots")
    file = File(tmp_path / "c.yaml", guarded, unique, guarded.token_of(rules).secret)
    holder = file.leads()
    file.session()
    done = file.run("members", "app")
    assert done.returncode == DONE and holder in done.stdout
    assert "does not show all sessions" in done.stdout and "0 candidates known" in done.stdout
    assert HIDDEN in file.run("sessions").stdout
    may = File(tmp_path / "may.yaml", guarded, unique, guarded.token_of(f"{rules}{READS_SESSIONS}").secret)
    (item,) = may.document("members", "app")["items"]
    assert item["complete"] and [one["part"] for one in item["members"]] == ["holder", "candidate"]
    done = may.run("sessions", "destroy", holder, "--yes")
    assert done.returncode == UNREACHABLE and "Permission denied" in done.stderr
    assert 'needs session "' in done.stderr and done.stderr.endswith('{ policy = "write" }\n')


def test_without_the_right_to_read_a_key_it_is_told(guarded: Guarded, tmp_path: Path, unique: str) -> None:
    rules = f'key "{unique}/leader" {{ policy = "read" }}\n{READS_SESSIONS}'
    file = File(tmp_path / "c.yaml", guarded, unique, guarded.token_of(READS_SESSIONS).secret)
    for arguments in (("members", "app"), ("wait", "app", "--for", "leader")):
        done = file.run(*arguments)
        assert done.returncode == UNREACHABLE and f'key "{unique}/leader"' in done.stderr
    file.in_line(holders=2, waiting=0)
    for words in ("members slots", "wait slots --for free --timeout 0s"):
        done = file.run(*words.split())
        assert done.returncode == UNREACHABLE and f'key "{unique}/slots/.lock"' in done.stderr
    record = f'key "{unique}/slots/.lock" {{ policy = "read" }}\n'
    alone = File(tmp_path / "alone.yaml", guarded, unique, guarded.token_of(record).secret)
    done = alone.run("members", "slots")
    assert done.returncode == UNREACHABLE and f'key_prefix "{unique}/slots/" {{ policy' in done.stderr
    one = File(tmp_path / "one.yaml", guarded, unique, guarded.token_of(rules).secret)
    assert one.run("wait", "app", "--for", "free").returncode == DONE
    one.leads()
    done = one.run("status", "--cluster")
    assert done.returncode == DONE and "holder" in done.stdout and "Permission denied" in done.stdout


def test_a_session_whose_keys_may_not_be_read_is_no_orphan(
    guarded: Guarded, tmp_path: Path, unique: str
) -> None:
    """The session may be the holder's, so nothing may suggest that it can be destroyed."""
    rules = below(f"{unique}/slots") + READS_SESSIONS
    file = File(tmp_path / "c.yaml", guarded, unique, guarded.token_of(rules).secret)
    holder = file.leads()
    file.session()
    assert orphans(file) == []
    assert "the token may not read the keys of app" in file.run("sessions").stdout
    assert "what else it holds is not known" in file.run("sessions", "destroy", holder).stdout
