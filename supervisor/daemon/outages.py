"""Logs each silence of Consul that a holder rides out, and each tenure record that a stop leaves behind."""

from collections.abc import Sequence

from supervisor.core.actions import Action
from supervisor.core.contender.state import Contender
from supervisor.core.events import Answered, Event
from supervisor.daemon.shared import Shared
from supervisor.reporting.telemetry.item_warnings import outage_of


class Outages:
    """The outages of Consul, as the items of one node ride them out."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def on_step(self, event: Event, actions: Sequence[Action]) -> None:
        """Look at the item of each answer, because a holder repeats a request without one each second."""
        if isinstance(event, Answered) and (contender := self._shared.status.item(event.request.item)):
            now = self._shared.clock()
            outage = outage_of(contender, now, self._shared.wall() - now)
            self._shared.log.noted("outage", contender.settings.name, outage)

    def finished(self, ended: Contender) -> None:
        """Warn of the tenure record that this contender leaves, because its release has no answer."""
        claim, name = ended.claim, ended.settings.name
        record = claim.record or ended.our_record
        if claim.owes and record is not None and record.place == claim.here:
            self._shared.log.line("warning", "record-left", item=name, waits_s=record.lock_delay_s)
