"""Row: fifty contenders wait for one of three slots, and a holder is stopped.

Each freed slot has two figures. The time is from the end of the old holder's on_lose to the first
instruction of the next on_acquire. The writes are all those of any contender that Consul applied or
refused, from before the stop until nothing is written any more. They include those by which the
holder leaves and destroys its session, and every lost check-and-set, but no renewals. The agent's own
counters give them, because a proxy before each contender would take part of the measured time.

`consul lock -n=3` runs on the same agent, with a prefix of its own and as many processes; the two are
measured in turn. The stopped contender is started again and stands at the end of its line before
the next measurement. All processes share this machine, where every change wakes all of them. On machines
of their own they do not wait for each other's CPU.
"""

from dataclasses import dataclass, field

from bench.contender import EQUAL_TERMS, Contender, Maker, stamping_hooks, supervisor_of
from bench.figures import Figure, median_and_p95
from bench.lab import Lab, Rig, wait_until
from bench.writes import CONFIG, at_rest, written
from tests.support.consul import BINARY, Agent

SLOTS = 3
WAITING = 50
TIME_LIMIT_MS = 60.0
WRITES_LIMIT = 6.0
ROUNDS, ROUNDS_QUICK = 20, 5
OURS, THEIRS = "consul-supervisor", "consul lock -n"


def _semaphore(rig: Rig, url: str, prefix: str, name: str) -> Contender:
    """Return a supervisor of one semaphore, with the session of `consul lock`."""
    session = {**EQUAL_TERMS, "name": prefix}
    semaphore = {"prefix": prefix, "limit": SLOTS, "session": session, **stamping_hooks(rig, name)}
    return supervisor_of(rig, url, name, {"bench": semaphore}, kind="semaphores")


def _consul_lock_n(rig: Rig, url: str, prefix: str, name: str) -> Contender:
    child = rig.stamping(name, "child", "wait")
    options = [f"-http-addr={url}", f"-n={SLOTS}", "-shell=false"]
    return rig.contender(name, [str(BINARY), "lock", *options, prefix, *child])


KINDS: tuple[tuple[str, str, Maker], ...] = (
    (OURS, "bench/ours", _semaphore),
    (THEIRS, "bench/theirs", _consul_lock_n),
)


@dataclass(eq=False)
class Side:
    """The contenders of one kind. ``holders``: the names of the holders, the longest first."""

    kind: str
    prefix: str
    contenders: dict[str, Contender]
    holders: list[str]
    times_ms: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)


def measure(lab: Lab) -> list[Figure]:
    """Measure both kinds, in turn, on one agent."""
    lab.say(f"slots: {WAITING} contenders of each kind wait")
    with lab.rig() as rig:
        agent = rig.agent(config=CONFIG)
        sides = [_side(rig, agent, *kind) for kind in KINDS]
        for turn in range(lab.samples(ROUNDS, ROUNDS_QUICK)):
            for side in sides if turn % 2 else reversed(sides):
                _free_a_slot(rig, agent, side)
    ours, theirs = sides
    return [*_figures(ours, WRITES_LIMIT, TIME_LIMIT_MS), *_figures(theirs)]


def _side(rig: Rig, agent: Agent, kind: str, prefix: str, maker: Maker) -> Side:
    """Start all contenders of one kind, so that all slots are taken and the other contenders wait."""
    short = prefix.rpartition("/")[2]
    names = [f"{short}-{number}" for number in range(SLOTS + WAITING)]
    contenders = {name: maker(rig, agent.url, prefix, name) for name in names}
    mark = rig.stamps.mark()
    for contender in contenders.values():
        contender.start()
    side = Side(kind, prefix, contenders, [])
    _all_in_line(agent, side)
    side.holders = [stamp.who for stamp in rig.stamps.since(mark) if stamp.edge == "begin"]
    return side


def _free_a_slot(rig: Rig, agent: Agent, side: Side) -> None:
    """Stop the holder that has held for longest, and note the contender that gets its slot."""
    at_rest(agent)
    assert len(side.holders) == SLOTS, f"not {SLOTS} hold: {side.holders}"
    name = side.holders.pop(0)
    old, mark, before = side.contenders[name], rig.stamps.mark(), written(agent)
    old.terminate()
    end = rig.stamps.wait(mark, lambda stamp: stamp.who == name and stamp.edge == "end")
    begin = rig.stamps.wait(mark, lambda stamp: stamp.who != name and stamp.edge == "begin")
    old.wait_gone()
    side.times_ms.append((begin.at_ns - end.at_ns) / 1e6)
    side.writes.append(at_rest(agent) - before)
    side.holders.append(begin.who)
    old.start()
    _all_in_line(agent, side)


def _all_in_line(agent: Agent, side: Side) -> None:
    """Wait until each contender has its key beside .lock and the writes have ended."""
    count = len(side.contenders) + 1
    wait_until(lambda: len(agent.kv_list(f"{side.prefix}/")) == count, f"{count} keys below {side.prefix}")
    at_rest(agent)


def _figures(
    side: Side, writes_limit: float | None = None, time_limit_ms: float | None = None
) -> list[Figure]:
    row = f"slots, {WAITING} waiting, {side.kind}"
    return [
        *median_and_p95(row, "writes for each freed slot", side.writes, "", writes_limit),
        *median_and_p95(row, "end of on_lose → on_acquire", side.times_ms, "ms", time_limit_ms),
    ]
