"""The machines of the rows machine-loss: ``python -m bench.machines FOLDER LOSSES [GOSSIP]``.

Two machines of a real cluster hold and wait, and the holder's machine is lost again and again, killed and cut
off in turn. GOSSIP is a ``gossip_lan`` as JSON, and then machines are only killed. The lost machine is
replaced, and waits from then on. Standard output gets the samples as JSON.
"""

import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.lives import Life, lives
from supervisor.adapters.runtime.clock import boottime
from tests.support.consul import BINARY
from tests.support.program import Program
from tests.system.cluster import election
from tests.system.cluster.cluster import CLIENTS, Cluster
from tests.system.cluster.consul import HTTP_PORT
from tests.system.cluster.program import DONE, exit_code_of, working_folder

MODULE = "bench.machines"
KILLED, CUT_OFF = "machine killed", "machine cut off"
CONSUL_LOCK, KEEPALIVED = "consul lock", "keepalived"
SERF = {"node_checks": ["serfHealth"]}
QUICK = {"lock_delay": "7s", "confirm_every": "1s"}
QUICK_STOP = "500ms"
FENCE = """sleep 0.2; pkill -9 -f "stamps-fenced $CONSUL_SUPERVISOR_PREVIOUS_TARGET$" || test $? = 1"""
"""Switches off, of a machine, what acts there. A machine that was killed is off already."""
LEADER_CHANGE = "3s"  # of the cluster, whose raft_multiplier is 1
PATH = {"PATH": os.environ["PATH"]}
STAMPER = Path(__file__).with_name("stamper.py")
SETTLE_S = 5.0
PHASE_S = 10 / 3  # the default ttl / 3: a loss may come at any time between two renewals
ALIVE_S = 1.0  # a younger stamp shows that the application acts
WATCH_S = 60.0  # more than `check` promises of any file, and than `consul lock` goes on
KEEPALIVED_CONF = """
global_defs {{
    script_user root
}}
vrrp_instance loss {{
    state BACKUP
    nopreempt
    interface eth0
    virtual_router_id 77
    virtual_ipaddress {{
        10.77.0.77/24
    }}
    notify_master "{child}"
}}
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One loss as one contender met it, in seconds from the loss.

    how: KILLED or CUT_OFF.
    contender: the name of an election of ours, CONSUL_LOCK or KEEPALIVED.
    next_s: when the application on the other machine began to act.
    old_s: when the application on the lost machine stopped, at the latest at the end of the cut.
    """

    how: str
    contender: str
    next_s: float
    old_s: float

    @property
    def both_s(self) -> float:
        """How long both applications acted at once."""
        return max(0.0, self.old_s - self.next_s)


def elections(child: Callable[[str], list[str]], target: str = "node", after: str = "2s") -> dict[str, Any]:
    """Return the elections of the file under test by their names.

    child: the application of each.
    target, after: of the fence.
    """
    quick: dict[str, Any] = {"stop_timeout": QUICK_STOP}
    fence = {"shell": FENCE, "timeout": "5s", "target": target, "after": after, "exclusive": True}
    fenced = {"session": {"lock_delay": "45s", **SERF}, "fence": fence}
    return {
        "defaults": {"run": {"exec": child("defaults")}},
        "defaults-serfhealth": {"session": SERF, "run": {"exec": child("defaults-serfhealth")}},
        "quick": {"session": {**QUICK, **SERF}, "run": {"exec": child("quick"), **quick}},
        "fenced": {**fenced, "run": {"exec": child("fenced"), **quick}},
        "quickest": {"session": {**QUICK, "ttl": "3s"}, "run": {"exec": child("quickest"), **quick}},
    }


OURS = tuple(elections(lambda name: []))
CONTENDERS = (*OURS, CONSUL_LOCK, KEEPALIVED)


