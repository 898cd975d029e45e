"""The inverse of ``check``: the session block that meets an operator's wishes.

This module has no formula of its own. ``core.lease`` and the loader's cross-checks judge each candidate, as
they judge a file, and ``report`` prints its sums. The search relies on two facts, which a test compares with
an exhaustive search. A longer lock-delay always leaves more room. A longer TTL only raises the time for which
this node may be cut off.
"""

import json
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from supervisor.commands.check.relied_on import (
    DEFAULT_GOSSIP,
    LEADER_CHANGE_S,
    Gossip,
    acts_after_s,
    noticed_s,
    relied_on,
)
from supervisor.commands.check.report import as_lines, lease_rows, usual_rows
from supervisor.config.cross_checks import check_item
from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import RESTART_S, TTL_MIN_S, Surroundings, return_s, watchdog_sum
from supervisor.config.notification import UNIT_WATCHDOG_S
from supervisor.config.problems import Positions, Problem, Report
from supervisor.core.lease import LOCK_DELAY_MAX_S, ROOM_MIN_S, lease_of
from supervisor.core.settings import Command, ElectionSettings, Fence, Hook, SessionSettings, Watchdog

STEPS_S = (1.0, 0.1)  # whole seconds, which read best; tenths only if no whole seconds meet the wishes
TTL_MAX_S = 60.0  # a longer TTL changes nothing: the longest lock_delay then limits how long a cut may last
ROUNDING_S = 1e-6  # sums of decimal fractions differ by less
WATCHDOG_MIN_S = 4.0  # with a shorter one, a machine that is busy for a moment looks like a dead supervisor
MEANS = ((None, TTL_MIN_S), (1.0, TTL_MIN_S), (1.0, 3.0))
"""How often a holder reads, and the shortest TTL; the first means that suffice are taken.

The second cost a read a second for each holder, and the third another ``session_ttl_min`` of the servers.
"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """An operator's wishes for a session."""

    # How long after the crash of the holder's machine another node holds at the latest. None: no wish.
    failover_s: float | None
    on_lose_s: float  # how long everything that ends after a loss may take, which is ``lose_time``
    # How long Consul may be silent, or this node cut off, without a loss. None: long enough that ``check``
    # does not warn.
    silence_s: float | None = None
    node_checks: tuple[str, ...] = ()  # the checks of Consul that are to end the session
    leader_change_s: float = LEADER_CHANGE_S  # how long a change of the leader of Consul's servers takes
    # How soon another node usually holds, if the session ends by serfHealth. None: no wish.
    usually_s: float | None = None
    watchdog_s: float | None = None  # the timeout of the machine's watchdog. None: there is none
    fence_s: float | None = None  # how long the fence takes to switch a machine off. None: there is none
    outage_s: float | None = None  # fence.outage. None: there is none
    gossip: Gossip = DEFAULT_GOSSIP


def plan(wishes: Wishes) -> ElectionSettings | None:
    """Return an election whose session meets the wishes, with as few warnings of ``check`` as possible.

    Among these, the session has the quickest failover. None: no session meets the wishes.
    """
    around = Surroundings(wishes.leader_change_s)
    for means, step_s in product(MEANS, STEPS_S):
        quickest = _quickest(wishes, step_s, *means)
        if quickest is None or not _is_in_time(quickest, wishes):
            continue
        longer = (_with_lockout(quickest, lockout_s) for lockout_s in _steps(0.0, LOCK_DELAY_MAX_S, step_s))
        possible = [each for each in longer if _meets(each, wishes) and _is_in_time(each, wishes)]
        return min(possible, key=lambda each: len(warnings_of(each, around)))
    return None


def warnings_of(settings: ElectionSettings, around: Surroundings) -> list[Problem]:
    """Return the warnings that ``check`` prints for this election, without a place in a file."""
    report = Report(Positions(""))
    check_item(settings, report, around)
    return report.problems + report.warnings


def surroundings_of(settings: ElectionSettings, leader_change_s: float) -> Surroundings:
    """Return what the session relies on, with the longest WatchdogSec that is short enough, if one is."""
    usual = Surroundings(leader_change_s)
    spare_s = settings.lockout_s - return_s(settings, usual)
    fitting_s = float(math.floor(UNIT_WATCHDOG_S + spare_s + ROUNDING_S))
    return (
        replace(usual, unit_watchdog_s=fitting_s) if WATCHDOG_MIN_S <= fitting_s < UNIT_WATCHDOG_S else usual
    )


def as_text(settings: ElectionSettings, wishes: Wishes) -> str:
    """Return the session block as YAML. Its sums, in the words of ``check``, are comments of the block."""
    leader_change_s, gossip = wishes.leader_change_s, wishes.gossip
    session, around = settings.session, surroundings_of(settings, leader_change_s)
    times = (session.ttl_s, session.lock_delay_s, settings.confirm_every_s)
    named = zip(("ttl", "lock_delay", "confirm_every"), times, strict=True)
    block = "".join(f"  {key}: {format_duration(time_s)}\n" for key, time_s in named if time_s is not None)
    if session.node_checks:
        block += f"  node_checks: {json.dumps(session.node_checks)}\n"
    rows = [*lease_rows(settings), *usual_rows(settings, wishes.fence_s, gossip)]
    relied = [*relied_on(settings, leader_change_s, gossip), *_drop_in(around)]
    rows += [("" if index else "relies on", line) for index, line in enumerate(relied)]
    warnings = "".join(f"# warning: {warning}\n" for warning in warnings_of(settings, around))
    return f"session:\n{block}{as_lines(rows, '# ')}{warnings}"


