"""What happens to a node that holds, as data: which machine must be reset, and when two may act at once."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.system.emulated.acts import acts
from tests.system.emulated.node import DATA, STATE, STOP
from tests.system.watchdog.judge import End, Verdict, judge
from tests.system.watchdog.lab import I6300ESB, SOFTDOG, Duel, Lab

PID = "$(cat /run/supervisor.pid)"
WITNESS_S = 3.0  # how long a scene goes on when another node acts
CALM = 1.5  # timeouts for which a scene goes on; a machine that is reset without need is reset within one
FREEZE_S = 45.0  # longer than the lock-delay and all timeouts
# Stands for an hour: while it lasts, neither what the supervisor knows nor what it waits for changes, so each
# further timeout is like the one before.
SILENCE_S = 60.0
UPGRADES = 3

Play = Callable[[Duel], None]


@dataclass(frozen=True, slots=True)
class Times:
    """The times of the file, in seconds."""

    ttl_s: int
    lock_delay_s: int
    timeout_s: int


USUAL = Times(ttl_s=10, lock_delay_s=30, timeout_s=10)  # the defaults
# On a busy host the start of a supervisor takes 20 s and longer on an emulated machine: neither the session
# nor the watchdog may end before.
PATIENT = Times(ttl_s=30, lock_delay_s=60, timeout_s=40)


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene.

    device: the watchdog of both machines. None: the file names none.
    """

    name: str
    play: Play
    end: End
    device: str | None = I6300ESB
    times: Times = USUAL
    on_lose: str = STOP
    confirm_every: str | None = None
    check: Mapping[str, Any] | None = None

    def settings(self, key: str) -> Mapping[str, Any]:
        """Return the file of both nodes, without what differs between them."""
        session = {"ttl": f"{self.times.ttl_s}s", "lock_delay": f"{self.times.lock_delay_s}s"}
        election = {
            "key": key,
            "session": session | ({"confirm_every": self.confirm_every} if self.confirm_every else {}),
            "on_acquire": [{"shell": "application start"}],
            "on_lose": [{"shell": self.on_lose, "timeout": "8s"}],
        } | ({"candidate_check": self.check} if self.check else {})
        watchdog = {"device": self.device, "timeout": f"{self.times.timeout_s}s"}
        return {"elections": {"app": election}} | ({"watchdog": watchdog} if self.device else {})


def fault(line: str, sign: str = "struck") -> Play:
    """Return a play in which this line of shell hits the holder, which then loses its session.

    sign: what the console shows once the line has done it.
    """

    def play(duel: Duel) -> None:
        duel.old.broken = True
        duel.old.machine.type(f"{line}; echo struck")
        duel.old.see(sign)
        duel.destroy_session()
        duel.new.see_act()

    return play


def upgraded(duel: Duel) -> None:
    """Kill the supervisor time and again, as an upgrade does; each next one adopts the tenure."""
    for _ in range(UPGRADES):
        shown = len(duel.old.console)
        duel.old.machine.type(f"kill -9 {PID}")
        duel.old.see('"role": "holding"', shown)


def stopped(duel: Duel) -> None:
    duel.old.stop()
    duel.new.see_act()


def silent(duel: Duel) -> None:
    """Let Consul say nothing to the holder until that has lost, and for long after that."""
    with duel.old.proxy.silence():
        duel.old.see('"event": "hook-succeeded".*"lose"')
        time.sleep(SILENCE_S)


def frozen_state(duel: Duel) -> None:
    """Freeze the file system of the records for a while, as a snapshot of the machine does."""
    duel.old.machine.type(f"fsfreeze --freeze {STATE}")
    time.sleep(FREEZE_S)
    duel.old.machine.type(f"fsfreeze --unfreeze {STATE}")


def unfit_disks(duel: Duel) -> None:
    """Let the holder's disk hang while the other node's is read-only; free the latter, then both."""
    duel.new.machine.type(f"until mount -o remount,ro {DATA}; do sleep 1; done")  # a check may be writing
    duel.new.see('"event": "check-failed"')
    duel.old.machine.type(f"fsfreeze --freeze {DATA}")
    duel.old.see('"event": "hook-succeeded".*"lose"')
    time.sleep(WITNESS_S)
    assert not acts(duel.new.stamps), "a node acts on a disk that it may not write to"
    duel.new.machine.type(f"mount -o remount,rw {DATA}")
    duel.new.see_act()
    shown = len(duel.old.console)
    duel.old.machine.type(f"fsfreeze --unfreeze {DATA}")
    duel.old.see('"role": "waiting"', shown)


def paused(duel: Duel) -> None:
    """Pause the machine until another node acts, then let it go on; its watch has lost the news meanwhile."""
    watch = duel.old.proxy.hold("answer", "GET", "index=")
    duel.old.machine.order("stop")
    duel.destroy_session()
    duel.new.see_act()
    duel.old.machine.order("cont")
    duel.old.see('"event": "hook-succeeded".*"lose"')
    watch.release()


FROZEN = fault(f"kill -STOP {PID}")
PROGRAM_REMOVED = fault(f"mv /product /removed; kill -9 {PID}")
CRASH = fault("echo c >/proc/sysrq-trigger", "Kernel panic")
# These break on_lose of the one node, and not of the other.
STATE_D, BUT_IN_STATE_D = fault(f"fsfreeze --freeze {DATA}"), f"touch {DATA}/stopped && {STOP}"
STUCK, BUT_STUCK = fault(f"touch {DATA}/broken"), f"test ! -e {DATA}/broken && {STOP}"
# An emulated machine needs seconds to start a process, so a check that merely takes long has not failed.
DISK_CHECK = {"disk": DATA, "interval": "3s", "timeout": "20s", "rise": 1, "fall": 1}
SCENES = (
    Scene("no reset while Consul is silent", silent, End.HANDED_OVER, on_lose=f"sleep 2; {STOP}"),
    Scene("no reset while records hang", frozen_state, End.HELD),
    Scene("no reset while a disk hangs", unfit_disks, End.HANDED_OVER, check=DISK_CHECK),
    Scene("no reset by three upgrades", upgraded, End.HELD, times=PATIENT),
    Scene("no reset by a stop", stopped, End.HANDED_OVER),
    Scene("no reset by a stop, softdog", stopped, End.HANDED_OVER, SOFTDOG),
    Scene("both without a watchdog", FROZEN, End.BOTH, device=None),
    Scene("both after a pause", paused, End.BOTH),
    Scene("both after a pause, confirmed", paused, End.BOTH, confirm_every="1s"),
    Scene("reset when frozen", FROZEN, End.RESET),
    Scene("reset when frozen, softdog", FROZEN, End.RESET, SOFTDOG),
    Scene("reset without its program", PROGRAM_REMOVED, End.RESET),
    Scene("reset when the kernel crashes", CRASH, End.RESET),
    Scene("reset while on_lose hangs", STATE_D, End.RESET, on_lose=BUT_IN_STATE_D),
    Scene("reset when stuck", STUCK, End.RESET, on_lose=BUT_STUCK),
)


def run(scene: Scene, lab: Lab) -> Verdict:
    with lab.duel() as duel:
        duel.begin(scene.settings(duel.key))
        scene.play(duel)
        calm = scene.end in (End.HELD, End.HANDED_OVER)
        time.sleep(CALM * scene.times.timeout_s if calm else WITNESS_S)
        old, new = duel.old, duel.new
        rival = duel.last_contact and duel.last_contact + scene.times.lock_delay_s
        return judge(old.stamps, new.stamps, old.machine.reset_at, rival)
