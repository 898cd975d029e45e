"""The edges of the core's state machines that are taken while other code runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from supervisor.core import session as sessions
from supervisor.core import tenure as tenures
from supervisor.core.session import Session, Stage
from supervisor.core.tenure import Phase, Tenure

Edge = tuple[Phase, Phase] | tuple[Stage, Stage]

PHASE_EDGES = frozenset((one, other) for one, others in tenures.TRANSITIONS.items() for other in others)
STAGE_EDGES = frozenset((one, other) for one, others in sessions.TRANSITIONS.items() for other in others)
EDGES: frozenset[Edge] = PHASE_EDGES | STAGE_EDGES


@contextmanager
def edges_taken() -> Iterator[set[object]]:
    """Collect each edge that a tenure or a session takes, as (before, after)."""
    taken: set[object] = set()
    tenure_becomes, session_becomes = tenures.become, sessions.become

    def tenure_become(tenure: Tenure, phase: Phase, **changes: Any) -> Tenure:
        taken.add((tenure.phase, phase))
        return tenure_becomes(tenure, phase, **changes)

    def session_become(session: Session, stage: Stage, **changes: Any) -> Session:
        taken.add((session.stage, stage))
        return session_becomes(session, stage, **changes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tenures, "become", tenure_become)
        patch.setattr(sessions, "become", session_become)
        yield taken
