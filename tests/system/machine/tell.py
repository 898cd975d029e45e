"""Could I tell what happened? Twelve events on three booted machines, each with two commands afterwards.

    python -m tests.system.machine.tell             (root; some fifteen minutes) prints a row for each event
    python -m tests.system.machine.tell cut_off …   only for these

One command runs on the machine that the event hit, and one elsewhere. A row says whether the commands told
what happened, and what they printed of it. The exit code is 1 if one of them did not.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from supervisor.journal.copies import folder_of
from tests.support.supervisor import until
from tests.system.machine.machine import Machine
from tests.system.machine.node import CONFIG, UNIT
from tests.system.machine.trio import FAILS, ROLES_S, Trio

TOKEN = "/etc/consul-token"
STATE, SMALL = "/var/lib/consul-supervisor", "/srv/small"
RECORDS = folder_of("/run/consul-supervisor", STATE)
HTTP = "import sys,urllib.request as r;print(r.build_opener().open(sys.argv[1],timeout=5).read().decode())"
ERRORS = "try:\n {}\nexcept Exception as e:\n print(e, getattr(e,'read',bytes)().decode())"


class Told(Trio):
    """The three machines with access control, a maintenance check and a health check over HTTP."""

    def _consul_config(self, name: str) -> dict[str, Any]:
        """Refuse a token that nobody knows; every request without one is allowed."""
        return {**super()._consul_config(name), "acl": {"enabled": True, "default_policy": "allow"}}

    def _build(self) -> None:
        super()._build()
        for name, machine in self.machines.items():
            config = yaml.safe_load(machine.read(CONFIG))
            config["elections"]["app"]["candidate_check"] = {"maintenance": True}
            config["consul"] = {"token_file": TOKEN}
            config["http"] = {"listen": f"{self.addresses[name]}:8555"}
            machine.write(TOKEN, "anonymous\n")
            machine.write(CONFIG, yaml.safe_dump(config))
            machine.did(f"systemctl restart {UNIT}")
        self.wait_candidates()

    def health(self, node: str, seen_from: str) -> str:
        """Return the words of a node's /healthz, as another machine hears them."""
        ask = ERRORS.format(HTTP)
        url = f"http://{self.addresses[node]}:8555/healthz"
        return self.machines[seen_from].run("python3", "-c", ask, url).stdout

    def calm(self) -> None:
        """Return when everything works again."""
        self.wait_consul()
        self.wait_candidates()
        for node in self.machines:
            until(partial(self._is_well, node), f"{node} is healthy", ROLES_S)

    def _is_well(self, node: str) -> bool:
        return self.run(node, "status --exit-code").returncode == 0


Row = tuple[str, str, str, bool, str, str, bool]


class Table:
    """The rows so far, each printed at once."""

    def __init__(self, trio: Told) -> None:
        self._trio = trio
        self.failed = 0
        print("| event | on the node | it said | | elsewhere | it said | |")
        print("|---|---|---|---|---|---|---|")

    def row(self, event: str, node: str, here: tuple[str, str], there: tuple[str, str]) -> None:
        """Add a row. ``here``, ``there``: the command, and the words of its output that tell the event."""
        other = next(each for each in self._trio.machines if each != node and self._is_up(each))
        cells = [event]
        for where, (command, words) in ((node, here), (other, there)):
            said = self._said(where, node, command)
            line = next((line for line in said.splitlines() if words in " ".join(line.split())), "")
            self.failed += not line
            shown = command if command != "healthz" else f"curl {node}:8555/healthz"
            cells += [
                f"`{shown}`",
                " ".join((line or said).split())[:150].replace("|", "/"),
                "yes" if line else "NO",
            ]
        print("| " + " | ".join(cells) + " |", flush=True)

    def _is_up(self, node: str) -> bool:
        return self._trio.machines[node].run("true").returncode == 0

    def _said(self, where: str, node: str, command: str) -> str:
        if command == "healthz":
            return self._trio.health(node, where)
        ran = self._trio.run(where, command)
        return ran.stdout + ran.stderr


def holder_and_heir(trio: Told) -> tuple[str, str]:
    """Return the leader and another node, once all is well."""
    trio.calm()
    holder = trio.wait_candidates()
    return holder, next(node for node in trio.machines if node != holder)


def held_by_another(trio: Told, node: str, seen_from: str) -> Callable[[], bool]:
    """Return a question: whether another node holds."""
    return lambda: any(part == "holder" and name != node for name, part in trio.members(seen_from).items())


def main(names: list[str]) -> int:
    """Cause the events of these names, or all, print the table, and return the exit code."""
    with TemporaryDirectory(prefix="tell-") as folder, Told(Path(folder)) as trio:
        table = Table(trio)
        for event in (each for each in EVENTS if not names or each.__name__ in names):
            holder, heir = holder_and_heir(trio)
            event(trio, table, trio.machines[holder], holder, heir)
        return 1 if table.failed else 0


