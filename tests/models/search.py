"""Breadth-first search over all states of a model, and the shortest way to a broken promise.

A model defines its first states, the steps from each state, which states are equal, and the promises of every
state. The search goes to each state once, by the fewest events that lead there.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Generic, Protocol, TypeVar

from tests.models.state_key import Key

STATES_MAX = 400_000  # of a search to its end

Used = tuple[tuple[str, int], ...]  # how often each fault has come
W = TypeVar("W")
Moves = Iterator[tuple[str, W]]  # the event in words, and the state that follows


class BrokenPromise(AssertionError):
    """A promise was broken.

    why: the promise.
    way: a line for each event that leads there.
    """

    def __init__(self, why: str, way: Iterable[str]) -> None:
        self.why = why
        self.way = tuple(way)
        super().__init__("\n".join((why, *self.way)))


@dataclass(frozen=True, slots=True)
class Link:
    """How a state was reached: from which state, and by which event."""

    before: "Link | None"
    told: str

    def way(self) -> tuple[str, ...]:
        """Return the events from the start to this state."""
        lines = []
        link: Link | None = self
        while link is not None:
            lines.append(link.told)
            link = link.before
        return tuple(reversed(lines))


class Model(Protocol[W]):
    """The subject of a search. Each method may raise AssertionError for a broken promise.

    A BrokenPromise of the model has only the lines since the last state; the search puts the way there first.
    """

    def begin(self) -> Moves[W]:
        """Return the first states."""

    def moves(self, world: W) -> Moves[W]:
        """Return every state that may come next."""

    def key(self, world: W) -> Key:
        """Return a key that is equal for two states that no event can make differ."""

    def judge(self, world: W, link: Link) -> None:
        """Check what must hold in a state that was reached for the first time."""


@dataclass(slots=True)
class Walked:
    """The results of a search.

    states: the number of different states.
    complete: whether there is no other state.
    """

    states: int = 0
    transitions: int = 0
    complete: bool = False


def search(model: Model[W], enough: float = inf, rounds_max: float = inf) -> Walked:
    """Go to every state of the model. Raise BrokenPromise with the shortest way to the first fault.

    enough: the search ends with the round in which it has found that many states.
    rounds_max: events from the start.
    """
    return _Search(model).run(enough, rounds_max)


class _Search(Generic[W]):
    def __init__(self, model: Model[W]) -> None:
        self.model = model
        self.walked = Walked()
        self.came: set[Key] = set()

    def run(self, enough: float, rounds_max: float) -> Walked:
        frontier = list(self._new(self.model.begin(), None))
        rounds = 0
        while frontier and len(self.came) < enough and rounds < rounds_max:
            frontier = [
                found for world, link in frontier for found in self._new(self.model.moves(world), link)
            ]
            rounds += 1
            too_many = enough == inf and len(self.came) > STATES_MAX
            assert not too_many, f"{STATES_MAX} states: something grows without bound"
        self.walked.states, self.walked.complete = len(self.came), not frontier
        return self.walked

    def _new(self, moves: Moves[W], before: Link | None) -> Iterator[tuple[W, Link]]:
        """Return the states that the search has not been in before."""
        link = before
        try:
            for told, world in moves:
                self.walked.transitions += before is not None
                key = self.model.key(world)
                if key not in self.came:
                    self.came.add(key)
                    link = Link(before, told)
                    self.model.judge(world, link)
                    yield world, link
                    link = before
        except AssertionError as broken:
            way = () if link is None else link.way()
            if isinstance(broken, BrokenPromise):
                raise BrokenPromise(broken.why, (*way, *broken.way)) from broken
            raise BrokenPromise(str(broken), way) from broken


def one_more(used: Used, may: Mapping[str, int], fault: str) -> Used | None:
    """Return the faults that have come, with one more of this kind. None: the walk has no more of it."""
    counts = dict(used)
    if counts.get(fault, 0) >= may.get(fault, 0):
        return None
    counts[fault] = counts.get(fault, 0) + 1
    return tuple(sorted(counts.items()))


class Named(Protocol):
    """A walk of a model."""

    @property
    def name(self) -> str:
        """The name of the walk in the table."""


N = TypeVar("N", bound=Named)


def print_table(walks: Iterable[N], explore: Callable[[N], Walked]) -> None:
    """Print what each walk saw; names as arguments pick some. Exit at the first broken promise."""
    names = sys.argv[1:]
    print(f"{'walk':40}{'states':>9}{'transitions':>13}{'seconds':>9}", flush=True)
    for walk in walks:
        if names and walk.name not in names:
            continue
        began_at = time.process_time()
        try:
            walked = explore(walk)
        except AssertionError as broken:
            sys.exit(f"{walk.name}: {broken}")
        seconds = time.process_time() - began_at
        more = "" if walked.complete else "  there are more"
        print(f"{walk.name:40}{walked.states:9}{walked.transitions:13}{seconds:9.1f}{more}", flush=True)
