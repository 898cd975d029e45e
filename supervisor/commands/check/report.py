"""The result of ``check``, as text and as JSON: figures that operators may rely on, and one line of verdict.

The words are those of docs/lease.md, and all numbers come from ``core.lease``.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.commands.check.relied_on import DEFAULT_GOSSIP, SERF_HEALTH, Gossip, acts_after_s, noticed_s
from supervisor.config import Config, Problem
from supervisor.config.formats.durations import format_duration
from supervisor.config.lease_checks import (
    RESTART_S,
    SAYS_S,
    START_S,
    lease_on_record,
    others_of,
    outage_sum,
    watchdog_sum,
)
from supervisor.config.notification import UNIT_WATCHDOG_S
from supervisor.config.problems import PROBLEMS_MAX
from supervisor.core.frozen import replace
from supervisor.core.lease import RETRY_MAX_S, ROOM_MIN_S, Lease, lease_of, lose_terms
from supervisor.core.settings import ElectionSettings, Fence, ItemSettings, SemaphoreSettings

if TYPE_CHECKING:
    from supervisor.commands.check.findings import Finding

_LABEL_WIDTH = 11
_FAULT, _WARNING = "error", "warning"  # levels of findings
JSON_VERSION = 1  # of the document's shape; an added field does not change it


def as_text(config: Config, found: "Sequence[Finding] | None" = None) -> str:
    paragraphs = [*_paragraphs(config.items)]
    if config.warnings:
        paragraphs.append(warnings_text(config.warnings))
    if found is not None:
        paragraphs.append(_connection(found))
    return "\n".join(paragraphs)


def faults_text(found: "Sequence[Finding] | None" = None) -> str:
    """Return the text of ``check --quiet``: the faults that Consul's answers show. Empty: there are none."""
    faults = [one for one in found or () if one.level == _FAULT]
    return _connection(faults) if faults else ""


def warnings_text(warnings: Iterable[Problem]) -> str:
    """Return a line for each warning. Each line ends with a newline."""
    return "".join(f"warning: {warning}\n" for warning in warnings)


def verdict(path: Path, config: Config, found: "Sequence[Finding] | None" = None) -> str:
    """Return the last line of ``check``, for a configuration that is valid."""
    kinds = Counter(settings.kind for settings in config.items)
    counts = [_count(number, kind) for kind, number in kinds.items()]
    line = ", ".join([f"{path}: valid", *counts, _count(len(config.warnings), "warning")])
    if found is None:
        return line
    levels = Counter[str](one.level for one in found)
    return f"{line}; Consul: {_count(levels[_FAULT], 'fault')}, {_count(levels[_WARNING], 'warning')}"


def refused_verdict(path: Path, problems: Sequence[Problem], warnings: Sequence[Problem] = ()) -> str:
    """Return the last line of ``check``, for a configuration that cannot be used."""
    files = len({problem.file for problem in problems})
    more = " or more" if len(problems) >= PROBLEMS_MAX else ""
    where = f" in {files} files" if files > 1 else ""
    also = f", {_count(len(warnings), 'warning')}" if warnings else ""
    return f"{path}: not valid, {_count(len(problems), 'fault')}{more}{where}{also}"


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def _connection(found: "Iterable[Finding]") -> str:
    """Return the findings of ``--connect``: a line for each, and one below it for its remedy."""
    lines = []
    for one in found:
        what = " ".join(filter(None, (one.what, one.item)))
        lines.append(f"  {one.level:<{_LABEL_WIDTH}}  {what}: {one.text}\n")
        if one.remedy:
            lines.append(f"  {'':<{_LABEL_WIDTH}}  {one.remedy}\n")
    return f"consul\n{''.join(lines)}"


def as_json(config: Config, found: "Sequence[Finding] | None" = None) -> str:
    return _document(
        valid=True,
        warnings=[_problem(problem) for problem in config.warnings],
        items=[_figures(settings, others_of(settings, config.items)) for settings in config.items],
        connect=None if found is None else [asdict(one) for one in found],
    )


def refused_json(problems: Iterable[Problem], warnings: Iterable[Problem]) -> str:
    errors, also = ([_problem(problem) for problem in group] for group in (problems, warnings))
    return _document(valid=False, errors=errors, warnings=also)


def _document(**parts: object) -> str:
    every: dict[str, object] = {"errors": [], "warnings": [], "items": [], "connect": None}
    ordered = {"version": JSON_VERSION, "valid": parts["valid"], **every, **parts}
    return json.dumps(ordered, indent=2)


def _problem(problem: Problem) -> dict[str, object]:
    return {**problem._asdict(), "remedy": problem.remedy}


