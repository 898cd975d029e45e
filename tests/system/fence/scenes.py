"""What happens to a node that holds, as data: how soon the other node may act, and by which word.

``SILENCE_S=600`` in the environment: in the scenes of an outage no server of Consul runs for so long.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from supervisor.adapters.runtime.clock import boottime
from tests.support.patience import patient
from tests.support.supervisor import until
from tests.system.emulated.machine import SEEN_S
from tests.system.emulated.node import DATA, STATE, STOP
from tests.system.fence.device import SLOW_S, Manner
from tests.system.fence.judge import GAP_S, End, Verdict, judge, missed
from tests.system.fence.lab import Duel, Lab

PID = "$(cat /run/supervisor.pid)"
WATCHDOG = "/dev/watchdog0"
PAUSE_S = 30.0
FREEZE_S = 60.0
SECOND_SHOT_S = 30.0  # in which another shot would come
LOCK_DELAY_S = 30.0
LOSE_S = 1.0 + 12.0 + 1.0 + 1.5  # on_acquire's kill_after, on_lose with its own, and the margin
DETECTION_S = 8.0  # from the end of a machine until its session ends, at most, by Consul's default gossip
TTL_S = 20.0  # Consul ends a session after twice its ttl at the latest
LEADER_S = 5.0  # until Consul has another leader
ACT_S = 3.0  # the lock-delay of an exclusive session, the shot, and on_acquire on an emulated machine
SILENCE_S = float(os.environ.get("SILENCE_S", "60"))  # more than the room of this lock_delay
OUTAGE_S = max(120.0, 1.5 * SILENCE_S)
LONG_S = max(300.0, OUTAGE_S)  # a busy host takes minutes to start a supervisor on an emulated machine
READ_S = 10.0 / 3  # a holder reads three times in a ttl
ASKED_S = (OUTAGE_S + 2 * READ_S + LOSE_S - 1.5) / 0.95  # how long others wait, as docs/lease.md sums it up
RETURN_S = 12.0  # from Consul's return until another node acts where the machine was lost in the silence
QUICK = {"gossip_lan": {"probe_interval": "200ms", "probe_timeout": "100ms", "suspicion_mult": 3}}
STEADY = {
    "performance": {"raft_multiplier": 5}
}  # Consul's default, by which servers keep their leader longer

Play = Callable[[Duel], None]


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene: its play, how it must end, and how long after the loss (`missed`) on a quiet machine.

    median_s: what the median of many runs should not exceed. None: nobody has said.
    shots: how often the holder's machine must be shot (`missed`).
    servers: how many servers Consul has; ``spare``: whether a third node waits.
    reset: whether the watchdog, if the file names one, has to reset the holder's machine.
    elections: how many the machine leads; several are those of a fleet.
    outage_s: how long a holder acts without Consul. 0: as its lock-delay allows.
    witness_s: how long the scene goes on when another node acts, or when nothing should happen.
    """

    name: str
    play: Play
    end: End
    soonest_s: float = 2.0
    latest_s: float = 11.0
    manner: Manner = Manner.WORKS
    median_s: float | None = None
    witness_s: float = 3.0
    shots: int = 1
    servers: int = 1
    spare: bool = False
    watchdog: bool = False
    reset: bool = False
    fence: bool = True
    elections: int = 1
    outage_s: float = 0.0
    after: str = "2s"
    gossip: Mapping[str, object] | None = None
    on_lose: str = STOP
    ttl_s: int = 10
    lock_delay_s: int = 30

    def settings(self, duel: Duel, target: str) -> Mapping[str, Any]:
        """Return the file of the node whose machine has this name."""
        said = 'echo "previous end: $CONSUL_SUPERVISOR_PREVIOUS_END" >/dev/ttyS1'
        session = {"ttl": f"{self.ttl_s}s", "lock_delay": f"{self.lock_delay_s}s"}
        fence = {
            "shell": f'fence {duel.device.port} "$CONSUL_SUPERVISOR_PREVIOUS_TARGET"',
            "timeout": "20s",
            "target": target,
            "after": self.after,
            "exclusive": True,
            **({"outage": f"{self.outage_s:g}s"} if self.outage_s else {}),
        }
        election = {
            "key": duel.key,
            "session": session | {"node_checks": ["serfHealth"]},
            "on_acquire": [{"shell": f"{said}; application start"}],
            "on_lose": [{"shell": f"echo on_lose >/dev/ttyS1; {self.on_lose}", "timeout": "12s"}],
        }
        more: dict[str, Any] = {"watchdog": {"device": WATCHDOG, "timeout": "10s"}} if self.watchdog else {}
        more |= {"fleet": {}} if self.elections > 1 else {}
        guarded = {"fence": fence} if self.fence else {}
        others = {
            f"more{number}": {"session": election["session"], **guarded}
            for number in range(1, self.elections)
        }
        return more | {"elections": {"app": election | guarded, **others}}


