"""The machines of the target pacemaker: three of them, one application, and the device that kills them.

The application stamps ten times a second while it acts. Both systems start it by systemd, and have the same
command to switch another machine off: it leaves the name in a file, and a thread of the bench, which stands
in for a power switch, kills that machine and then removes the file.
"""

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench.lives import Life, lives
from bench.way import Step, way
from tests.support.supervisor import until
from tests.system.machine.group import Group
from tests.system.machine.machine import PACEMAKER, Machine
from tests.system.machine.node import CONFIG, UNIT, install_product
from tests.system.machine.trio import Trio
from tests.system.machine.wheels import make_wheels

PAUSE_S = 25.0
KILLED, PAUSED = "machine killed", f"machine paused for {PAUSE_S:g} s"
STAMP_S = 0.1  # from one stamp of the application to its next one
SETTLE_S = 5.0
PHASE_S = 10 / 3  # the ttl / 3: a loss may come at any time between two renewals
WATCH_S = 120.0  # more than either system needs to act, and to come to rest
AFTER_S = 5.0  # the watch goes on, so that a former holder that acts again is seen
DEVICE_LOOKS_S = 0.02
STAMPS, ASKED, SWITCH_OFF = "/srv/stamps", "/srv/asked", "/usr/local/sbin/switch-off"
APPLICATION = f"""#!/bin/sh
node=$(hostname)
while :; do date "+$node $$ %s.%N" >>{STAMPS}; sleep {STAMP_S}; done
"""
APPLICATION_UNIT = "[Service]\nExecStart=/usr/local/sbin/app\n"
SWITCHING_OFF = f"""#!/bin/sh
echo "$1" >{ASKED}.new && mv {ASKED}.new {ASKED}
while [ -e {ASKED} ]; do sleep 0.02; done
"""
AFTER = "1s"  # the least of which `check` does not warn
ONE_BUILD = threading.Lock()  # pip builds in the tree itself
GOSSIP = {"probe_interval": "200ms", "probe_timeout": "100ms", "suspicion_mult": 3}
LOG = {"level": "debug", "format": "json"}
ELECTION: dict[str, Any] = {
    "key": "service/app/leader",
    "session": {"ttl": "10s", "lock_delay": "45s", "node_checks": ["serfHealth"]},
    "on_acquire": [{"shell": "systemctl start app", "timeout": "10s"}],
    "on_lose": [{"shell": "systemctl stop app", "timeout": "5s"}],
    "fence": {
        "shell": f'{SWITCH_OFF} "$CONSUL_SUPERVISOR_PREVIOUS_TARGET"',
        "timeout": "20s",
        "after": AFTER,
        "exclusive": True,
    },
}
# Pacemaker's agent for that device: what it shall do comes by standard input.
AGENT = f"""#!/bin/sh
while IFS='=' read -r name value; do
    case $name in
    action) action=$value ;;
    nodename) target=$value ;;
    esac
done
case $action in
off | reboot) {SWITCH_OFF} "$target" ;;
metadata)
    cat <<END
<?xml version="1.0"?>
<resource-agent name="fence_bench"><longdesc/><parameters>
<parameter name="port" required="0"><content type="string"/></parameter>
</parameters><actions>
<action name="off"/><action name="reboot"/><action name="monitor"/><action name="metadata"/>
</actions></resource-agent>
END
    ;;
esac
"""
COROSYNC = """
totem {{
    version: 2
    cluster_name: bench
    {totem}
}}
quorum {{
    provider: corosync_votequorum
}}
nodelist {{{nodes}
}}
"""
COROSYNC_NODE = """
    node {{
        nodeid: {}
        name: {}
        ring0_addr: {}
    }}"""
RESOURCES = """<resources>
<primitive id="fence" class="stonith" type="fence_bench"><instance_attributes id="fence-settings">
<nvpair id="fence-list" name="pcmk_host_list" value="one two three"/>
</instance_attributes></primitive>
<primitive id="app" class="systemd" type="app">
<operations><op id="app-monitor" name="monitor" interval="10s"/></operations>
</primitive>
</resources>"""
# A machine that returns does not get the application back. A cluster that pcs makes has this as well.
STAYS = "crm_attribute --type rsc_defaults --name resource-stickiness --update 1"


@dataclass(frozen=True, slots=True)
class Sample:
    """One loss: after how many seconds the next application acted, and for how long both did.

    way: what happened until then, if the system tells. had_leader: whether Consul's leading server was lost.
    """

    next_s: float
    both_s: float
    way: Sequence[Step] = ()
    had_leader: bool = False


