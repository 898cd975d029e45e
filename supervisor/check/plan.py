"""The inverse of ``check``: the session block that meets an operator's wishes, or the wishes to change.

This module has no formula of its own. ``core.lease`` and the loader's cross-checks judge each candidate, as
they judge a file, and ``report`` prints its sums. The search relies on two facts, which a test compares with
an exhaustive search. A longer lock-delay always leaves more room. A longer TTL only raises the time for which
this node may be cut off.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from supervisor.check.report import as_lines, lease_rows
from supervisor.config.cross_checks import TTL_MIN_S, check_item
from supervisor.config.problems import Places, Problem, Report
from supervisor.core.lease import LOCK_DELAY_MAX_S, ROOM_MIN_S, SILENCE_MIN_S, Lease, lease_of
from supervisor.core.settings import Command, ElectionSettings, Hook, SessionSettings
from supervisor.formats.durations import format_duration

STEPS_S = (1.0, 0.1)  # whole seconds, which read best; tenths only if no whole seconds meet the wishes
TTL_MAX_S = 60.0  # a longer TTL changes nothing: the longest lock_delay then limits how long a cut may last
ROUNDING_S = 1e-6  # sums of decimal fractions differ by less
FAILOVER, ON_LOSE, SILENCE = "--failover", "--on-lose", "--silence"  # the wishes, as the command has them
SERF_HEALTH = "serfHealth"
SERF_S = (6.0, 9.0)  # within which Consul counts a node as failed: docs/performance.md has the rounds


@dataclass(frozen=True, slots=True)
class Wishes:
    """An operator's wishes for a session.

    failover_s: how long after the crash of the holder's machine another node holds at the latest. None: no
        wish.
    on_lose_s: how long everything that ends after a loss may take, which is ``lose_time``.
    silence_s: how long Consul may be silent, or this node cut off, without a loss. None: long enough that
        ``check`` does not warn.
    node_checks: the checks of Consul that are to end the session.
    """

    failover_s: float | None
    on_lose_s: float
    silence_s: float | None = None
    node_checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """A wish that can be met beside the other wishes, in the place of one that cannot.

    option: the wish, as the option of the command.
    length_s: the nearest length that is possible. None: none is.
    session: the session that meets it. None: there is none.
    """

    option: str
    length_s: float | None = None
    session: ElectionSettings | None = None


def plan(wishes: Wishes) -> ElectionSettings | tuple[Cost, ...]:
    """Return an election whose session meets the wishes, with as few warnings of ``check`` as possible.

    Among these, the session has the quickest failover. If no session meets the wishes, return for each wish
    the nearest one that is possible beside the others.
    """
    for step_s in STEPS_S:
        quickest = _quickest(wishes, step_s)
        if quickest is not None and _is_in_time(quickest, wishes):
            longer = (_with_guard(quickest, guard_s) for guard_s in _guards(step_s))
            possible = [each for each in longer if _meets(each, wishes) and _is_in_time(each, wishes)]
            return min(possible, key=lambda each: len(warnings_of(each)))
    return tuple(_costs(wishes))


def warnings_of(settings: ElectionSettings) -> list[Problem]:
    """Return the warnings that ``check`` prints for this election, without a place in a file."""
    report = Report(Places(""))
    check_item(settings, report)
    return report.problems + report.warnings


def as_text(settings: ElectionSettings) -> str:
    """Return the session block as YAML. Its sums, in the words of ``check``, are comments of the block."""
    session = settings.session
    block = "session:\n  ttl: {}\n  lock_delay: {}\n".format(*_ttl_and_guard(settings))
    if session.node_checks:
        block += f"  node_checks: {json.dumps(session.node_checks)}\n"
    warnings = "".join(f"# warning: {warning}\n" for warning in warnings_of(settings))
    return block + as_lines([*lease_rows(settings), *_serf_health_rows(settings)], "# ") + warnings


def costs_text(costs: Iterable[Cost]) -> str:
    """Return the cost of each wish."""
    return "".join(map(_cost_lines, costs)).rstrip()


# --- the search ----------------------------------------------------------------------------------


def _quickest(wishes: Wishes, step_s: float) -> ElectionSettings | None:
    """Return the session with the quickest failover that meets all wishes except that for the failover."""
    guards = _guards(step_s)
    for ttl_s in _steps(TTL_MIN_S, TTL_MAX_S, step_s):
        longest = _election(wishes, ttl_s, LOCK_DELAY_MAX_S)
        if _meets(longest, wishes):
            least = bisect_left(guards, True, key=lambda s: _meets(_with_guard(longest, s), wishes))
            return _with_guard(longest, guards[least])
        lease = lease_of(longest)
        if lease.cut_off_s == lease.silence_s:
            return None  # a longer TTL cannot help, because the longest lock-delay is too short
    return None


def _meets(settings: ElectionSettings, wishes: Wishes) -> bool:
    """Return whether the session leaves room, and tolerates the silence."""
    if wishes.silence_s is None:
        return not warnings_of(settings)
    lease = lease_of(settings)
    return lease.room_s >= ROOM_MIN_S and _tolerated_s(lease) >= wishes.silence_s - ROUNDING_S


def _tolerated_s(lease: Lease) -> float:
    """Return the silence that costs no loss, whether or not Consul changes its leader meanwhile."""
    return max(0.0, min(lease.silence_s, lease.cut_off_s))


def _is_in_time(settings: ElectionSettings, wishes: Wishes) -> bool:
    failover_s = lease_of(settings).failover_s
    assert failover_s is not None
    return wishes.failover_s is None or failover_s <= wishes.failover_s + ROUNDING_S


def _election(wishes: Wishes, ttl_s: float, lock_delay_s: float) -> ElectionSettings:
    """Return an election with this session, whose one hook may take all the time that on_lose may take."""
    session = SessionSettings("", ttl_s, lock_delay_s, node_checks=wishes.node_checks)
    hook = Hook("on_lose", Command(("on_lose",), kill_after_s=0.0), wishes.on_lose_s)
    return ElectionSettings("NAME", "NAME", b"", session, on_lose=(hook,) if wishes.on_lose_s else ())


def _with_guard(settings: ElectionSettings, lock_delay_s: float) -> ElectionSettings:
    return replace(settings, session=replace(settings.session, lock_delay_s=lock_delay_s))


def _guards(step_s: float) -> list[float]:
    return _steps(0.0, LOCK_DELAY_MAX_S, step_s)


def _steps(first_s: float, last_s: float, step_s: float) -> list[float]:
    """Return the multiples of the step from ``first_s`` to ``last_s``, each as near as its decimal text."""
    per_s = round(1 / step_s)
    return [number / per_s for number in range(round(first_s * per_s), int(last_s * per_s) + 1)]


# --- contradictions --------------------------------------------------------------------------------


def _is_possible(wishes: Wishes) -> bool:
    found = (_quickest(wishes, step_s) for step_s in STEPS_S)
    return any(each is not None and _is_in_time(each, wishes) for each in found)


def _costs(wishes: Wishes) -> Iterator[Cost]:
    """Yield for each option the nearest wish that is possible beside the others."""
    quickest = _quickest(wishes, STEPS_S[-1])
    yield Cost(FAILOVER, None if quickest is None else lease_of(quickest).failover_s, quickest)
    silence_s = SILENCE_MIN_S if wishes.silence_s is None else wishes.silence_s
    yield _longest(ON_LOSE, wishes.on_lose_s, lambda length_s: replace(wishes, on_lose_s=length_s))
    yield _longest(SILENCE, silence_s, lambda length_s: replace(wishes, silence_s=length_s))


def _longest(option: str, wished_s: float, wish: Callable[[float], Wishes]) -> Cost:
    """Return the longest time below the wished one, in tenths of a second, that is possible."""
    lengths = _steps(0.0, min(wished_s, LOCK_DELAY_MAX_S), STEPS_S[-1])
    count = bisect_left(lengths, True, key=lambda length_s: not _is_possible(wish(length_s)))
    if count == 0:
        return Cost(option)
    met = plan(wish(lengths[count - 1]))
    assert isinstance(met, ElectionSettings)
    return Cost(option, lengths[count - 1], met)


# --- words ------------------------------------------------------------------------------------------

_SUMS = ("room", "silence", "cut off")  # the figures of a session that meets other wishes


def _ttl_and_guard(settings: ElectionSettings) -> tuple[str, str]:
    assert settings.session.ttl_s is not None
    return format_duration(settings.session.ttl_s), format_duration(settings.session.lock_delay_s)


def _serf_health_rows(settings: ElectionSettings) -> Iterator[tuple[str, str]]:
    """Yield the usual effect of serfHealth, if the session has it. It changes no figure of ``check``."""
    if SERF_HEALTH not in settings.session.node_checks:
        return
    noticed = " to ".join(map(format_duration, SERF_S))
    free = " to ".join(format_duration(noticed_s + settings.session.lock_delay_s) for noticed_s in SERF_S)
    yield SERF_HEALTH, f"Consul mostly ends the session {noticed} after a crash of the machine, so another"
    yield "", f"node mostly holds after {free}. Only the ttl limits that, so the figure above stays."
    yield "", "The leadership also ends when a network fault is noticed by Consul's gossip alone"


def _cost_lines(cost: Cost) -> str:
    """Return a line for a wish with the session that meets it, then the sums and warnings of the session."""
    if cost.length_s is None or cost.session is None:
        none = "no time is long enough" if cost.option == FAILOVER else "not even 0s is short enough"
        return f"  {cost.option}: {none} beside the other wishes\n"
    bound = "or more" if cost.option == FAILOVER else "or less"
    wish = f"  {cost.option} {format_duration(cost.length_s)} {bound}"
    sums = [row for row in lease_rows(cost.session) if row[0] in _SUMS]
    warnings = "".join(f"    warning: {warning.message}\n" for warning in warnings_of(cost.session))
    session = "ttl {}, lock_delay {}".format(*_ttl_and_guard(cost.session))
    return f"{wish}: {session}\n{as_lines(sums, '    ')}{warnings}"
