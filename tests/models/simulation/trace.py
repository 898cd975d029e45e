"""A simulation as a table: time, node, event, actions.

Rows are kept as values and become text only when the table is printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from supervisor.core import actions as a
from supervisor.core import events as e
from tests.models import words


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    what: an event of a supervisor, or words about the world around it.
    """

    at: float
    who: str
    what: e.Event | str
    done: tuple[a.Action, ...] = ()

    def text(self) -> str:
        what = self.what if isinstance(self.what, str) else words.short(self.what)
        done = ", ".join(_done(each) for each in self.done if not isinstance(each, a.PrepareWrite))
        return f"{self.at:9.3f}  {self.who:6}  {what:58}  {done}".rstrip()


HEAD = f"{'time':>9}  {'who':6}  {'what happened':58}  what was done"


class Trace:
    """All rows of one simulation."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def turn(self, at: float, who: str, event: e.Event, actions: list[a.Action]) -> None:
        """Add a step of a supervisor; a tick without an effect is no row."""
        if actions or not isinstance(event, e.Tick):
            self.rows.append(Row(at, who, event, tuple(actions)))

    def note(self, at: float, who: str, what: str) -> None:
        self.rows.append(Row(at, who, what))

    def lines(self, last: int = 0) -> Iterator[str]:
        """Return the table; ``last`` rows only, unless 0."""
        yield HEAD
        for row in self.rows[-last:]:
            yield row.text()


def short(session: str) -> str:
    return session[: words.ID_CHARS]


def _done(action: a.Action) -> str:
    why = f" ({action.reason})" if isinstance(action, a.RoleChanged) and action.reason else ""
    return f"{words.short(action)}{why}"
