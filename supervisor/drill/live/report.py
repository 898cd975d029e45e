"""A live drill, as text and as JSON. The functions return text and print nothing."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from supervisor.core.lease import lease_of, lose_terms
from supervisor.drill.live.plan import LivePlan
from supervisor.drill.live.sight import Handover
from supervisor.drill.promises import ALLOWANCE_S
from supervisor.drill.report import WIDTH, play_lines, verdict
from supervisor.formats.durations import format_duration

JSON_VERSION = 1  # of the document's shape; an added field does not change it


def begin_lines(plan: LivePlan, back_by: str, *, one_way: bool) -> Iterator[str]:
    """Yield what is printed before anything is done: what will happen, and what ``check`` promises.

    back_by: the command that requests the way back. Blank: the operator types it on the other node.
    """
    item, lease = plan.item, lease_of(plan.item)
    yield f"live drill of {item.name}: {plan.here} holds {item.key} with fencing token {plan.token}"
    there = f"{plan.here} runs on_lose and releases; {plan.there} acquires and runs on_acquire."
    by = f"by {back_by}" if back_by else f"by a command that you run on {plan.there}"
    back = f"{plan.there} keeps it." if one_way else f"Then {plan.there} hands it back {by}."
    yield from textwrap.wrap(f"This moves the real leader: {there} {back}", WIDTH)
    terms = " + ".join(f"{name} {format_duration(seconds)}" for name, seconds in lose_terms(item))
    figures = f"lose_time {format_duration(lease.lose_time_s)}{f' ({terms})' if terms else ''}"
    if lease.acquire_delay_s:
        figures += f", acquire_delay {format_duration(lease.acquire_delay_s)}"
    yield from textwrap.wrap(
        f"check promises: {figures}. {format_duration(ALLOWANCE_S)} more is allowed.", WIDTH
    )


def handover_lines(handover: Handover) -> Iterator[str]:
    """Yield the time line and the promises of one hand-over, and the gap."""
    yield from play_lines(handover.played)
    if handover.gap_s is not None:
        yield f"    gap     {_gap(handover.gap_s)}"


def _gap(gap_s: float) -> str:
    if not gap_s:
        return "no answer of Consul showed the key without a holder"
    return f"no node was holder in Consul for {1000 * gap_s:.0f} ms"


def end_line(plan: LivePlan, handovers: Sequence[Handover]) -> str:
    """Return the verdict, the holder at the end, and the fencing tokens."""
    promises = [promise for handover in handovers for promise in handover.played.promises]
    tokens = [plan.token, *(handover.token for handover in handovers if handover.token is not None)]
    return f"{verdict(promises)}; {_holder(plan, handovers)}; fencing tokens {', '.join(map(str, tokens))}"


def _holder(plan: LivePlan, handovers: Sequence[Handover]) -> str:
    """Return which node holds at the end, as far as this drill has seen it."""
    if not handovers[-1].holder:
        return "no node holds it"
    return f"{handovers[-1].node} holds it"


def as_json(plan: LivePlan, handovers: Sequence[Handover]) -> str:
    """Return the whole result as one JSON document."""
    last = handovers[-1]
    document = {
        "version": JSON_VERSION,
        "item": plan.item.name,
        "key": plan.item.key,
        "node": plan.ours.node,
        "session": plan.ours.id,
        "fencing_token": plan.token,
        "promised_s": plan.promised_s,
        "allowance_s": ALLOWANCE_S,
        "kept": all(handover.played.kept for handover in handovers),
        "handovers": [_handover(handover) for handover in handovers],
        "holder": {"node": last.node or None, "session": last.holder or None},
    }
    return json.dumps(document, indent=2)


def _handover(handover: Handover) -> dict[str, object]:
    played = handover.played
    return {
        "handover": played.play,
        "kept": played.kept,
        "gap_s": None if handover.gap_s is None else round(handover.gap_s, 6),
        "fencing_token": handover.token,
        "promises": [asdict(promise) for promise in played.promises],
        "events": [asdict(line) for line in played.lines],
    }