class Machines(Group):
    """Three machines of which one acts, whatever the system that sees to it."""

    addresses = Trio.addresses
    servers: Sequence[str] = tuple(addresses)
    tree = PACEMAKER
    had_leader = False  # whether the machine that was lost last had Consul's leading server

    def _build(self) -> None:
        super()._build()
        for machine in self.machines.values():
            machine.write("/etc/machine-id", f"{uuid.uuid4().hex}\n")  # all come from one tree
            machine.write("/usr/local/sbin/app", APPLICATION, 0o755)
            machine.write("/etc/systemd/system/app.service", APPLICATION_UNIT)
            machine.write(SWITCH_OFF, SWITCHING_OFF, 0o755)
            machine.did("systemctl daemon-reload")
        ended = threading.Event()
        device = threading.Thread(target=self._switch_off, args=(ended,))
        device.start()
        self._exits.callback(device.join)
        self._exits.callback(ended.set)

    def _switch_off(self, ended: threading.Event) -> None:
        """Kill each machine that another one asks for, until the end."""
        while not ended.wait(DEVICE_LOOKS_S):
            for machine in self.machines.values():
                if name := machine.read(ASKED).strip():
                    self.machines[name].kill()
                    (machine.root / ASKED.lstrip("/")).unlink()

    def wait_settled(self) -> None:
        """Return when the system runs on all machines and has nothing left to do."""
        raise NotImplementedError

    def lose(self, how: str) -> Sample:
        """Lose the machine that acts, watch what follows, and have three machines again."""
        self.wait_settled()
        for machine in self.machines.values():
            machine.write(STAMPS, "")
        time.sleep(SETTLE_S + random.uniform(0, PHASE_S))
        (holder,) = self._acting_since(time.time() - 1)
        lost = self.machines[holder]
        self.had_leader = self._leads(holder)
        lost_at = time.time()
        lost.kill() if how == KILLED else lost.pause()
        until(lambda: self._acting_since(lost_at) - {holder}, f"another one acts than {holder}", WATCH_S)
        if how == PAUSED:
            time.sleep(max(0.0, lost_at + PAUSE_S - time.time()))
            if lost.is_up:
                lost.resume()
        time.sleep(AFTER_S)
        sample = self._told(_sample([*self._lives()], holder, lost_at), holder, lost_at)
        if not lost.is_up:
            lost.boot()
        return sample

    def _leads(self, holder: str) -> bool:
        """Return whether Consul's leading server is on this machine."""
        return False

    def _told(self, sample: Sample, holder: str, lost_at: float) -> Sample:
        """Return the sample with what the logs tell of the way."""
        return sample

    def _lives(self) -> Iterator[Life]:
        for machine in self.machines.values():
            yield from lives(machine.read(STAMPS))

    def _acting_since(self, at: float) -> set[str]:
        return {life.node for life in self._lives() if life.end > at}


def _sample(lived: Sequence[Life], holder: str, lost_at: float) -> Sample:
    """Return what these lives say; each application acts until its next stamp would have come."""
    former = [life for life in lived if life.node == holder]
    later = [life for life in lived if life.node != holder and life.begin > lost_at]
    both_s = sum(
        max(0.0, min(old.end, new.end) + STAMP_S - max(old.begin, new.begin))
        for old in former
        for new in later
    )
    return Sample(min(life.begin for life in later) - lost_at, both_s)


