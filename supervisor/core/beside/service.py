"""The lane of the service that names this node in Consul while it holds: ``service`` of an item.

The lane compares what the agent is to have with its newest answer, and sends the one request that brings the
two together. Nothing else waits for it or looks at its answers, so no fault of it can reach the lock. While
this node holds, each contact lets the check pass, and tries again whatever has failed. The TTL of the check
is TTL_INTERVALS intervals, so after a crash, or where the agent refuses to deregister it, the name stays no
longer than that.

An id of another program is left alone, so the agent is asked for it before a registration, before the end,
and now and then while this node holds. The agent tells its servers with the token of the registration, and is
silent when they refuse it. So an instance not registered with the token in use is registered anew first. At
the end its check fails, it is deregistered once no server names it, and the servers are asked again, because
they may refuse the agent. Later so is the agent, because a frozen one may apply an earlier request late.
"""

from supervisor.core.frozen import dataclass, replace
from supervisor.core.lease import Lease
from supervisor.core.machines.lane import Lane
from supervisor.core.machines.tenure import Phase, Tenure
from supervisor.core.outcomes import Done, Instance, Outcome, Unknown
from supervisor.core.requests import (
    DeregisterService,
    FailService,
    FindService,
    PassService,
    ReadService,
    RegisterService,
    Request,
    ServiceRequest,
)
from supervisor.core.settings import ItemSettings, ServiceSettings
from supervisor.core.times import LONG_AGO, NEVER

AGAIN_S = 5.0  # a failure that lasts is rare in the log, and a request that was applied late is seen soon
TTL_INTERVALS = 3  # of the holder's reads, so that a pass without an answer hides no holder
NAMED_S, LEFT_S = 0.5, 30.0  # to the next try where the servers name an instance, or only keep it
LOOK_TTLS = 3  # between two looks of a holder, because a program takes an id over rarely

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
    looked_at: float = LONG_AGO  # when the agent had our instance, by its own word
    is_late: bool = False  # a registration may still be applied, so ABSENT is to be seen twice
    exchange: Lane = Lane()

    @property
    def is_registered(self) -> bool:
        """Whether the agent has confirmed the instance that it is to have now."""
        return self.wanted is not None and self.registered == self.wanted

    @property
    def notice(self) -> str:
        """The notice about an instance that cannot be registered, or has not gone. Blank: there is none."""
        if self.of is not None and self.found in (Instance.NAMED, Instance.LEFT):
            remedy = 'give its agent a token (acl.tokens.agent) with node_prefix "" { policy = "write" }'
            return f"the service {self.of.name} of this node is still {self.found.value}: {remedy}"
        if self.wanted is None or self.found is not Instance.FOREIGN:
            return ""
        remedy = f"`consul services deregister -id={self.wanted[0].id}` removes it"
        return f"the service {self.wanted[0].name} is not registered: another program has its id; {remedy}"

    def answered(self, request: ServiceRequest, outcome: Outcome, now: float) -> "Service":
        """Process the end of an exchange; leave alone the end of an exchange that is not under way."""
        if request != self.exchange.pending:
            return self
        found, registered, looked_at, due_at = Instance.UNKNOWN, None, self.looked_at, now + AGAIN_S
        is_late = self.is_late or isinstance(request, RegisterService)
        pass_at = now if self.wanted is None else now + self.wanted[1] / 2  # a contact usually comes before
        match request, outcome:
            case RegisterService(service=of, ttl_s=ttl_s, passing=passing), Done():
                registered, looked_at, due_at = (of, ttl_s), now, pass_at
                found = Instance.OURS if passing is (self.wanted is not None) else found  # as it was wanted
            case PassService(), Done():
                found, registered, due_at = self.found, self.registered, pass_at
            case ReadService(), Instance.OURS:
                found, registered, looked_at, due_at = outcome, self.registered, now, now
            case FailService(), Done() | Instance.UNKNOWN:
                found, due_at = Instance.FAILED, now
            case DeregisterService(), Done() | Instance.ABSENT if not self.wanted:
                is_late, found, due_at = False, Instance.REMOVED, now
            case FindService(), Instance() if self.found is Instance.FAILED and outcome is not Instance.NAMED:
                found, due_at = Instance.UNNAMED, now
            case FindService(), Instance.NAMED | Instance.LEFT:
                found, due_at = outcome, now + (LEFT_S if outcome is Instance.LEFT else NAMED_S)
            case FindService(), Unknown():
                found = self.found
            case ReadService(), Instance.ABSENT if is_late and not self.wanted:
                is_late = False
            case _, Instance() if not isinstance(request, FindService):
                found, due_at = outcome, now + AGAIN_S if outcome is Instance.FOREIGN else now
        service = replace(self, found=found, registered=registered, exchange=self.exchange.finish(due_at))
        return replace(service, looked_at=looked_at, is_late=is_late)


def advance(
    state: Service, item: ItemSettings, tenure: Tenure | None, lease: Lease, now: float, *, acts: bool
) -> tuple[Service, tuple[Request, ...]]:
    """Send the next request if it is due. ``acts``: the application does, while belief lasts.

    Before the end of an adoption nothing else is sent, so the instance of a process that crashed stays until
    Consul decides.
    """
    of, phase = item.service or state.of, None if tenure is None else tenure.phase
    if of is None or (phase is Phase.ADOPTING and not acts):
        return state, ()
    wanted, contact, ttl_s = None, state.contact, min(lease.room_s, TTL_INTERVALS * lease.interval_s)
    if item.service is not None and tenure is not None and acts:
        wanted, contact = (item.service, ttl_s), tenure.contact
    found, exchange = state.found, state.exchange
    if state.of is None or (wanted, contact) != (state.wanted, state.contact):
        exchange = exchange.schedule_at(now)
    if wanted != state.wanted or (found is Instance.OURS and now >= state.looked_at + LOOK_TTLS * ttl_s):
        found = Instance.UNKNOWN  # another program may have the id now
    state = replace(state, of=of, wanted=wanted, contact=contact, found=found, exchange=exchange)
    if not exchange.ready(now):
        return state, ()
    request = next_request(state, (item.name, now, lease.exchange_s, of), ttl_s)
    exchange = exchange.schedule_at(NEVER) if request is None else exchange.begin(request)
    return replace(state, exchange=exchange), () if request is None else (request,)


def next_request(
    state: Service, frame: tuple[str, float, float, ServiceSettings], ttl_s: float
) -> ServiceRequest | None:
    match state.found, state.wanted:
        case (Instance.UNKNOWN, _) | (Instance.FOREIGN, (_, _)):
            return ReadService(*frame)
        case Instance.FORMER | Instance.NAMED, None:  # so that the agent has a token that its servers accept
            return RegisterService(*frame, ttl_s, passing=False)
        case Instance.OURS, None:
            return FailService(*frame)
        case Instance.UNNAMED, None:
            return DeregisterService(*frame)
        case Instance.FAILED | Instance.REMOVED | Instance.LEFT, None:
            return FindService(*frame)
        case _, None:
            return None
        case Instance.OURS, wanted if wanted == state.registered:
            return PassService(*frame)
        case _:
            return RegisterService(*frame, ttl_s)
