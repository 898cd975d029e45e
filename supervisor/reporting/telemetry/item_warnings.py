"""The warnings about one item. Command and page show these and no others."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from supervisor.config.formats.durations import format_duration
from supervisor.config.formats.json_values import holder_name
from supervisor.core.actions import Role
from supervisor.core.claim.guard import Guard
from supervisor.core.claim.record import ABSENT, UNREADABLE
from supervisor.core.contender.state import Contender
from supervisor.core.frozen import replace
from supervisor.core.lease import LOCK_DELAY_MAX_S
from supervisor.core.lock.slots import LOCK
from supervisor.core.outcomes import KeyView, SlotsView
from supervisor.core.settings import NOWHERE
from supervisor.core.times import LONG_AGO, NEVER
from supervisor.reporting.telemetry.event_log import Event
from supervisor.reporting.telemetry.facts import ALTERED
from supervisor.reporting.telemetry.formatting import bounded, cannot_start, when
from supervisor.reporting.telemetry.item_history import ItemHistory


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the warnings about one item depend on."""

    contender: Contender
    history: ItemHistory
    given: Event | None  # the command by which it is paused, steps down or rests
    pauses: tuple[str, ...]
    unknown_since: str | None  # from when on nobody can tell who holds
    starves: bool  # whether its watchdog is about to reset the machine
    after: frozenset[str]  # the items that must end before it begins
    now: float  # by the core's clock
    wall: float  # Unix time less the core's clock


def warnings_of(shown: Shown) -> Iterator[str]:
    yield from _of_holder(shown)
    yield from _of_node(shown)
    yield from _of_slot(shown.contender)
    yield from _of_record(shown)
    yield from _of_pause(shown)


def _of_holder(shown: Shown) -> Iterator[str]:
    """Yield what is not known or not right about who holds."""
    contender, view = shown.contender, shown.contender.lock.view
    if shown.unknown_since:
        yield f"who holds is unknown since {shown.unknown_since}"
    elif contender.settings.kind == "election" and contender.tenure is None:
        if view is not None and view.leader is None:
            yield "nobody leads"
        record = contender.others_record
        if (
            isinstance(view, KeyView)
            and view.session
            and record is not None
            and record.session != view.session
        ):
            seen_at = contender.lock.holder_seen_at
            # The wait that the record notes may have begun before this node saw that, or after it.
            lost_at, whole = min(seen_at, shown.now - record.waited_s), replace(record, waited_s=0.0)
            guard = Guard(lost_at, NOWHERE, None, is_long=view.is_long)
            guard = guard.observe(whole, view.session, seen_at, seen_at)
            who = bounded(holder_name(view.value) or view.session)
            yield f"{who} has the key, does not act yet, and {_waits(contender, guard, shown.wall)} there"
    for holder in view.holders if view is not None and contender.tenure is None else ():
        is_former = any(each.id.startswith(holder.session) for each in shown.history.transitions)
        if is_former and holder.session != contender.session.id:
            ends = f"`consul-supervisor sessions destroy {holder.session}` ends that"
            yield f"an earlier session of this node keeps the lock, and nothing of it acts any more; {ends}"


def _of_node(shown: Shown) -> Iterator[str]:
    """Yield what keeps this node from holding, or may end its tenure."""
    contender, hook = shown.contender, shown.history.last_hook
    if contender.role is Role.INELIGIBLE:
        yield f"not fit, so this node does not contend{_why_unfit(contender, shown.history)}"
    if hook is not None and hook.ok is False and (hook.event != "fence" or contender.guard is not None):
        yield f"{hook.hook} failed" + (f": {bounded(hook.detail)}" if hook.detail else "")
    if outage := outage_of(contender, shown.now, shown.wall):
        yield outage
    elif lease_runs_out(contender, shown.now):
        yield "its lease runs out: Consul has not confirmed the lock for more than half of that time"
    if contender.guard is not None:
        yield _waits(contender, contender.guard, shown.wall)
    if shown.starves:
        yield "its watchdog resets this machine, unless Consul confirms the lock or on_lose ends before"
    if contender.told_notice:
        yield contender.told_notice
    elif contender.service.wanted is not None and not contender.service.is_registered:
        service = contender.service.wanted[0].name
        yield f"holds, and the service {service} does not name it: the agent has not confirmed it"
    for fault in contender.faults or ():
        yield cannot_start(fault)


