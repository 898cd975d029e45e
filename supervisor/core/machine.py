"""A state machine as data: a table that names the states which may follow each state.

The three machines of the core are ``TRANSITIONS`` in ``session.py`` and ``tenure.py``, and the roles in
``contender.py``, which follow from the other two. A state changes in the ``become`` of its module alone,
which looks into the table. The tables have no conditions: when a machine takes an edge is what the
functions beside the table say, and the tests walk over every order of events and see that each edge is
taken, and no other.
"""


class ImpossibleTransition(Exception):
    """A bug of ours: a state machine was to take an edge that its table does not have."""
