"""``python -m bench.beside``: for how long both act, with ``consul lock -n`` beside us.

Consul's own client prunes a vanished holder at once, because it does not know our prune delay. So our lease,
which counts on that delay, is not safe beside it. All settings are the defaults; our on_lose takes a second.
Times are seconds after the fault.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from tests.consul.elections.scene import boottime
from tests.consul.semaphores.consul_lock import HOOK, Locker
from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import Agent
from tests.support.supervisor import until

LOSE_S = 1.0
PATIENCE_S = 90.0
DEFAULTS: dict[str, object] = {"session": {"ttl": "10s", "lock_delay": "30s"}, "prune_delay": "30s"}


@dataclass(frozen=True, slots=True)
class Seen:
    """Times of one run.

    theirs: when their child began.
    ours: when our on_lose had ended. None: never.
    """

    theirs: float | None
    ours: float | None

    @property
    def both_s(self) -> float | None:
        """For how long both acted. None: until an operator ends our application."""
        if self.theirs is None:
            return 0.0
        return None if self.ours is None else max(0.0, self.ours - self.theirs)


Happens = Callable[[SlotScene], None]


def destroyed(scene: SlotScene) -> None:
    """Destroy the session, as an operator, a critical check or a leaving agent does."""
    scene.agent.session_destroy(scene.session_of("a"))


def killed(scene: SlotScene) -> None:
    """Kill the supervisor for good, so that the application goes on alone."""
    scene.nodes["a"].kill()


def killed_and_restarted(scene: SlotScene) -> None:
    """Kill the supervisor and restart it a second later, as systemd does."""
    scene.nodes["a"].kill()
    killed_at = boottime()
    until(lambda: boottime() > killed_at + 1, "a second")
    scene.nodes["a"].start()


def cut_off(scene: SlotScene) -> None:
    """Cut this node off from Consul."""
    scene.proxy.refuse()


def seen(agent: Agent, folder: Path, name: str, happens: Happens) -> Seen:
    """Give them one slot and us one until this fault; another client of theirs waits."""
    scene = SlotScene(agent, folder, name)
    scene.limit = 2
    with ExitStack() as stack:
        stack.callback(scene.close)
        lose = scene.hook("a", "lose", f"sleep {LOSE_S}", timeout="5s", kill_after="1s")
        acquire = scene.hook("a", "acquire", timeout="30s", kill_after="1s")
        place = {"consul": {"address": scene.proxy.url}, "on_change": None}
        scene.holder("a", on_lose=[lose], on_acquire=[acquire], **place, **DEFAULTS)
        stack.enter_context(closing(Locker(scene, "has", "exec sleep 600", again=False)))
        until(lambda: scene.records(hook=HOOK, stage="begin"), "one of theirs holds")
        stack.enter_context(closing(Locker(scene, "waits", "exec sleep 600", again=False)))
        until(lambda: len(scene.contenders()) == 3, "another one waits")
        happened_at = boottime()
        happens(scene)
        theirs = _when(scene, happened_at, node="waits", stage="begin")
        ours = None if happens is killed else _when(scene, happened_at, node="a", event="lose", stage="end")
        return Seen(theirs, ours)


def _when(scene: SlotScene, since: float, **fields: object) -> float | None:
    try:
        return scene.wait(40.0, **fields).at - since
    except AssertionError:
        return None


CASES: dict[str, Happens] = {
    "session destroyed": destroyed,
    "kill -9, restarted after 1 s": killed_and_restarted,
    "kill -9, not restarted": killed,
    "cut off from Consul": cut_off,
}


def main() -> int:
    """Print a table of all runs."""
    parser = argparse.ArgumentParser(prog="python -m bench.beside")
    parser.add_argument("--times", type=int, default=3)
    times = parser.parse_args().times
    print(f"{'':30} theirs begins  ours has ended  both act")
    with tempfile.TemporaryDirectory(prefix="beside-") as made, Agent(Path(made) / "consul") as agent:
        for number, (case, happens) in enumerate(CASES.items()):
            all_seen = [
                seen(agent, Path(made) / f"{number}-{time}", f"beside{number}x{time}", happens)
                for time in range(times)
            ]
            columns = (
                _told([each.theirs for each in all_seen]),
                _told([each.ours for each in all_seen]),
                _told([each.both_s for each in all_seen], never="until ended by hand"),
            )
            print(f"{case:30} {columns[0]:14} {columns[1]:15} {columns[2]}", flush=True)
    return 0


def _told(times: list[float | None], never: str = "never") -> str:
    known = [each for each in times if each is not None]
    if not known:
        return never
    middle = statistics.median(known)
    return f"{middle:.2f} s" if len(known) < 2 else f"{min(known):.2f}-{max(known):.2f} s"


if __name__ == "__main__":
    sys.exit(main())
