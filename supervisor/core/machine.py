"""A state machine as data: a table that names the states which may follow each state.

The three machines of the core are ``TRANSITIONS`` in ``session.py`` and ``tenure.py``, and the roles in
``contender.py``, which follow from session and tenure. A state changes only in the ``become`` of its module,
which looks into the table. The tables have no conditions: the functions beside a table decide when an edge is
taken. The tests walk over every order of events, and check that each edge of the tables is taken, and no
other.
"""


class ImpossibleTransition(Exception):
    """A bug of ours: a state machine was to take an edge that its table does not have."""
