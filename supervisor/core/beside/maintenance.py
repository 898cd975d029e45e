"""The lane of Consul's maintenance mode, which ``candidate_check: {maintenance: true}`` respects.

``consul maint`` ends no session, and a session cannot be bound to a check that does not exist yet. So a
contender sends a request to the agent once in each interval of candidate_check. The node is unfit until the
first answer, and while the newest answer shows the maintenance mode. Silence changes nothing, because only an
operator begins and ends that mode.
"""

from supervisor.core.frozen import dataclass, replace
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.session import Terms
from supervisor.core.outcomes import InMaintenance, Outcome, Unknown
from supervisor.core.requests import ReadMaintenance, Request
from supervisor.core.settings import CandidateCheck, ItemSettings
from supervisor.core.times import LONG_AGO, NEVER


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The known state of the maintenance mode."""

    is_fit: bool = True  # the newest answer shows no maintenance mode, or the settings request none
    why: str = ""  # the mode in the newest answer, and the command that ends it. Blank: there is none
    read: Lane = Lane()  # the lane of the request

    def under(self, settings: ItemSettings, former: ItemSettings) -> "Maintenance":
        """Return the state under new settings: the newest answer counts if both settings want one."""
        return self if _is_wanted(settings) == _is_wanted(former) else new_maintenance(settings)

    def answered(self, outcome: Outcome, check: CandidateCheck, now: float, retry_s: float) -> "Maintenance":
        """Process the end of an exchange. Without an answer, the former answer stays in force."""
        assert self.read.pending is not None
        next_at = max(now, self.read.pending.at + check.interval_s)
        if isinstance(outcome, InMaintenance):
            return replace(self, is_fit=not outcome.why, why=outcome.why, read=self.read.finish(next_at))
        due_at = now + retry_s if isinstance(outcome, Unknown) else next_at
        return replace(self, read=self.read.finish(due_at))

    def stopped(self) -> "Maintenance":
        return replace(self, read=self.read.schedule_at(NEVER))


def new_maintenance(settings: ItemSettings) -> Maintenance:
    if not _is_wanted(settings):
        return Maintenance()
    return Maintenance(is_fit=False, read=Lane(due_at=LONG_AGO))


def advance(maintenance: Maintenance, terms: Terms, now: float) -> tuple[Maintenance, tuple[Request, ...]]:
    if not maintenance.read.ready(now):
        return maintenance, ()
    request = ReadMaintenance(terms.item, now, terms.exchange_s)
    return replace(maintenance, read=maintenance.read.begin(request)), (request,)


def _is_wanted(settings: ItemSettings) -> bool:
    check = settings.candidate_check
    return check is not None and check.maintenance