def _of_slot(contender: Contender) -> Iterator[str]:
    """Yield why the slot of this node has no number, if it has a slot without one."""
    tenure, view = contender.tenure, contender.lock.view
    if tenure is None or tenure.slot is not None or not isinstance(view, SlotsView):
        return
    unknown = [each for each in view.named if each not in view.numbers and each != tenure.session]
    why = f"and its next tenure gets one: `consul-supervisor step-down {contender.settings.name}`"
    if unknown:
        others = f" and {len(unknown) - 1} more" if unknown[1:] else ""
        program = f"`consul lock` or an older release has written {LOCK}"
        why = f"because {program}, without that of {unknown[0]}{others}"
    yield f"its slot has no number, {why}"


def _of_record(shown: Shown) -> Iterator[str]:
    """Yield where what is in force differs from what is asked for, or recorded."""
    contender = shown.contender
    if contender.altered:
        yield f"{ALTERED}: {contender.altered}"
    if shown.history.unrecorded:
        yield f"cannot be recorded: {shown.history.unrecorded}"
    if shown.after:
        yield f"waits until {', '.join(sorted(shown.after))} has ended, which has the same name or key"
    if contender.departing:
        yield "is being wound up: the configuration no longer declares it as its record does"
    if contender.next_settings is not None:
        yield (
            "its new settings are not in force yet: they take effect when Consul confirms the lock, or"
            " when the tenure ends"
        )
    yield from _of_tenure_record(contender)


def _of_tenure_record(contender: Contender) -> Iterator[str]:
    """Yield where others wait by the tenure record for longer or shorter than the file asks for."""
    tenure, record, ours = contender.tenure, contender.claim.record, contender.our_record or ABSENT
    if tenure is None or not tenure.believes or record is None or contender.guard is not None:
        return
    said_s, asked_s = contender.claim.said_s(tenure.session) or 0.0, ours.lock_delay_s
    if said_s != asked_s and (record.is_long or ours.is_long):
        until = "until the next tenure" if said_s > asked_s else "until it is written again"
        asks = f"the file asks for {format_duration(asked_s)}"
        yield f"others wait {format_duration(said_s)} by the tenure record {until}; {asks}"


def _of_pause(shown: Shown) -> Iterator[str]:
    """Yield why this node does not try although it could, and until when."""
    contender, given, name = shown.contender, shown.given, shown.contender.settings.name
    for pause in shown.pauses:
        who, _, ends = pause.rpartition("until ")
        yield f"{f'paused {who}'.rstrip()}: does not contend until {ends}"
    if contender.settings.manual and contender.role is Role.WAITING and not contender.allowed:
        lets = f"`consul-supervisor resume {name}` lets it"
        yield f"does not try, because the file says contend: manual; {lets}"
    if contender.tenure is None and contender.rests_until > shown.now and not contender.paused:
        until = when(shown.wall + contender.rests_until)
        ends = f"`consul-supervisor resume {name}` ends the rest"
        yield f"rests until {until} after step-down{by(given)}; {ends}"
    if contender.tenure is None and contender.own_losses and contender.rejoin_at > shown.now:
        at = when(shown.wall + contender.rejoin_at)
        lost = next((f" ({each.reason})" for each in shown.history.transitions if each.event == "lose"), "")
        yield f"does not contend before {at}, because it ended the last tenure itself{lost}"


def pauses_of(contender: Contender, command: Callable[[str, str], Event | None], now: float) -> Iterator[str]:
    """Yield who pauses an item on this node, and until when: an operator's own pause, then that of drain."""
    drain = contender.paused_until if contender.drained else LONG_AGO
    for verb, until in (("pause", contender.stays_until), ("drain", drain)):
        if until > now:
            given = command(verb, contender.settings.name) or command("pause", contender.settings.name)
            since = f"{by(given)} since {given['time']} " if given else ""
            ends = "undrain" if given and given["verb"] == "drain" else "resume"
            yield f"{since}until {ends if until == NEVER else f'{when(until)} or {ends}'}".lstrip()


def silent_since(contender: Contender, now: float, wall: float) -> str | None:
    """Return since when Consul is silent, if this node rides that out by `outage`. None: it does not."""
    tenure = contender.tenure if contender.rides_out(now) else None
    return None if tenure is None else when(round(wall + tenure.contact))