def killed(duel: Duel) -> None:
    duel.strike(duel.old.machine.close)


def cut_off(duel: Duel) -> None:
    duel.strike(duel.old.cut)


def paused(duel: Duel) -> None:
    """Pause the machine for a while, and until another node acts; then let it go on, if it is still there."""
    duel.strike(duel.old.pause)
    resume_at = boottime() + PAUSE_S
    duel.new.see_act()
    time.sleep(max(0.0, resume_at - boottime()))
    duel.old.resume()


def crashed(duel: Duel) -> None:
    """Have the kernel crash, and with it the agent."""
    duel.strike(lambda: _typed(duel, "echo c >/proc/sysrq-trigger", "Kernel panic"))


def rebooted(duel: Duel) -> None:
    """Have the kernel crash, beside two others whose device reboots the machine: it boots once."""
    console = duel.old.machine.console
    shown = len(console)
    crashed(duel)
    duel.find_successor()
    duel.see_return(shown)
    time.sleep(SECOND_SHOT_S)
    boots = [line.text for line in console[shown:] if "booted in" in line.text]
    assert len(boots) == 1, f"{duel.old.machine.name} has booted {len(boots)} times"


def frozen(duel: Duel) -> None:
    """Freeze the supervisor, beside an application that lives."""
    duel.strike(lambda: _typed(duel, f"kill -STOP {PID}"))


def stuck(duel: Duel) -> None:
    """Freeze a disk that on_lose needs, and end the session."""
    duel.strike(lambda: _typed(duel, f"fsfreeze --freeze {DATA}"))
    duel.destroy_session()


def frozen_state(duel: Duel) -> None:
    """Freeze the file system of the records for a while, as a snapshot of the machine does."""
    duel.old.machine.type(f"fsfreeze --freeze {STATE}")
    time.sleep(FREEZE_S)
    duel.old.machine.type(f"fsfreeze --unfreeze {STATE}")


def restarted(duel: Duel) -> None:
    """Kill the supervisor, and wait until the next one has adopted the tenure."""
    shown = len(duel.old.console)
    duel.old.machine.type(f"kill -9 {PID}")
    duel.old.see('"role": "holding"', shown)


def agent_restarted(duel: Duel) -> None:
    """Restart the agent in order: it leaves, which ends the session, and is back before on_lose has ended."""
    duel.lost_at = boottime()
    duel.old.agent.end("TERM")
    duel.old.agent.start()


def led_away(duel: Duel) -> None:
    """Lose the leading server together with the holder."""
    duel.servers.kill_leader()
    killed(duel)


def killed_among_several(duel: Duel) -> None:
    """Kill the machine, for which two others wait."""
    killed(duel)
    duel.find_successor()


def fencer_lost(duel: Duel) -> None:
    """Lose the node that fences, whose device hangs; it works for the one that takes over."""
    killed(duel)
    duel.lose_fencer()
    duel.device.manner = Manner.WORKS


def outage(duel: Duel, meanwhile: Play = lambda duel: None) -> None:
    """Stop all servers for a while, in the middle of which something else happens."""
    with duel.servers.stopped(*(each.machine.address for each in (duel.old, duel.new))):
        over_at = boottime() + SILENCE_S
        time.sleep(SILENCE_S / 2)
        meanwhile(duel)
        time.sleep(max(0.0, over_at - boottime()))
    duel.lost_at = duel.lost_at and boottime()


def confirmed(duel: Duel) -> None:
    """Lose the machine in an outage, beside a dead device, and say by hand that it is off."""
    outage(duel, killed)
    until(lambda: duel.device.asked, "the other node fences", SEEN_S)
    named = f"--machine {duel.old.machine.name}"
    duel.new.machine.type(f"consul-supervisor confirm-off app {named} --reason 'switched off by hand'")


def _typed(duel: Duel, line: str, sign: str = "struck") -> None:
    """Type the line on the holder's console, and return once that shows what the line has done."""
    duel.old.machine.type(f"{line}; echo struck")
    duel.old.see(sign)


def _outlasting(name: str, play: Play, end: End, **more: Any) -> Scene:
    """Return a scene whose holder outlasts an outage, beside three servers."""
    usual = {"servers": 3, "gossip": STEADY, "outage_s": OUTAGE_S}
    if end is End.HELD:
        usual["witness_s"] = 2 * TTL_S  # by then a session that nobody renews has ended
    return Scene(name, play, end, **{**usual, **more})


