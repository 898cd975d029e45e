"""In every order of events an election keeps its promises, and never comes to a dead end."""

from typing import get_args

import pytest

from supervisor.core import actions as a
from supervisor.core import events as e
from supervisor.core import outcomes as o
from supervisor.core import requests as r
from tests.models.depth import rounds
from tests.models.every_order import explore
from tests.models.semaphore_model import WALKS as SEMAPHORE_WALKS
from tests.models.walks import REQUESTS, WALKS, Walk
from tests.unit.core.edges import EDGES

# How much further the walks go whose ``shows`` need more states than those of the others.
FURTHER = {"writes": 3, "records": 2, "fence, guard and reads": 2}


def test_every_event_outcome_and_action_occurs_in_some_walk() -> None:
    """Each walk is held to its own ``shows``, and together they show every edge and every class.

    These are exempt: an answer that only operator's commands get; a file, what is due for a watchdog and the
    notes of shots, which ``Contenders`` handles; and an answer with an error, which counts as no answer.
    """
    there_is = {*get_args(e.Event), *get_args(o.Outcome), *get_args(a.Action), *REQUESTS, *a.Role, *EDGES}
    shown = {kind for each in (*WALKS, *SEMAPHORE_WALKS) for kind in each.shows}
    frames = {r.Request, r.SlotRequest, r.ServiceRequest}
    notes = {r.ReadNotes, r.WriteNotes, o.NotesShown}
    assert shown == there_is - frames - notes - {o.SessionsView, e.ConfigLoaded, a.Tend, o.Failed}


@rounds
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name.replace(" ", "-"))
def test_no_order_of_events_breaks_a_promise(walk: Walk, enough: float) -> None:
    """The invariants are in invariants.py. A failure prints the shortest way to the broken promise."""
    _, kinds = explore(walk, FURTHER.get(walk.name, 1) * enough)
    assert walk.shows <= kinds
