"""The lane of the service that names this node in Consul while it holds: ``service`` of an item.

The lane compares what the agent is to have with its newest answer, and sends the one request that brings the
two together. Nothing else waits for it or looks at its answers, so no fault of it can reach the lock. While
this node holds, each contact lets the check pass, and tries again whatever has failed. The TTL of the check
is the room of the lease, so after a crash the name stays no longer than the belief would have lasted.

An id of another program is left alone, so the agent is asked for the id before each registration. Some time
after a deregistration it is asked once more, because a frozen agent may apply an earlier request late.
"""

from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import Lease
from supervisor.core.machines.lane import LONG_AGO, NEVER, Lane
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.outcomes import Denied, Done, Instance, Outcome, Refused
from supervisor.core.requests import (
    DeregisterService,
    PassService,
    ReadService,
    RegisterService,
    Request,
    ServiceRequest,
)
from supervisor.core.settings import ItemSettings, ServiceSettings

AGAIN_S = 5.0  # a failure that lasts is rare in the log, and a request that was applied late is seen soon

Registration = tuple[ServiceSettings, float]
"""An instance, and the TTL of its check."""


@dataclass(frozen=True, slots=True)
class Service:
    """The known state of the instance."""

    # The instance that the file has, or had before it lost the key ``service``. None: it never had one.
    of: ServiceSettings | None = None
    wanted: Registration | None = None  # what the agent is to have now. None: nothing
    found: Instance = Instance.UNKNOWN  # what the agent has under this id, by its newest answer
    registered: Registration | None = None  # what the agent confirmed last. None: it is to be sent again
    contact: float = LONG_AGO  # the newest contact for which the check was to pass
    exchange: Lane = Lane()

    @property
    def is_registered(self) -> bool:
        """Whether the agent has confirmed the instance that it is to have now."""
        return self.wanted is not None and self.registered == self.wanted

    @property
    def notice(self) -> str:
        """The notice that another program has the id of the instance. Blank: it has not."""
        if self.wanted is None or self.found is not Instance.FOREIGN:
            return ""
        remedy = f"`consul services deregister -id={self.wanted[0].id}` removes it"
        return f"the service {self.wanted[0].name} is not registered: another program has its id; {remedy}"

    def answered(self, request: ServiceRequest, outcome: Outcome, now: float) -> "Service":
        """Process the end of an exchange; leave alone the end of an exchange that is not under way."""
        if request != self.exchange.pending:
            return self
        found, registered, due_at = self.found, self.registered, NEVER
        match request, outcome:
            case RegisterService(service=service, ttl_s=ttl_s), Done():
                found, registered = Instance.OURS, (service, ttl_s)
            case PassService(), Done():
                pass
            case DeregisterService(), Done():
                found, registered, due_at = Instance.UNKNOWN, None, now + AGAIN_S
            case _, Instance():
                found, registered = outcome, None
                due_at = now + AGAIN_S if outcome is Instance.FOREIGN else now
            case RegisterService(), _ if not isinstance(outcome, Denied | Refused):
                found, registered, due_at = (
                    Instance.OURS,
                    None,
                    now + AGAIN_S,
                )  # no answer: the agent may still apply it
            case _:
                found, registered, due_at = Instance.UNKNOWN, None, now + AGAIN_S
        return replace(self, found=found, registered=registered, exchange=self.exchange.finish(due_at))


def advance(
    state: Service, item: ItemSettings, tenure: Tenure | None, lease: Lease, now: float
) -> tuple[Service, tuple[Request, ...]]:
    """Send the next request if it is due.

    During an adoption nothing is sent, so the instance of a process that crashed stays until Consul decides.
    """
    of, phase = item.service or state.of, None if tenure is None else tenure.phase
    if of is None or phase is Phase.ADOPTING:
        return state, ()
    wanted, contact = None, state.contact
    if item.service is not None and tenure is not None and phase is Phase.HOLDING:
        wanted, contact = (item.service, lease.room_s), tenure.contact
    found, exchange = state.found, state.exchange
    if state.of is None or (wanted, contact) != (state.wanted, state.contact):
        exchange = exchange.schedule_at(now)
        if found is Instance.ABSENT:  # that may be long ago, and another program may have the id now
            found = Instance.UNKNOWN
    state = replace(state, of=of, wanted=wanted, contact=contact, found=found, exchange=exchange)
    if not exchange.ready(now):
        return state, ()
    request = _next_request(state, (item.name, now, lease.exchange_s, of))
    exchange = exchange.schedule_at(NEVER) if request is None else exchange.begin(request)
    return replace(state, exchange=exchange), () if request is None else (request,)


def _next_request(state: Service, frame: tuple[str, float, float, ServiceSettings]) -> ServiceRequest | None:
    match state.found, state.wanted:
        case Instance.UNKNOWN, _:
            return ReadService(*frame)
        case Instance.OURS, None:
            return DeregisterService(*frame)
        case _, None:
            return None
        case Instance.FOREIGN, _:
            return ReadService(*frame)
        case _, wanted if wanted == state.registered:
            return PassService(*frame)
        case _, (_, ttl_s):
            return RegisterService(*frame, ttl_s)
