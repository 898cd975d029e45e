"""What a contender remembers of a long tenure record, in case that Consul loses its word.

A Consul that is made anew, or restored from a snapshot, shows neither key nor record as they were, while the
holder may act on by them. So a node that has seen the flags of a long record compares each consistent answer
with what it remembers. Where they contradict each other, it waits behind its acquire as if the record were
still there, and shoots nobody. docs/lease.md has the rule, and its limit: a node that starts later.
"""

from supervisor.core.claim.record import TenureRecord
from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import LOCK_DELAY_MAX_S, OUTAGE_LOCKOUT_MAX_S
from supervisor.core.outcomes import KeyView, TenureShown, View
from supervisor.core.settings import Place


@dataclass(frozen=True, slots=True)
class LostWord:
    """Consul has lost its word of a long record."""

    ends_at: float  # by then no lease lasts that counts from an answer of the former Consul
    lease_s: float  # how long the former holder may act after its newest contact
    former: TenureRecord | None  # the record of that holder. None: this node has not read it
    is_ours: bool  # it was this node, which waits for nobody


@dataclass(frozen=True, slots=True)
class Memory:
    """The long record of one key, as this node knows it."""

    view: KeyView | None = None  # the newest view of the key with the flags of a long record
    record: TenureRecord | None = None  # the long record that was read or written last
    record_index: int = 0  # its ModifyIndex
    lost: LostWord | None = None

    def seen(self, view: KeyView) -> "Memory":
        """Take in a view that this memory does not doubt, and forget a record that went in order."""
        if view.is_long:
            return replace(self, view=view)
        return self if view.has_record_flags else Memory(lost=self.lost)

    def read(self, record: TenureRecord | None, index: int) -> "Memory":
        if record is None or not record.session:
            return self
        return replace(self, record=record, record_index=index) if record.is_long else Memory(lost=self.lost)

    def doubts(self, view: View | None) -> bool:
        """Return whether the key was made anew, or is older than it was. A consistent read shows that."""
        known = self.view
        if known is None or not isinstance(view, KeyView):
            return False
        return view.create_index != known.create_index or view.modify_index < known.modify_index

    def contradicts(self, shown: TenureShown) -> bool:
        """Return whether the record is older than it was, or than the flags that told of a longer one."""
        record, known, index = shown.record, self.view, shown.modify_index
        if record is None:
            return False
        shrank = known is not None and known.session == record.session and not record.is_long
        return index < self.record_index or (shrank and known is not None and index < known.modify_index)

    def after_loss(self, session: str | None, here: Place, asked_s: float, now: float) -> "Memory":
        """Return what is left to know once Consul has lost its word.

        session: ours. asked_s: how long our own file asks others to wait, as the other files do.
        """
        former, before = self.record, self.lost
        unread_s = asked_s if asked_s > LOCK_DELAY_MAX_S else OUTAGE_LOCKOUT_MAX_S
        lease_s = max(
            0.0 if former is None else former.lock_delay_s, 0.0 if before is None else before.lease_s
        )
        if former is None or self.view is None or former.session != self.view.session:
            former, lease_s = None, max(lease_s, unread_s)  # whoever held last may have another record
        lease_s = max(lease_s, asked_s)
        is_ours = former is not None and (session == former.session or former.place.is_same_machine(here))
        return Memory(lost=LostWord(now + lease_s, lease_s, None if is_ours else former, is_ours))

    def waits_for(self, now: float) -> LostWord | None:
        """Return behind what an acquire waits, although Consul shows nothing of it."""
        lost = self.lost
        return None if lost is None or lost.is_ours or now >= lost.ends_at else lost