def silence_of(contender: Contender, now: float, wall: float) -> dict[str, Any]:
    """Return the fields of the status about a silence of Consul. wall: Unix time less the core's clock."""
    tenure, lease = contender.tenure, contender.lease
    found: dict[str, Any] = dict.fromkeys(("silent_since", "acts_until", "outage_s", "record_s"))
    found["lease_runs_out"] = lease_runs_out(contender, now)
    if tenure is not None and tenure.believes:
        found["record_s"] = contender.claim.said_s(tenure.session) or None
        if lease.outlasts:
            found["outage_s"] = round(lease.belief_s - 2 * lease.interval_s, 3)
        found["silent_since"] = silent_since(contender, now, wall)
        if found["silent_since"]:
            found["acts_until"] = when(round(wall + tenure.expires_at(lease))) if contender.acts else None
    return found


def outage_of(contender: Contender, now: float, wall: float) -> str:
    """Return the silence of Consul that this holder rides out, in words. Blank: there is none."""
    if not (since := silent_since(contender, now, wall)):
        return ""
    until, acts = silence_of(contender, now, wall)["acts_until"], "this node does not hold before it answers"
    if until:
        acts = f"acts until {until} without it, then on_lose"
    return f"Consul is silent since {since}; {acts}"


def lease_runs_out(contender: Contender, now: float) -> bool:
    """Return whether a holder has been without news for more than half of its lease.

    The time must also exceed ``fresh_s``, which reads that Consul answers may leave between two answers.
    """
    tenure, lease = contender.tenure, contender.lease
    if tenure is None or not tenure.believes:
        return False
    return now - tenure.contact > max(lease.room_s / 2, lease.fresh_s)


def _waits(contender: Contender, guard: Guard, wall: float) -> str:
    """Return whom this node waits for before it acts, until when, and what ends that at once.

    wall: Unix time less the core's clock.
    """
    fence, name = contender.settings.fence, contender.settings.name
    if guard.end is not None:
        return f"{bounded(guard.waits_for)} no more ({guard.end}), and for Consul to confirm that"
    until = guard.waits_until(fence)
    ends = "time does not end that" if until == NEVER else f"until {when(wall + until)} at most"
    shoots = "" if fence is None else ", or until the fence has ended well"
    sure = f"if that machine is off: `{confirms_off(name, guard)}`"
    says = "which is stopping" if guard.stopping_at != NEVER else "which may still act"
    if guard.is_blind:
        says, shoots = "of which Consul has lost what it said, so nobody is shot", ""
    elif guard.record in (None, UNREADABLE):
        says, shoots = "whose tenure record is not there, or cannot be read", ""
    elif guard.is_limited(fence):
        shoots = ", and no fence runs, because fence_limit is reached"
        sure = f"if that machine is off: `consul-supervisor confirm-off --all {shlex.quote(guard.machine)}`"
    elif shoots and guard.shoots_at(fence) == NEVER:
        shoots = ", and no fence runs, because its record names no target, or that of this node"
    return f"{bounded(guard.waits_for)}, {says}: {ends}{shoots}; {sure}"


def long_waited_for(guard: Guard) -> str:
    """Return the machine that confirm-off must name, because it may act for long. Blank: none to be typed."""
    name = guard.machine
    is_long = guard.is_long and (guard.longest_s or 0.0) > LOCK_DELAY_MAX_S
    return name if is_long and name.isascii() and " " not in name else ""


def confirms_off(name: str, guard: Guard) -> str:
    """Return the command that ends the guard of this item."""
    named = f" --machine {shlex.quote(machine)}" if (machine := long_waited_for(guard)) else ""
    return f"consul-supervisor confirm-off {name}{named}"


def _why_unfit(contender: Contender, history: ItemHistory) -> str:
    """Return why the node is not fit, to be added to a text. Blank: another warning of the item says it."""
    if contender.ineligible:
        return f": {bounded(history.ineligible)}"
    if not contender.health.fit:
        return f": candidate_check {history.check_failed or 'has not succeeded yet'}"
    return ""


def by(given: Event | None) -> str:
    """Return who gave a command and why, to be added to a text. Blank: no such command is kept."""
    if given is None:
        return ""
    who = given.get("user") or f"user id {given.get('uid')}"
    who = f"drain of {who}" if given.get("verb") == "drain" else who
    return f" by {who}" + (f" ({note})" if (note := given.get("note")) else "")