SLOW_STOP, STOP_ON_DISK = f"sleep 8; {STOP}", f"touch {DATA}/x && {STOP}"
GONE_S = DETECTION_S + ACT_S
WAITED_S = LOCK_DELAY_S + GONE_S
LONG_WAIT = {
    "soonest_s": ASKED_S,
    "latest_s": ASKED_S + GONE_S,
    "manner": Manner.DEAD,
    "shots": -9,
}
SCENES = (
    Scene("killed", killed, End.FENCED, median_s=9.0),
    Scene("killed with Consul's leader", led_away, End.FENCED, latest_s=GONE_S + LEADER_S, servers=3),
    Scene(
        "fencing node killed too", fencer_lost, End.FENCED, 8.0, 2 * GONE_S, Manner.DEAD, shots=2, spare=True
    ),
    Scene("killed, quick gossip", killed, End.FENCED, 0.0, 6.0, median_s=4.0, after="0s", gossip=QUICK),
    Scene("cut off", cut_off, End.FENCED),
    Scene("paused", paused, End.FENCED),
    Scene("paused without a fence", paused, End.BOTH, LOCK_DELAY_S, 2 * LOCK_DELAY_S, shots=0, fence=False),
    Scene("kernel crash", crashed, End.FENCED),
    Scene(
        "ten elections, two survivors",
        killed_among_several,
        End.FENCED,
        latest_s=2 * GONE_S,
        spare=True,
        elections=10,
    ),
    Scene(
        "rebooted, four elections",
        rebooted,
        End.FENCED,
        latest_s=2 * GONE_S,
        manner=Manner.REBOOTS,
        spare=True,
        elections=4,
    ),
    Scene("disk of the records frozen", frozen_state, End.HELD, witness_s=10.0),
    Scene("disk of on_lose frozen", stuck, End.FENCED, LOSE_S, LOSE_S + ACT_S, on_lose=STOP_ON_DISK),
    Scene("supervisor frozen", frozen, End.FENCED, latest_s=TTL_S + 2.0 + ACT_S),
    # The agent ends with the machine, which a fence finds switched off.
    Scene(
        "supervisor frozen, watchdog", frozen, End.FENCED, latest_s=10.0 + GONE_S, watchdog=True, reset=True
    ),
    # On a busy host an emulated machine takes 15 s to start a supervisor, which is more than the usual room.
    Scene("supervisor killed and back", restarted, End.HELD, witness_s=30.0, ttl_s=30, lock_delay_s=60),
    Scene(
        "session destroyed",
        Duel.destroy_session,
        End.SAID,
        8.0,
        8.0 + ACT_S,
        on_lose=SLOW_STOP,
        watchdog=True,
    ),
    Scene("agent restarted", agent_restarted, End.SAID, 8.0, 8.0 + GONE_S, on_lose=SLOW_STOP),
    Scene("device dead", cut_off, End.WAITED, LOCK_DELAY_S, WAITED_S, Manner.DEAD, shots=-3),
    Scene("device fails", cut_off, End.WAITED, LOCK_DELAY_S, WAITED_S, Manner.FAILS, shots=-9),
    Scene("device slow", cut_off, End.FENCED, SLOW_S + 2.0, SLOW_S + 2.0 + GONE_S, Manner.SLOW),
    _outlasting("outage alone", outage, End.HELD),
    _outlasting("outage, supervisor killed", partial(outage, meanwhile=restarted), End.HELD, outage_s=LONG_S),
    _outlasting("outage, machine lost", partial(outage, meanwhile=killed), End.FENCED, latest_s=RETURN_S),
    _outlasting("outage, device dead", partial(outage, meanwhile=killed), End.WAITED, **LONG_WAIT),
    _outlasting(
        "outage, confirmed",
        confirmed,
        End.CONFIRMED,
        latest_s=2 * RETURN_S,
        manner=Manner.DEAD,
        shots=-9,
    ),
    # Consul works, so the holder loses its session, whatever its lease.
    _outlasting("long lease, cut off", cut_off, End.FENCED),
    _outlasting("long lease, device dead", cut_off, End.WAITED, **LONG_WAIT),
    # Both act, but not for longer than the lease of the one that is cut off.
    Scene("device lies", cut_off, End.BOTH, 2.0, LOCK_DELAY_S, Manner.LIES, witness_s=LOCK_DELAY_S),
)


def run(scene: Scene, lab: Lab) -> tuple[Verdict, str]:
    """Play the scene; return the verdict, and what should have happened instead."""
    many = 3 if scene.spare else 2
    with lab.prepared(many, scene.servers, scene.gossip or {}, scene.manner) as duel:
        duel.begin(lambda target: scene.settings(duel, target))
        scene.play(duel)
        if scene.end is not End.HELD:
            duel.new.see_act()
        time.sleep(scene.witness_s)
        old, new = duel.old, duel.new
        if scene.end is End.HELD:
            old.see_act(len(old.stamps))
        reset = old.machine.reset_at is not None
        verdict = judge(old.stamps, new.stamps, duel.lost_at, duel.device.asked, reset=reset)
        latest_s = scene.latest_s if scene.end is End.BOTH else patient(scene.latest_s)
        wanted = (scene.end, scene.soonest_s, latest_s, old.machine.name, scene.shots)
        return verdict, missed(verdict, *wanted, gap_s=patient(GAP_S), reset=scene.reset)
