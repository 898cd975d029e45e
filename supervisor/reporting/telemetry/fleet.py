"""What this daemon reports of its fleet, and the warnings that follow. ``daemon/fleet`` fills it in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from supervisor.reporting.telemetry.formatting import bounded

FOREIGN_MAX = 5  # keys that are no orders; more would hide the rest


@dataclass(slots=True)
class FleetReport:
    """The report of one daemon."""

    service: str = ""  # as which all daemons are registered. Blank: there is no fleet
    absent: str = ""  # why Consul's catalog does not show this node. Blank: it does, or is not to
    orders_fault: str = ""  # why others may be there that this node does not know. Blank: there are none
    foreign_orders: dict[str, str] = field(default_factory=dict)  # by key in Consul that is no order: why
    paused_everywhere: dict[str, str] = field(default_factory=dict)  # by item: who pauses it, and until when
    untold: dict[str, str] = field(default_factory=dict)  # by election: why Consul lacks its tenures

    def warnings(self) -> Iterator[str]:
        """Yield each warning that is not about a single item."""
        if self.absent:
            yield f"other nodes do not see this one as it is (fleet): {bounded(self.absent)}"
        if self.orders_fault:
            yield f"cannot read all orders for the whole fleet: {bounded(self.orders_fault)}"
        for key, why in sorted(self.foreign_orders.items())[:FOREIGN_MAX]:
            yield f"{bounded(key)} is ignored: {why}; delete it"
        for items, order in _by_text(self.paused_everywhere):
            name = items if items in self.paused_everywhere else "NAME"
            yield f"{items}: {order}; `consul-supervisor resume {name} --everywhere` ends that"
        for items, why in _by_text(self.untold):
            yield f"cannot write the history of {items}: {bounded(why)}"


def _by_text(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each text once, with the items that have it in short."""
    for text in dict.fromkeys(texts.values()):
        first, *more = (item for item, each in texts.items() if each == text)
        yield (f"{first} and {len(more)} more" if more else first), text