# --- the search ----------------------------------------------------------------------------------


def _quickest(
    wishes: Wishes, step_s: float, confirm_every_s: float | None, ttl_min_s: float
) -> ElectionSettings | None:
    """Return the session with the quickest failover that meets all wishes except those for the failover."""
    guards = _steps(0.0, LOCK_DELAY_MAX_S, step_s)
    for ttl_s in _steps(ttl_min_s, TTL_MAX_S, step_s):
        longest = replace(_election(wishes, ttl_s, LOCK_DELAY_MAX_S), confirm_every_s=confirm_every_s)
        if _meets(longest, wishes):
            least = bisect_left(guards, True, key=lambda s: _meets(_with_lockout(longest, s), wishes))
            return _with_lockout(longest, guards[least])
        lease = lease_of(longest)
        if lease.cut_off_s == lease.silence_s:
            return None  # a longer TTL cannot help, because the longest lock-delay is too short
    return None


def _meets(settings: ElectionSettings, wishes: Wishes) -> bool:
    lease = lease_of(settings)
    # The silence that costs no loss, whether or not Consul changes its leader meanwhile.
    tolerated_s, wished_s = max(0.0, min(lease.silence_s, lease.cut_off_s)), wishes.silence_s
    if wished_s is None:
        tolerated_s, wished_s = lease.silence_s, Surroundings(wishes.leader_change_s).silence_s
    if settings.watchdog is not None and watchdog_sum(settings, settings.watchdog)[0] < 0:
        return False
    fence = settings.fence
    if fence is not None and fence.after_s + fence.hook.timeout_s > lease.asked_s:
        return False  # the wait ends before the fence does
    return lease.room_s >= ROOM_MIN_S and tolerated_s >= wished_s - ROUNDING_S


def _is_in_time(settings: ElectionSettings, wishes: Wishes) -> bool:
    failover_s = lease_of(settings).failover_s
    assert failover_s is not None
    usually_s = _usual_s(settings, wishes.gossip)[-1]
    pairs = ((failover_s, wishes.failover_s), (usually_s, wishes.usually_s))
    return all(wished_s is None or takes_s <= wished_s + ROUNDING_S for takes_s, wished_s in pairs)


def _usual_s(settings: ElectionSettings, gossip: Gossip) -> tuple[float, ...]:
    """Return within which times another node usually holds after a crash of the machine."""
    fence = settings.fence
    more_s = acts_after_s(settings, 0.0 if fence is None else fence.hook.timeout_s)
    return tuple(each_s + more_s for each_s in noticed_s(settings, gossip))


def _election(wishes: Wishes, ttl_s: float, lock_delay_s: float) -> ElectionSettings:
    """Return an election with this session, whose one hook may take all the time that on_lose may take."""
    session = SessionSettings("", ttl_s, lock_delay_s, node_checks=wishes.node_checks)
    hook = Hook("on_lose", Command(("on_lose",), kill_after_s=0.0), wishes.on_lose_s)
    watchdog = None if wishes.watchdog_s is None else Watchdog("/dev/watchdog", wishes.watchdog_s)
    on_lose, fence = (hook,) if wishes.on_lose_s else (), None
    if wishes.fence_s is not None:
        hook = Hook("fence", Command(("fence",), kill_after_s=0.0), wishes.fence_s)
        fence = Fence(hook, exclusive=True, outage_s=wishes.outage_s)
    return ElectionSettings("NAME", "NAME", b"", session, on_lose=on_lose, watchdog=watchdog, fence=fence)


def _with_lockout(settings: ElectionSettings, lock_delay_s: float) -> ElectionSettings:
    return replace(settings, session=replace(settings.session, lock_delay_s=lock_delay_s))


def _steps(first_s: float, last_s: float, step_s: float) -> list[float]:
    """Return the multiples of the step from ``first_s`` to ``last_s``, each as near as its decimal text."""
    per_s = round(1 / step_s)
    return [number / per_s for number in range(round(first_s * per_s), int(last_s * per_s) + 1)]


# --- words ------------------------------------------------------------------------------------------


def _drop_in(around: Surroundings) -> Iterator[str]:
    if around.unit_watchdog_s < UNIT_WATCHDOG_S:
        yield "a drop-in of the unit, by `systemctl edit consul-supervisor`. The price: a supervisor that"
        yield f"stands still for {format_duration(around.unit_watchdog_s)} is killed and started again"
        yield "  [Service]"
        yield f"  WatchdogSec={format_duration(around.unit_watchdog_s)}"
        yield f"  TimeoutStartSec={format_duration(around.unit_watchdog_s - RESTART_S)}"
