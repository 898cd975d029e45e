"""Three booted machines, as a small production has them: a server of Consul and our daemon on each.

All have one file with the election ``app``. Its hooks leave a line with the time in a file of their machine.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import yaml

from tests.support.supervisor import until
from tests.system.machine.group import Group
from tests.system.machine.machine import Machine, Ran
from tests.system.machine.node import CONFIG, EVENTS, UNIT, install_product
from tests.system.machine.pair import OF_THREE
from tests.system.machine.wheels import make_wheels

COMMAND = "consul-supervisor"
FAILS = "/srv/fails"  # while a machine has this file, its on_lose fails
HEALTH = "http://127.0.0.1:8500/v1/operator/autopilot/health"
# This command fails while one of Consul's servers does not follow the others.
HEALTHY = ("python3", "-c", f"import urllib.request as r; r.urlopen('{HEALTH}')")
ROLES_S = 90.0  # twice the ttl, the lock-delay, and a busy machine
SESSION = {"ttl": "10s", "lock_delay": "25s"}


def stamp(words: str) -> str:
    """Return a shell command that records these words with the time."""
    return f'echo "$(date +%s.%N) {words}" >>{EVENTS}'


class Stamp(NamedTuple):
    """A line that a hook left.

    at: seconds of the clock that all machines share.
    event: acquire, or lose once on_lose has done its work.
    """

    at: float
    event: str
    reason: str
    node: str


class Trio(Group):
    """Machines ``one``, ``two`` and ``three``; the election goes on from test to test."""

    addresses = OF_THREE
    servers = tuple(addresses)

    def _build(self) -> None:
        make_wheels(self.folder / "wheels")
        super()._build()
        by_hook = stamp("$CONSUL_SUPERVISOR_EVENT $CONSUL_SUPERVISOR_REASON")
        election = {
            "key": "service/app/leader",
            "session": SESSION,
            "on_acquire": [{"shell": by_hook, "timeout": "2s"}],
            "on_lose": [{"shell": f"test ! -e {FAILS} && {by_hook}", "timeout": "2s"}],
        }
        for machine in self.machines.values():
            install_product(machine, self.folder / "wheels")
            machine.write(CONFIG, yaml.safe_dump({"elections": {"app": election}}))
        for machine in self.machines.values():
            machine.did(f"systemctl enable -q --now {UNIT}")
        self.wait_candidates()

    def _consul_config(self, name: str) -> dict[str, Any]:
        """Have a server that is cut off stay known, so that its sessions live as long as their TTL."""
        return {**super()._consul_config(name), "autopilot": {"cleanup_dead_servers": False}}

    # --- as an operator types them --------------------------------------------------------------------

    def run(self, node: str, words: str) -> Ran:
        return self.machines[node].sh(f"{COMMAND} {words}")

    def did(self, node: str, words: str) -> str:
        """Return what a command of the product wrote there. AssertionError: it failed."""
        ran = self.run(node, words)
        assert ran.returncode == 0, f"{words} on {node}: {ran}\n{self.log(node)}"
        return ran.stdout

    def leading_server(self) -> str:
        """Return the machine whose server leads Consul itself."""
        peers = self.machines["one"].did("consul operator raft list-peers").splitlines()
        return next(line.split()[0] for line in peers if " leader " in line)

    def members(self, seen_from: str) -> dict[str, str]:
        """Return by node the part that ``members`` shows on this machine; empty without an answer."""
        said = self.run(seen_from, "members app --json").stdout
        listed = json.loads(said)["items"][0]["members"] if said else []
        return {member["consul_node"]: member["part"] for member in listed}

    def history(self, seen_from: str) -> list[tuple[str, str | None]]:
        """Return who led and why that ended, the newest tenure first; empty: none is known."""
        said = self.run(seen_from, "history app --json").stdout
        tenures = json.loads(said)["tenures"] if said else []
        return [(each["node"], each["why"]) for each in tenures]

    def nodes(self, seen_from: str) -> dict[str, dict[str, Any]]:
        """Return the daemons in Consul's catalog as ``members`` shows them, by name."""
        item = json.loads(self.did(seen_from, "members app --json"))["items"][0]
        return {each["node"]: each for each in item["nodes"]}

    def lose_machine(self, node: str) -> None:
        """Have this machine lose its power, which ends what its hooks began."""
        machine = self.machines[node]
        machine.kill()
        machine.write(EVENTS, f"{machine.read(EVENTS)}{time.time()} lose power\n")

    def role(self, node: str) -> str:
        return str(self._item(node)["role"])

    def _item(self, node: str) -> dict[str, Any]:
        said = self.did(node, "status app --json")
        item: dict[str, Any] = json.loads(said)["items"][0]
        return item

    # --- what the machines do --------------------------------------------------------------------------

    def wait_candidates(self) -> str:
        """Return the holder, once every machine shows it and two candidates."""

        def shown() -> dict[str, str]:
            first, *rest = (self.members(node) for node in self.machines)
            whole = sorted(first.values()) == ["candidate", "candidate", "holder"]
            return first if whole and all(each == first for each in rest) else {}

        logs = "\n".join(map(self.log, self.machines))
        parts = until(shown, f"one holds and two are candidates\n{logs}", ROLES_S)
        return next(node for node, part in parts.items() if part == "holder")

    def wait_consul(self) -> None:
        """Return when Consul can do without any one of its servers."""
        self.wait_whole()
        until(lambda: self.machines["one"].run(*HEALTHY).returncode == 0, "all servers follow", ROLES_S)

    def wait_members(self, seen_from: str, shown: dict[str, str]) -> None:
        until(lambda: self.members(seen_from) == shown, f"{seen_from} shows {shown}", ROLES_S)

    @contextmanager
    def cut_off(self, node: str) -> Iterator[None]:
        """Unplug this machine from the other two within the block."""
        machine = self.machines[node]
        machine.did("ip link set host0 down")
        try:
            yield
        finally:
            machine.did("ip link set host0 up")

    def end_by_hand(self, node: str) -> None:
        """Mend on_lose, and do its work once as an operator does before ``recover``."""
        self.machines[node].did(f"rm {FAILS}; {stamp('lose by-hand')}")

    # --- what the hooks recorded ----------------------------------------------------------------------

    def stamps(self) -> list[Stamp]:
        return sorted(each for node, machine in self.machines.items() for each in _stamps(machine, node))


def _stamps(machine: Machine, node: str) -> Iterator[Stamp]:
    for line in machine.read(EVENTS).splitlines():
        at, event, reason = line.split()
        yield Stamp(float(at), event, reason, node)