class Stamps:
    """The stamps of one contender's applications, on all machines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mark = 0
        path.touch()

    def forget(self) -> None:
        """Pass over all that is written up to now."""
        self._mark = self.path.stat().st_size

    def lives(self, node: str) -> list[Life]:
        """Return the lives of the application on this machine since the last ``forget``."""
        with self.path.open() as file:
            file.seek(self._mark)
            return [life for life in lives(file.read()) if life.node == node]


class Machines:
    """Two machines on which every contender runs. ``holder``: the one whose applications act."""

    def __init__(self, cluster: Cluster, after: str) -> None:
        self._cluster = cluster
        self._after = after  # of the fence
        self.holder, self.waiter = CLIENTS[:2]
        self._stamps = {
            name: Stamps(cluster.folder / f"stamps-{name.replace(' ', '-')}") for name in CONTENDERS
        }
        self._programs = {
            node: [self._supervisor(node), self._consul_lock(node), self._keepalived(node)]
            for node in (self.holder, self.waiter)
        }

    def start(self) -> None:
        """Start every contender, first on the holder."""
        self._start(self.holder)
        self._cluster.until(lambda: self._all_act(self.holder), "every contender holds")
        self._start(self.waiter)

    def lose(self, how: str) -> list[Sample]:
        """Lose the holder's machine, watch what follows, and replace it by a machine that waits."""
        self._cluster.until(self._all_wait, "every contender waits on the other machine")
        self._cluster.pass_time(SETTLE_S + random.uniform(0, PHASE_S))
        for stamps in self._stamps.values():
            stamps.forget()
        lost_at = boottime()
        if how == KILLED:
            self._cluster.network.machines[self.holder].power_off()
        else:
            self._cluster.network.cut(self.holder)
        self._cluster.pass_time(WATCH_S)
        self._cluster.until(lambda: self._all_act(self.waiter), "every contender holds again")
        samples = list(self._samples(how, lost_at))
        self._replace(self.holder)
        self.holder, self.waiter = self.waiter, self.holder
        return samples

    def _samples(self, how: str, lost_at: float) -> Iterator[Sample]:
        for name, stamps in self._stamps.items():
            next_s = min(life.begin for life in stamps.lives(self.waiter)) - lost_at
            old_s = max([life.end - lost_at for life in stamps.lives(self.holder)], default=0.0)
            yield Sample(how, name, next_s, max(0.0, old_s))

    def _replace(self, node: str) -> None:
        agent = self._cluster.clients[node]
        self._cluster.network.machines[node].power_off()
        for process in (agent, *self._programs[node]):
            process.wait()
        for pid in self._cluster.folder.glob(f"{node}-keepalived/*pid"):
            pid.unlink()  # a machine that boots has none, and keepalived takes an old one for its own
        self._cluster.network.heal(node)
        agent.start()
        self._cluster.until(lambda: self._is_healthy(node), f"Consul counts {node} as healthy")
        self._start(node)

    def _start(self, node: str) -> None:
        for program in self._programs[node]:
            program.start()

    def _all_act(self, node: str) -> bool:
        """Return whether the applications of all contenders act on this machine now."""
        since = boottime() - ALIVE_S
        return all(any(life.end > since for life in stamps.lives(node)) for stamps in self._stamps.values())

    def _all_wait(self) -> bool:
        """Return whether the waiter's machine has a session for each contender; keepalived needs none."""
        sessions = self._of_consul(f"/session/node/{self.waiter}?consistent")
        ours = {f"consul-supervisor:{name}" for name in OURS}
        names = {session["Name"] for session in sessions or []}
        return names > ours

    def _is_healthy(self, node: str) -> bool:
        checks = self._of_consul(f"/health/node/{node}?consistent")
        return any(
            check["CheckID"] == "serfHealth" and check["Status"] == "passing" for check in checks or []
        )

    def _of_consul(self, path: str) -> Any:
        """Return the answer of a server. None: there is none yet."""
        try:
            return self._cluster.server.ask(path)
        except OSError:
            return None

    def _supervisor(self, node: str) -> Program:
        items = elections(lambda name: self._child(name, node), node, self._after)
        return election.supervisor(self._cluster, node, items, self._cluster.folder)

    def _consul_lock(self, node: str) -> Program:
        address = f"-http-addr=127.0.0.1:{HTTP_PORT}"
        child = self._child(CONSUL_LOCK, node)
        return self._process(node, "lock", [str(BINARY), "lock", address, "-shell=false", "lock", *child])

    def _keepalived(self, node: str) -> Program:
        folder = self._cluster.folder / f"{node}-keepalived"
        folder.mkdir()
        conf = folder / "keepalived.conf"
        conf.write_text(KEEPALIVED_CONF.format(child=" ".join(self._child(KEEPALIVED, node))))
        pids = ["--pid", str(folder / "pid"), "--vrrp_pid", str(folder / "vrrp-pid")]
        argv = ["keepalived", "--vrrp", "--dont-fork", "--log-console", "--use-file", str(conf), *pids]
        return self._process(node, KEEPALIVED, argv)

    def _process(self, node: str, what: str, argv: Sequence[str]) -> Program:
        log = self._cluster.folder / node / f"{what}.log"
        return Program(self._cluster.network.machines[node].inside(*argv), log, PATH)

    def _child(self, contender: str, node: str) -> list[str]:
        return [sys.executable, "-ISs", str(STAMPER), str(self._stamps[contender].path), node]


def main(arguments: Sequence[str]) -> int:
    """Lose machines as often as the arguments say, and return the exit code."""
    folder, losses, *gossip = arguments
    settings = json.loads(gossip[0]) if gossip else {}
    return exit_code_of(lambda: _lose(Path(folder), int(losses), settings))


def _lose(folder: Path, losses: int, gossip: dict[str, object]) -> int:
    samples: list[Sample] = []
    hows = (KILLED,) if gossip else (KILLED, CUT_OFF)
    with working_folder(folder) as place, Cluster(place, gossip) as cluster:
        machines = Machines(cluster, "0s" if gossip else "2s")
        machines.start()
        for number in range(losses):
            how = hows[number % len(hows)]
            print(f"bench: {how}, {number + 1} of {losses}", file=sys.stderr, flush=True)
            samples += machines.lose(how)
    print(json.dumps([asdict(sample) for sample in samples]))
    return DONE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
