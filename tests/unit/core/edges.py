"""The edges of the core's state machines that are taken while other code runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from supervisor.core.claim import claim as claims
from supervisor.core.claim.claim import Claim, Standing, StandingEnd
from supervisor.core.machines import session as sessions
from supervisor.core.machines import tenure as tenures
from supervisor.core.machines.session import Session, Stage, StageEnd
from supervisor.core.machines.tenure import Phase, PhaseEnd, Tenure

Edge = tuple[Phase, Phase] | tuple[Stage, Stage] | tuple[Standing, Standing]

PHASE_EDGES = frozenset((one, to) for one, edges in tenures.TRANSITIONS.items() for to in edges.values())
STAGE_EDGES = frozenset((one, to) for one, edges in sessions.TRANSITIONS.items() for to in edges.values())
STANDING_EDGES = frozenset((one, to) for one, edges in claims.TRANSITIONS.items() for to in edges.values())
EDGES: frozenset[Edge] = PHASE_EDGES | STAGE_EDGES | STANDING_EDGES


@contextmanager
def edges_taken() -> Iterator[set[object]]:
    """Collect each edge that a tenure, a session or a claim takes, as (before, after)."""
    taken: set[object] = set()
    tenure_becomes, session_becomes, claim_becomes = tenures.become, sessions.become, claims.become

    def tenure_become(tenure: Tenure, cause: PhaseEnd, **changes: Any) -> Tenure:
        after = tenure_becomes(tenure, cause, **changes)
        taken.add((tenure.phase, after.phase))
        return after

    def session_become(session: Session, cause: StageEnd, **changes: Any) -> Session:
        after = session_becomes(session, cause, **changes)
        taken.add((session.stage, after.stage))
        return after

    def claim_become(claim: Claim, cause: StandingEnd, **changes: Any) -> Claim:
        after = claim_becomes(claim, cause, **changes)
        taken.add((claim.standing, after.standing))
        return after

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tenures, "become", tenure_become)
        patch.setattr(sessions, "become", session_become)
        patch.setattr(claims, "become", claim_become)
        yield taken