def step_down(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    trio.did(holder, f"step-down app --to {heir} --reason 'kernel upgrade'")
    table.row("step-down", holder, ("events app", "step-down"), ("members app", f"holder {heir}"))


def reboot(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine.reboot()
    trio.calm()
    table.row("reboot", holder, ("events app", "shutdown"), ("members app", "holder"))


def maintenance(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine.did("consul maint -enable -reason 'disk swap'")
    until(held_by_another(trio, holder, heir), "it moves", ROLES_S)
    table.row("consul maint", holder, ("events app", "disk swap"), ("members app", "holder"))
    machine.did("consul maint -disable")


def upgrade(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine.did(f"systemctl restart {UNIT}")
    until(lambda: trio.role(holder) == "holding", "it holds again")
    table.row("upgrade", holder, ("status", "version "), ("members app", f"holder {holder}"))
    failed = machine.sh(f"journalctl -u {UNIT} | grep -c \"Failed with result 'signal'\"").stdout.strip()
    print(f"| the same | `journalctl` | Failed with result 'signal': {failed} times | | | | |", flush=True)
    table.failed += failed != "0"


def wrong_token(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine.write(TOKEN, "11111111-2222-3333-4444-555555555555\n")
    until(lambda: "refuses the token" in trio.run(holder, "status").stdout, "it is told", ROLES_S)
    words = "it was deleted or mistyped"
    table.row("wrong token", holder, ("status", words), ("healthz", words))
    machine.write(TOKEN, "anonymous\n")


def disk_full(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    mount = f"mkdir -p {SMALL}; mount -t tmpfs -o size=256k,mode=700 none {SMALL}"
    machine.did(
        f"{mount}; cp -a {RECORDS}/. {SMALL}; mount --bind {SMALL} {RECORDS}; systemctl restart {UNIT}"
    )
    until(lambda: trio.role(holder) == "holding", "it holds again")
    machine.sh(f"dd if=/dev/zero of={RECORDS}/filler bs=1k 2>/dev/null")
    for _ in range(200):
        trio.run(holder, "pause app")
        if trio.run(holder, "resume app").returncode:
            break
    table.row("disk full", holder, ("status", "No space left"), ("healthz", "No space left"))
    machine.did(f"rm {RECORDS}/filler; systemctl stop {UNIT}; umount {RECORDS}; rm -r {RECORDS}")
    machine.did(f"systemctl start {UNIT}")


def broken_file(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    good = machine.read(CONFIG)
    machine.write(CONFIG, good.replace("on_lose", "on_loose"))
    machine.did(f"systemctl restart {UNIT}")
    until(lambda: trio.role(holder) == "holding", "it holds again")
    words = "runs by the configuration of"
    table.row("broken file, restart", holder, ("status", words), ("healthz", words))
    machine.write(CONFIG, good)
    trio.did(holder, "reload")


def never_accepted(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    good = machine.read(CONFIG)
    machine.did(f"systemctl stop {UNIT}; rm {STATE}/accepted.json")
    machine.write(CONFIG, good.replace("on_lose", "on_loose"))
    machine.sh(f"systemctl start {UNIT}")
    until(lambda: "failed" in machine.sh(f"systemctl is-failed {UNIT}").stdout, "it has ended")
    told = ("status", "its configuration cannot be used: /etc/consul-supervisor/app.yaml:")
    table.row("broken file, first start", holder, told, ("members app", "holder"))
    machine.write(CONFIG, good)
    machine.did(f"systemctl reset-failed {UNIT}; systemctl start {UNIT}")


def agent_killed(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine.did("systemctl kill -s KILL consul; sleep 4; systemctl start consul")
    until(lambda: ", over: Consul" in trio.run(holder, "status").stdout, "it is over", ROLES_S)
    told = ("status", ", over: Consul")
    table.row("agent killed", holder, told, ("members app", f"holder {holder}"))


def cut_off(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    with trio.cut_off(holder):
        until(held_by_another(trio, holder, heir), "another node leads", ROLES_S)
        table.row("cut off", holder, ("status", "not answer"), ("members app", "candidate "))


def no_leader(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    gone = [name for name in trio.machines if name != holder]
    for name in gone:
        trio.machines[name].did("systemctl kill -s KILL consul")
    time.sleep(60.0)
    told = ("status", "NOT HEALTHY")
    table.row("Consul without a leader", holder, told, ("healthz", "Consul"))
    table.row(
        "the same, a waiter", gone[0], ("status app", "unknown since"), ("members app", "cannot ask Consul")
    )
    for name in gone:
        trio.machines[name].did("systemctl start consul")


def stuck(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine.did(f"touch {FAILS}")
    trio.run(holder, "step-down app")
    until(lambda: trio.role(holder) == "stuck", "it is stuck", ROLES_S)
    table.row("on_lose fails", holder, ("status", "is stuck"), ("healthz", "is stuck"))
    trio.end_by_hand(holder)
    trio.did(holder, "recover app")


def machine_dead(trio: Told, table: Table, machine: Machine, holder: str, heir: str) -> None:
    machine._end()
    until(held_by_another(trio, holder, heir), "another node leads", ROLES_S)
    line = next(line for line in trio.did(heir, "members app").splitlines() if line.startswith("holder"))
    print(f"| machine dead | | | | `members app` | {' '.join(line.split())} | yes |", flush=True)


EVENTS = (
    *(step_down, maintenance, upgrade, wrong_token, disk_full, broken_file, never_accepted, agent_killed),
    *(cut_off, no_leader, stuck, reboot, machine_dead),
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