class Supervised(Machines):
    """Machines with a server of Consul and a supervisor each.

    gossip: settings of Consul's gossip. after: how long the fence waits. with_leader: whether Consul's
    leading server is on the machine that is lost. None: as it comes.
    """

    def __init__(
        self,
        folder: Path,
        gossip: Mapping[str, object] = {},
        after: str = AFTER,
        *,
        with_leader: bool | None = None,
    ) -> None:
        super().__init__(folder)
        self._gossip, self._after, self._with_leader = gossip, after, with_leader

    def _build(self) -> None:
        with ONE_BUILD:
            make_wheels(self.folder / "wheels")
        super()._build()
        fence = {**ELECTION["fence"], "after": self._after}
        for machine in self.machines.values():
            install_product(machine, self.folder / "wheels")
            config = {"log": LOG, "elections": {"app": {**ELECTION, "fence": fence}}}
            machine.write(CONFIG, yaml.safe_dump(config))
        for machine in self.machines.values():
            machine.did(f"systemctl enable -q --now {UNIT}")

    def _consul_config(self, name: str) -> dict[str, Any]:
        config = {**super()._consul_config(name), "log_level": "info"}
        return config | ({"gossip_lan": dict(self._gossip)} if self._gossip else {})

    def wait_settled(self) -> None:
        self.wait_whole()
        until(lambda: all(map(_settled, self.machines.values())), "three voters and candidates", WATCH_S)
        while self._with_leader not in (None, self._leads(holder := self._holder())):
            to = f" --to {self._leader}" if self._with_leader else ""
            self.machines[holder].did(f"consul-supervisor step-down app --for 1s{to}")
            time.sleep(SETTLE_S)
            until(lambda: all(map(_settled, self.machines.values())), "candidates again", WATCH_S)

    def _holder(self) -> str:
        acting = until(
            lambda: len(found := self._acting_since(time.time() - 1)) == 1 and found, "one acts", WATCH_S
        )
        assert acting
        return next(iter(acting))

    def _leads(self, holder: str) -> bool:
        return holder == self._leader

    @property
    def _leader(self) -> str:
        """The machine whose server leads Consul."""
        peers = self.machines["one"].did("consul operator raft list-peers").splitlines()
        return next(line.split()[0] for line in peers if " leader " in line)

    def _told(self, sample: Sample, holder: str, lost_at: float) -> Sample:
        shown = f"journalctl --merge -o cat --no-pager --since @{lost_at - 1:.0f} -u consul -u {UNIT}"
        logs = [
            machine.sh(f"journalctl --sync; {shown}").stdout
            for name, machine in self.machines.items()
            if name != holder
        ]
        steps = way(logs, lost_at, lost_at + sample.next_s)
        return replace(sample, way=steps, had_leader=self.had_leader)


def _settled(machine: Machine) -> bool:
    """Return whether this machine sees three voters of Consul, and one holder beside two candidates."""
    peers = machine.sh("consul operator raft list-peers").stdout.splitlines()
    voters = [peer for peer in peers if peer.split()[4] == "true"]
    listed = machine.sh("consul-supervisor members app --json").stdout
    parts = [member["part"] for member in yaml.safe_load(listed)["items"][0]["members"]] if listed else []
    return len(voters) == 3 and sorted(parts) == ["candidate", "candidate", "holder"]


class Pacemaker(Machines):
    """Machines with corosync and Pacemaker. ``totem``: a line for that section of corosync.conf."""

    def __init__(self, folder: Path, totem: str = "") -> None:
        super().__init__(folder)
        self._totem = totem

    def _build(self) -> None:
        super()._build()
        one = self.machines["one"]
        one.write("/srv/resources", RESOURCES)
        one.did("cibadmin --replace --scope resources --xml-file /srv/resources")
        one.did(STAYS)

    def _join(self, name: str) -> None:
        machine = self.machines[name]
        nodes = "".join(
            COROSYNC_NODE.format(number, each, address)
            for number, (each, address) in enumerate(self.addresses.items(), 1)
        )
        machine.write("/etc/corosync/corosync.conf", COROSYNC.format(totem=self._totem, nodes=nodes))
        machine.write("/usr/sbin/fence_bench", AGENT, 0o755)
        machine.did("systemctl enable -q --now corosync pacemaker")

    def wait_whole(self) -> None:
        def online() -> bool:
            shown = self.machines["one"].sh("crm_mon -1 --output-as=xml").stdout
            return shown.count(' online="true"') == len(self.machines)

        until(online, "all are online", WATCH_S)

    def wait_settled(self) -> None:
        self.wait_whole()
        self.machines["one"].did("crm_resource --wait")


SYSTEMS: dict[str, Callable[[Path], Machines]] = {
    "consul-supervisor": Supervised,
    "consul-supervisor, Consul led elsewhere": partial(Supervised, with_leader=False),
    "consul-supervisor, Consul led there": partial(Supervised, with_leader=True),
    "consul-supervisor, quick gossip": partial(Supervised, gossip=GOSSIP, after="0s"),
    "consul-supervisor, quick gossip, Consul led there": partial(
        Supervised, gossip=GOSSIP, after="0s", with_leader=True
    ),
    "Pacemaker, default token (3.65 s)": Pacemaker,
    "Pacemaker, token 1000 (1.65 s)": lambda folder: Pacemaker(folder, "token: 1000"),
}
