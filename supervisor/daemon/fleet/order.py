"""What an operator orders for the whole fleet, and what a node has seen of it. Pure functions.

    <prefix>/orders/pause/<item>          no node tries while this key is there and its time is not over
    <prefix>/orders/step-down/<session>   the holder whose session this is steps down; nobody else does

Commands write these keys, and daemons delete one whose time is over for everybody, where they may. So an
order is a state, and none is applied twice, also where a snapshot of Consul brings it back. A value is a
document of JSON:
``{"version": 1, "item": "db", "who": "ann@n1", "why": "…", "at": "2026-11-27T10:00:00Z", "for_s": 7200}``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from supervisor.adapters.consul.fleet_requests import orders_folder
from supervisor.adapters.consul.presence import Present
from supervisor.adapters.consul.shared.listing import Listing
from supervisor.adapters.journal.serialize import from_plain, to_plain
from supervisor.core.frozen import dataclass, replace
from supervisor.core.outcomes import KeyView, Unknown
from supervisor.core.times import NEVER
from supervisor.reporting.control.protocol import NAME, PAUSE_S_MAX, note_of
from supervisor.reporting.telemetry.formatting import bounded, unix_time, when

VERSION = 1  # of the value; fields may be added, and none changes its meaning or is removed
BYTES_MAX = 4096  # of a value
LISTED_MAX = 10_000  # more than one file can have items
_SESSION = re.compile("[0-9A-Za-z-]{0,64}")
PAST_MAX = 200  # orders that are no more, the newest ones; a pause without an end is kept as such for ever
LATE_S = 3600.0  # how far clocks may differ: an order whose own time ended longer ago is over for everybody


@dataclass(frozen=True, slots=True)
class Order:
    """One order. ``at`` is by the clock of the machine on which the command ran, as in status."""

    item: str
    who: str
    at: str
    why: str = ""  # blank: no reason was given
    for_s: float | None = None  # how long a pause lasts for each node that sees it. None: until it is deleted
    to: str = ""  # the session that is to take over after step-down. Blank: any
    key: str = ""  # the item's key, because another fleet may have an item of this name. Blank: not told
    index: int = field(default=0, compare=False)  # the ModifyIndex of its key, which a snapshot may change

    @property
    def at_s(self) -> float:
        """``at`` as Unix time. Raises ValueError."""
        return unix_time(self.at)

    @property
    def told(self) -> str:
        """The words that a node which follows it tells Consul's catalog, before anything else."""
        return f"everywhere by {bounded(self.who)} since {self.at}"


@dataclass(frozen=True, slots=True)
class Orders:
    """All orders as one answer shows them."""

    pauses: Mapping[str, Order]  # by item
    step_downs: Mapping[str, Order]  # by session
    foreign: Mapping[str, str]  # by key that is no order: why


def pause_key(prefix: str, item: str) -> str:
    return f"{orders_folder(prefix)}pause/{item}"


def step_down_key(prefix: str, session: str) -> str:
    return f"{orders_folder(prefix)}step-down/{session}"


def encoded(order: Order) -> bytes:
    return json.dumps({"version": VERSION, **to_plain(replace(order, index=0))}).encode()


def orders_of(listing: Listing, prefix: str) -> Orders:
    """Return the orders below this prefix. Never raises, whatever is there."""
    pauses, step_downs, foreign = {}, {}, {}
    for key in sorted(listing.entries)[:LISTED_MAX]:
        kind, _, subject = key.removeprefix(orders_folder(prefix)).partition("/")
        order = order_of(listing.outcome(key))
        if isinstance(order, str):
            foreign[key] = order
        elif kind == "step-down":
            step_downs[subject] = order
        elif kind == "pause" and order.item == subject:
            pauses[subject] = order
        else:
            foreign[key] = "its name is not that of such an order"
    return Orders(pauses, step_downs, foreign)