def _figures(settings: ItemSettings, others: int) -> dict[str, object]:
    item: dict[str, object] = {"name": settings.name, "kind": settings.kind, "key": settings.key}
    if not settings.contend:
        return {**item, "contend": False, "lease": None}
    lease = _lease(settings, others)
    terms = [{"what": what, "length_s": length_s} for what, length_s in lose_terms(settings)]
    figures = {"silence_s": lease.silence_s, "cut_off_s": lease.cut_off_s, "failover_s": lease.failover_s}
    guard = {"guard": settings.lockout_name, "guard_s": settings.lockout_s}
    own = asdict(lease)
    del own["lockout_s"]  # the figure that guard_s has
    return {**item, "contend": True, "lease": {**guard, **own, **figures, "lose_terms": terms}}


def _lease(settings: ItemSettings, others: int) -> Lease:
    busy_delay_s = settings.busy_delay_s if isinstance(settings, ElectionSettings) else 0.0
    return replace(lease_on_record(settings), busy_s=busy_delay_s * others)


def _paragraphs(items: Sequence[ItemSettings]) -> Iterator[str]:
    """Yield one paragraph for each item, or for all items that differ in name and key alone."""
    alike: dict[tuple[tuple[str, str], ...], list[ItemSettings]] = {}
    for settings in items:
        alike.setdefault(tuple(_rows(settings, others_of(settings, items))), []).append(settings)
    for rows, group in alike.items():
        if len(group) == 1:
            yield f"{group[0].name}\n" + as_lines([_place(group[0]), *rows], "  ")
            continue
        width = max(len(settings.name) for settings in group)
        heads = (f"{settings.name:<{width}}  {' '.join(_place(settings))}\n" for settings in group)
        yield "".join(heads) + as_lines(rows, "  ")


def _place(settings: ItemSettings) -> tuple[str, str]:
    if isinstance(settings, SemaphoreSettings):
        return "prefix", settings.prefix
    return "key", settings.key


def _rows(settings: ItemSettings, others: int) -> Iterator[tuple[str, str]]:
    if isinstance(settings, SemaphoreSettings):
        yield "slots", f"{settings.limit} at most, fewer where .lock in Consul says so"
    role = "waits, and tries on an operator's word alone" if settings.manual else "contends"
    yield "role", role if settings.contend else "observes: no session, no lease"
    if settings.contend:
        yield from lease_rows(settings, others)
        if settings.fence is not None:
            yield from usual_rows(settings)
            after, back_s = format_duration(settings.fence.after_s), RESTART_S + START_S + SAYS_S
            more, all_ = format_duration(back_s), format_duration(UNIT_WATCHDOG_S + back_s)
            yield "fence", f"spares a leader that says within after {after} that it stops. A supervisor that"
            yield (
                "",
                f"hangs longer is shot: an after of WatchdogSec + {more} ({all_} as shipped) avoids that",
            )
            yield from (("", text) for text in _shots(settings.fence))


def _shots(fence: Fence) -> Iterator[str]:
    """Yield how long several methods take, and how many machines may be shot."""
    if fence.others:
        takes = [f"{each.name} {format_duration(each.attempt_s)}" for each in fence.methods]
        all_s = format_duration(sum(each.attempt_s for each in fence.methods))
        yield f"tries {', then '.join(takes)}: mostly the first, and all take {all_s} at most"
    if (limit := fence.limit) is not None:
        within = format_duration(limit.within_s)
        yield f"switches off {limit.machines} machines at most within {within} (fence_limit)"


def usual_rows(
    settings: ItemSettings, takes_s: float | None = None, gossip: Gossip = DEFAULT_GOSSIP
) -> Iterator[tuple[str, str]]:
    """Yield how soon another node usually acts after a crash. ``takes_s``: how long the fence then takes."""
    fence, noticed = settings.fence, noticed_s(settings, gossip)
    if settings.session.ttl_s is None or (fence is None and len(noticed) == 1):
        return  # the TTL is as quick as gossip
    guarded_s = acts_after_s(settings, takes_s or 0.0)
    acts, ends = (" to ".join(format_duration(each_s + s) for each_s in noticed) for s in (guarded_s, 0.0))
    how = f"{SERF_HEALTH}; 2 x ttl at most" if SERF_HEALTH in settings.session.node_checks else "2 x ttl"
    more, then = "", "lock_delay"
    if fence is not None:
        more, takes = (" + fence", "") if takes_s is None else ("", f" {format_duration(takes_s)}")
        then = f"after {format_duration(fence.after_s)}"
        if not fence.exclusive:
            then = f"the longer of {format_duration(lease_of(settings).key_delay_s)} in Consul and {then}"
        then += f", then fence{takes}"
    yield "usually", f"{acts}{more} after a crash of the machine: Consul ends the session in {ends}"
    yield "", f"({how}), then {then}"
    if fence is None:
        yield "", "The leadership also ends when a network fault is noticed by Consul's gossip alone"


