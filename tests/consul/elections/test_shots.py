"""A machine that led many elections is lost, beside a real Consul: who switches it off, and how often."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.consul.elections.test_fence import leave_as_lost
from tests.support.consul import Agent
from tests.support.supervisor import Supervisor, until

MANY = 40
NODES = ("a", "b", "c")
SESSIONS_MAX = 4  # of the device at a time
# Takes one of the device's sessions, else fails; says whom it switches off.
DEVICE = """
exec 9>>{folder}/device; flock 9; echo begin $CONSUL_SUPERVISOR_PREVIOUS_TARGET >&9
[ $(($(grep -c begin {folder}/device) - $(grep -c end {folder}/device))) -le {most} ] || exit 3
flock -u 9; sleep 0.5; flock 9; echo end $CONSUL_SUPERVISOR_PREVIOUS_TARGET >&9
"""


class Survivors:
    """Supervisors whose elections a lost machine led."""

    def __init__(self, agent: Agent, folder: Path, unique: str) -> None:
        self.agent, self.folder, self.unique = agent, folder, unique
        self.nodes: dict[str, Supervisor] = {}
        self._exits = ExitStack()

    @property
    def device(self) -> str:
        return DEVICE.format(folder=self.folder, most=SESSIONS_MAX)

    def fence(self, node: str, **more: Any) -> dict[str, Any]:
        usual = {"shell": self.device, "timeout": "10s"} if "try" not in more else {}
        return {**usual, "target": f"bmc-{node}", "after": "500ms", "exclusive": True, **more}

    def join(self, node: str, count: int = MANY, fleet: bool = True, **more: Any) -> Supervisor:
        """Start a node that contends for so many elections. more: keys of the whole file, and ``fence``."""
        fence = more.pop("fence", None) or self.fence(node)
        told = f"echo {node} $CONSUL_SUPERVISOR_NAME $CONSUL_SUPERVISOR_PREVIOUS_END"
        told += " $CONSUL_SUPERVISOR_FENCE_METHOD"
        election = {"session": {"ttl": "10s", "lock_delay": "60s"}, "fence": fence}
        election["on_acquire"] = [{"shell": f"{told} >>{self.folder}/acts"}]
        elections = {name: {"key": f"{self.unique}/{name}/leader", **election} for name in names(count)}
        service = self.unique.replace("/", "-").replace("_", "-")[:50].strip("-")
        of_fleet = {"fleet": {"prefix": f"{self.unique}/fleet", "service": service}} if fleet else {}
        config = {"consul": {"address": self.agent.url}, "elections": elections, **of_fleet, **more}
        self.nodes[node] = self._exits.enter_context(Supervisor(self.folder / node, config))
        return self.nodes[node]

    def lost(self, count: int = MANY, **record: Any) -> None:
        """Leave the keys as a machine does that led all of these elections."""
        for name in names(count):
            leave_as_lost(self.agent, f"{self.unique}/{name}/leader", lock_delay="60s", **record)

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []

    @property
    def begun(self) -> list[str]:
        return [line for line in self.lines("device") if line.startswith("begin")]

    def note(self, **fields: object) -> None:
        """Put a note of a shot into Consul, as another program might."""
        usual = {"machine": "another", "host": "db7", "boot": "b", "target": "bmc-7", "by": "x", "method": ""}
        shot = {**usual, "at": 0.0, "token": 10**9, "takes": 5.0, "state": "done", **fields}
        document = json.dumps({"version": 1, "shots": [shot]}).encode()
        assert self.agent.kv_put(f"{self.unique}/fleet/shots", document)

    def notes(self) -> list[dict[str, Any]]:
        entry = self.agent.kv_get(f"{self.unique}/fleet/shots")
        return [] if entry is None else list(json.loads(entry["Value"])["shots"])

    def close(self) -> None:
        self._exits.close()


def names(count: int) -> list[str]:
    return [f"e{number:02}" for number in range(count)]


@pytest.fixture
def survivors(tmp_path: Path, unique: str) -> Iterator[Survivors]:
    limits = {"limits": {"http_max_conns_per_client": 1000}}  # of three nodes
    with Agent(tmp_path / "consul", config=limits) as agent:
        made = Survivors(agent, tmp_path, unique)
        yield made
        made.close()


@pytest.mark.parametrize("fleet", [True, False])
def test_a_machine_that_led_forty_elections_is_shot_once(survivors: Survivors, fleet: bool) -> None:
    survivors.lost()
    for node in NODES:
        survivors.join(node, fleet=fleet)
    until(lambda: len(survivors.lines("acts")) == MANY, "each election has a node that acts")
    assert {line.split()[2] for line in survivors.lines("acts")} == {"fenced"}
    assert len(survivors.begun) == (
        1 if fleet else len({line.split()[0] for line in survivors.lines("acts")})
    )
    if fleet:
        (note,) = survivors.notes()
        assert (note["state"], note["target"], note["host"]) == ("done", "bmc-7", "db7")


def test_the_second_method_acts_where_the_first_one_hangs(survivors: Survivors) -> None:
    survivors.lost(2)
    methods = [{"name": "bmc", "shell": "sleep 60", "timeout": "1s"}, {"name": "pdu", "shell": ":"}]
    node = survivors.join("a", 2, fence=survivors.fence("a", **{"try": methods}))
    until(lambda: len(survivors.lines("acts")) == 2, "both act")
    assert {tuple(line.split()[2:]) for line in survivors.lines("acts")} == {("fenced", "pdu")}
    node.wait_line("hook-failed", hook="bmc")
    node.wait_line("role", role="acquiring", note="fenced by pdu after bmc failed")
    until(lambda: history(survivors) == "fenced by pdu after bmc failed", "the history says so")


def test_a_machine_that_boots_in_the_middle_of_a_run_is_not_shot_again(survivors: Survivors) -> None:
    """Its supervisor says of one election that the tenure has ended; the run goes on for the other one."""
    survivors.lost(2)
    survivors.join("a", 2, fence=survivors.fence("a", shell=f"{survivors.device}sleep 3"))
    until(lambda: survivors.begun, "the fence runs")
    key = f"{survivors.unique}/e00/leader/.tenure"
    entry = survivors.agent.kv_get(key)
    assert entry is not None
    said = json.dumps({**json.loads(entry["Value"]), "state": "ended"}).encode()
    assert survivors.agent.kv_put(key, said)
    until(lambda: survivors.lines("acts") == ["a e00 said"], "the first one acts")
    until(lambda: survivors.lines("acts")[1:] == ["a e01 fenced fence"], "the other one acts")
    assert len(survivors.begun) == 1


def history(survivors: Survivors) -> str | None:
    entry = survivors.agent.kv_get(f"{survivors.unique}/fleet/history/e00")
    return None if entry is None else json.loads(entry["Value"])["tenures"][0]["guard"]


@pytest.mark.parametrize(
    "wrong",
    [{"boot": "c"}, {"machine": "clone"}, {"token": 1}, {"state": "shooting", "takes": 0.5}, {"at": "x"}],
)
def test_a_note_of_anything_else_ends_no_guard(survivors: Survivors, wrong: dict[str, object]) -> None:
    survivors.lost(1)
    survivors.note(**wrong)
    survivors.join("a", 1)
    until(lambda: len(survivors.lines("acts")) == 1, "it acts")
    assert len(survivors.begun) == 1


def test_what_is_no_document_of_notes_is_left_alone(survivors: Survivors) -> None:
    survivors.lost(1)
    assert survivors.agent.kv_put(f"{survivors.unique}/fleet/shots", b"mine")
    survivors.join("a", 1)
    until(lambda: len(survivors.lines("acts")) == 1, "it acts")
    entry = survivors.agent.kv_get(f"{survivors.unique}/fleet/shots")
    assert entry is not None and entry["Value"] == b"mine" and len(survivors.begun) == 1


def test_beyond_the_limit_nobody_is_shot_and_one_word_ends_each_wait(survivors: Survivors) -> None:
    """Six machines, each of which led one election, and two survivors."""
    for number, name in enumerate(names(6)):
        place: dict[str, Any] = {"machine": f"m{number}", "host": f"db{number}", "target": f"bmc-{number}x"}
        leave_as_lost(survivors.agent, f"{survivors.unique}/{name}/leader", lock_delay="60s", **place)
    for node in NODES[:2]:
        survivors.join(node, 6, fence_limit={"machines": 2})
    until(lambda: len(survivors.lines("acts")) == 2, "two act")

    def limited() -> list[str]:
        said = (item for each in survivors.nodes.values() for item in each.status()["items"])
        return [item["name"] for item in said if "fence_limit is reached" in " ".join(item["warnings"])]

    until(lambda: len(limited()) == 4, "four say that they wait")
    assert len(survivors.begun) == 2
    survivors.nodes["a"].stop()
    survivors.nodes["a"].start()
    until(lambda: len(survivors.nodes["a"].lines("started")) == 2, "it has started again")
    left = next(name for name in names(6) if name in limited())
    number = int(left[1:])
    for each in survivors.nodes.values():
        each.ask("confirm-off", "--all", f"db{number}")
    until(
        lambda: any(left in line and "confirmed" in line for line in survivors.lines("acts")), "one more acts"
    )
    assert len(survivors.begun) == 2
    done = survivors.nodes["b"].ask("confirm-off", "--all", "db99")
    assert done.returncode == 1 and "no item of this node waits for db99" in done.stderr
