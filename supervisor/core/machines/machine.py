"""A state machine as data: for each state, a table names each cause that ends it and the state that follows.

Three machines of the core are ``TRANSITIONS`` in ``session.py``, ``tenure.py`` and ``claim.py``. The roles in
``contender/state.py`` follow from them. A state changes only in the ``become`` of its module, which gets the
cause; the table decides what follows. The functions beside a table only decide when a cause is true. The
tests walk over every order of events, and check that each edge of the tables is taken, and no other.
"""

from collections.abc import Mapping
from typing import TypeVar

State = TypeVar("State")
Cause = TypeVar("Cause")


class ImpossibleTransition(Exception):
    """A bug of ours: a cause came up in a state that it cannot end."""


def next_state(transitions: Mapping[State, Mapping[Cause, State]], state: State, cause: Cause) -> State:
    if cause not in transitions[state]:
        raise ImpossibleTransition(f"{state} does not end because {cause}")
    return transitions[state][cause]