def as_lines(rows: Iterable[tuple[str, str]], before: str) -> str:
    """Return a line for each row, a label and its text. Each line begins with ``before``."""
    return "".join(f"{before}{label:<{_LABEL_WIDTH}}  {text}\n" for label, text in rows)


def lease_rows(settings: ItemSettings, others: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each figure of a lease: its name, and its sum. ``others``: the items that busy_delay counts."""
    lease = _lease(settings, others)
    yield "ttl", "none" if lease.ttl_s is None else format_duration(lease.ttl_s)
    yield settings.lockout_name, format_duration(lease.lockout_s)
    terms = " + ".join(f"{what} {format_duration(length_s)}" for what, length_s in lose_terms(settings))
    yield "lose_time", f"{format_duration(lease.lose_time_s)} = {terms}" if terms else format_duration(0)
    yield "room", _room(settings.lockout_name, lease)
    silence, cut_off = (format_duration(max(0.0, each_s)) for each_s in (lease.silence_s, lease.cut_off_s))
    tolerated = "without an answer from Consul are tolerated"
    if lease.ttl_s is not None:  # a new leader of Consul starts every TTL again, and one that stays does not
        tolerated = "are tolerated while Consul changes its leader"
    yield "silence", f"{silence} {tolerated}: room - 2 x interval {format_duration(lease.interval_s)}"
    if lease.ttl_s is not None:
        exchange, retry = format_duration(lease.exchange_s), format_duration(RETRY_MAX_S)
        terms = f": 2 x ttl - ttl/3 - exchange {exchange} - {retry}" if cut_off != silence else ""
        yield "cut off", f"{cut_off} are tolerated while Consul keeps its leader{terms}"
    if (fence := settings.fence) is not None and fence.outage_s is not None:
        outage = f"{format_duration(fence.outage_s)} without an answer from Consul are ridden out"
        yield "outage", f"{outage}. Others wait, unless fence succeeds, for"
        yield "", "an operator" if fence.required else f"{outage_sum(settings)} by the tenure record"
    if settings.watchdog is not None:
        earlier, (_, text) = format_duration(lease.margin_s / 2), watchdog_sum(settings, settings.watchdog)
        yield "watchdog", f"fires at the latest {earlier} before another node may act, and a restart needs"
        yield "", text
    yield from (
        ("failover" if index == 0 else "", text)
        for index, text in enumerate(_failover(settings, lease, others))
    )


def _room(guard: str, lease: Lease) -> str:
    room_s = lease.lockout_s - lease.margin_s - lease.lose_time_s
    parts = (lease.lockout_s, lease.margin_s, lease.lose_time_s)
    text = "{} {} - margin {} - lose_time {}".format(guard, *map(format_duration, parts))
    if room_s < ROOM_MIN_S:
        only = f"{text} is only {format_duration(room_s)}"
        return f"{format_duration(lease.room_s)} = ttl, because accept_overlap is true: {only}"
    return f"{format_duration(room_s)} = {text}"


def _failover(settings: ItemSettings, lease: Lease, others: int) -> Iterator[str]:
    if lease.failover_s is not None and lease.ttl_s is not None:
        longest, more = format_duration(lease.failover_s), format_duration(2 * lease.ttl_s)
        terms, waits = f"2 x ttl + {settings.lockout_name}", ""
        if (fence := settings.fence) is not None:
            wait = settings.lockout_name if fence.outage_s is None else format_duration(lease.asked_s)
            terms = "2 x ttl" if fence.exclusive else f"2 x ttl + {settings.lockout_name} in Consul"
            waits = f"+ {wait} where fence fails; "
        if lease.acquire_delay_s:
            terms += f" + acquire_delay {format_duration(lease.acquire_delay_s)}"
        if lease.busy_s:
            terms += f" + busy_delay {format_duration(lease.busy_s / others)} x {others} other items"
        yield f"{longest} at most after a crash while Consul keeps its leader: {terms}{'' if waits else ';'}"
        yield f"{waits}else Consul's own election and {more} more"
        return
    if lease.ttl_s is not None:
        yield "no limit after a crash: until fence succeeds, the former leader says that it has ended, or an"
        yield f"operator has made sure of that and runs `consul-supervisor confirm-off {settings.name}`"
        return
    held = "key" if settings.kind == "election" else "slot"
    yield f"none after a crash: without a TTL the {held} stays taken until an operator frees it. Find the"
    yield f"session by `consul-supervisor members {settings.name}`, make sure that its node is down, then"
    later = (
        f"{format_duration(lease.key_delay_s)} ({settings.lockout_name}) later"
        if lease.key_delay_s
        else "then"
    )
    yield f"`consul-supervisor sessions destroy ID`; the {held} is free {later}"