def order_of(shown: KeyView | Unknown) -> Order | str:
    """Return the order in this key, or why it holds none."""
    if isinstance(shown, Unknown):
        return shown.why
    try:
        found: Any = json.loads(shown.value.decode()) if len(shown.value) <= BYTES_MAX else {}
        if found["version"] != VERSION:
            return f"its value is of version {VERSION + 1} or later, or damaged"
        order: Order = from_plain(Order, {**found, "index": shown.modify_index})
        if _is_sound(order):
            return order
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, OverflowError):
        pass
    return "its value is no order, or a damaged one"


def _is_sound(order: Order) -> bool:
    """Return whether a command could have given it. Raises ValueError or OverflowError, too.

    An order reaches hooks and other keys of Consul, so it is checked like a command on the control socket.
    """
    texts = all(note_of(each) == each for each in (order.who, order.why))
    lasts = order.for_s is None or 0.0 <= order.for_s <= PAUSE_S_MAX
    names = NAME.fullmatch(order.item) and _SESSION.fullmatch(order.to)
    return texts and lasts and bool(names) and when(order.at_s) == order.at


def may_follow(node: Present, order: Order) -> bool:
    """Return whether this node of Consul's catalog tells that it follows the pause, or has no room for it."""
    _, told = node.parts.get(order.item, ("", ""))
    return order.told in told or bool(node.left_out and order.item not in node.parts)


# --- what a node has seen -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """The order of a pause, as this node knows it. Times are Unix times by its own clock."""

    order: Order
    seen_at: float  # when it was first seen
    prefix: str = ""  # of the fleet. Blank: an earlier release has kept it
    gone: bool = False  # its key was deleted, which ends it for good

    @property
    def ends_at(self) -> float:
        """When the pause is over. NEVER: when its key is deleted."""
        if self.order.for_s is None:
            return NEVER
        return self.seen_at + (0.0 if self.is_late else self.order.for_s)

    @property
    def is_late(self) -> bool:
        """Whether it was over for everybody when this node saw it, however far clocks differ."""
        for_s = self.order.for_s
        return for_s is not None and self.seen_at > self.order.at_s + for_s + LATE_S

    def is_over(self, now: float) -> bool:
        """Return whether the order is over for everybody, and was followed here before."""
        return self.gone or (not self.is_late and replace(self, seen_at=now).is_late)

    @property
    def until(self) -> str | None:
        return None if self.ends_at == NEVER else when(self.ends_at)

    def __str__(self) -> str:
        order, ends = self.order, "" if self.until is None else f" until {self.until}"
        why = f": {bounded(order.why)}" if order.why else ""
        return f"paused everywhere by {bounded(order.who)} since {order.at}{ends}{why}"


def seen_of(known: Iterable[Seen], shown: Iterable[Order], prefix: str, now: float) -> tuple[Seen, ...]:
    """Return what is known once this fleet shows these pauses. One that was seen before keeps its time."""
    orders, ours = dict.fromkeys(shown), {each.order: each for each in known if each.prefix in ("", prefix)}
    others = [each for each in known if each.prefix not in ("", prefix)]
    past = [replace(each, prefix=prefix, gone=True) for each in ours.values() if each.order not in orders]
    kept = [each for each in (*others, *past) if not replace(each, seen_at=now).is_late][-PAST_MAX:]
    return (*kept, *(replace(ours.get(each, Seen(each, now)), order=each, prefix=prefix) for each in orders))


def kept_of(seen: Iterable[Seen]) -> bytes:
    return json.dumps({str(number): to_plain(each) for number, each in enumerate(seen)}).encode()


def seen_in(kept: bytes) -> tuple[Seen, ...]:
    """Return what ``kept_of`` has encoded. Damage counts as nothing, because Consul has the orders."""
    try:
        seen = tuple(from_plain(Seen, plain) for plain in json.loads(kept).values())
        return seen if all(_is_sound(each.order) and str(each) for each in seen) else ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return ()
