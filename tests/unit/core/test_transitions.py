"""The state machines of the core: their tables are the law, and the drawing follows the tables."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from supervisor import core
from supervisor.core.actions import Role
from supervisor.core.claim import claim as claims
from supervisor.core.claim.claim import Claim, Standing, StandingEnd
from supervisor.core.contender.state import ROLE_OF_PHASE, ROLES_WITHOUT_TENURE
from supervisor.core.machines import session as sessions
from supervisor.core.machines import tenure as tenures
from supervisor.core.machines.machine import ImpossibleTransition
from supervisor.core.machines.session import NO_SESSION, Stage, StageEnd
from supervisor.core.machines.tenure import Phase, PhaseEnd, Tenure
from tests.unit.core.edges import PHASE_EDGES

CORE = Path(core.__file__).parent
DRAWING = CORE.parents[1] / "docs" / "election.svg"
TENURE = Tenure("s", 7, 3, 1, 0.0, b"me", None)
MADE = {
    ("lifecycle.py", "begin_tenure", "Tenure"),
    ("record.py", "tenure_from", "Tenure"),
    ("record.py", "session_from", "Session"),
    ("session.py", "", "Session"),  # NO_SESSION
    ("state.py", "", "Claim"),
    ("creation.py", "new_contender", "Claim"),
}
"""The places that make a tenure, a session or a claim, in the state that it begins with."""


@pytest.mark.parametrize("before", Phase)
@pytest.mark.parametrize("cause", PhaseEnd)
def test_a_tenure_takes_the_edges_of_its_table_and_no_other(before: Phase, cause: PhaseEnd) -> None:
    tenure = replace(TENURE, phase=before)
    if (after := tenures.TRANSITIONS[before].get(cause)) is not None:
        assert tenures.become(tenure, cause).phase is after
    else:
        with pytest.raises(ImpossibleTransition, match=f"^{before} does not end because {cause}$"):
            tenures.become(tenure, cause)


@pytest.mark.parametrize("before", Stage)
@pytest.mark.parametrize("cause", StageEnd)
def test_a_session_takes_the_edges_of_its_table_and_no_other(before: Stage, cause: StageEnd) -> None:
    session = replace(NO_SESSION, stage=before, id="s")
    if (after := sessions.TRANSITIONS[before].get(cause)) is not None:
        assert sessions.become(session, cause).stage is after
    else:
        with pytest.raises(ImpossibleTransition, match=f"^{before} does not end because {cause}$"):
            sessions.become(session, cause)


@pytest.mark.parametrize("before", Standing)
@pytest.mark.parametrize("cause", StandingEnd)
def test_a_claim_takes_the_edges_of_its_table_and_no_other(before: Standing, cause: StandingEnd) -> None:
    claim = Claim(standing=before)
    if (after := claims.TRANSITIONS[before].get(cause)) is not None:
        assert claims.become(claim, cause).standing is after
    else:
        with pytest.raises(ImpossibleTransition, match=f"^{before} does not end because {cause}$"):
            claims.become(claim, cause)


def test_an_absent_session_keeps_nothing_of_the_one_before() -> None:
    session = replace(NO_SESSION, stage=Stage.DESTROYING, id="s", tried=True, ending=True)
    assert sessions.become(session, StageEnd.DESTROY_OVER) == NO_SESSION


def test_every_cause_ends_some_state() -> None:
    assert {cause for edges in tenures.TRANSITIONS.values() for cause in edges} == set(PhaseEnd)
    assert {cause for edges in sessions.TRANSITIONS.values() for cause in edges} == set(StageEnd)
    assert {cause for edges in claims.TRANSITIONS.values() for cause in edges} == set(StandingEnd)


def test_nothing_but_become_sets_a_phase_a_stage_or_a_standing() -> None:
    """What is made begins in some state; ``become`` alone changes it."""
    made, changed = set[tuple[str, str, str]](), set[tuple[str, str]]()
    for path in CORE.rglob("*.py"):
        for function, call in _calls(ast.parse(path.read_text())):
            called = call.func.id if isinstance(call.func, ast.Name) else ""
            if called in ("Tenure", "Session", "Claim"):
                made.add((path.name, function, called))
            elif {"phase", "stage", "standing"} & {keyword.arg for keyword in call.keywords}:
                changed.add((path.name, function))
    assert made == MADE
    assert changed == {("tenure.py", "become"), ("session.py", "become"), ("claim.py", "become")}


def test_the_core_lists_each_place_that_ends_a_belief() -> None:
    told = (core.__doc__ or "").partition("*What ends a belief.*")[2].partition("*Silence")[0]
    ends = {path.name for path in CORE.rglob("*.py") if re.search(r"\.lose\(", path.read_text())}
    assert set(re.findall(r"\w+\.py", told)) == ends


def _calls(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call):
            yield function, node
        yield from _calls(node, node.name if isinstance(node, ast.FunctionDef) else function)


def test_election_svg_draws_the_roles_that_follow_from_the_table() -> None:
    """A node that has lost waits again, and three roles that keep a node from contending share a box."""
    arrows = {path.get("id", "") for path in ElementTree.parse(DRAWING).iterfind("{*}path")}
    roles = {**ROLE_OF_PHASE, Phase.LOST: Role.WAITING}
    followed = {(ROLE_OF_PHASE[before], roles[after]) for before, after in PHASE_EDGES}
    tenure = {f"{before}-{after}" for before, after in followed if before is not after}
    assert arrows == tenure | {"waiting-acquiring", "waiting-paused", "paused-waiting"}


def test_every_role_has_its_condition() -> None:
    assert ROLE_OF_PHASE.keys() == set(Phase)
    assert {*ROLE_OF_PHASE.values(), *(role for role, _ in ROLES_WITHOUT_TENURE), Role.STOPPED} == set(Role)
