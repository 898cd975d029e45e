"""The quick ``dataclass`` and ``replace`` of the core's values."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from supervisor.core import frozen

IMPORTS = """
import supervisor.core.contenders
from supervisor.core import frozen
from supervisor.core.machines import tenure
from supervisor.adapters.runtime.driver import prepare_hand_over
"""


def test_no_hand_over_compiles_the_functions_of_a_class() -> None:
    script = f"{IMPORTS}assert tenure.Tenure not in frozen._COPIES and tenure.Tenure in frozen._LATE\n"
    script += "prepare_hand_over()\nassert not frozen._LATE\n"
    script += "before = dict(frozen._COPIES)\nassert tenure.Tenure in before\nprepare_hand_over()\n"
    script += "assert all(frozen._COPIES[cls] is before[cls] for cls in frozen._COPIES)\n"
    subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=True)


def classes(dataclass: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Return a class with each kind of field that the product has, one that inherits, and one without."""

    @dataclass(frozen=True, slots=True)
    class Base:
        """With defaults."""

        word: ClassVar[str] = "base"
        name: str
        secret: str = field(default="", repr=False)
        place: int = field(default=0, compare=False)

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        """With a field that only its name gives."""

        limit: int = field(kw_only=True)
        delay_s: float = 1.0

        def __repr__(self) -> str:
            return "its own"

    @dataclass(frozen=True, slots=True)
    class Empty:
        """Without fields."""

    return Base, Derived, Empty


OURS, PYTHONS = classes(frozen.dataclass), classes(dataclasses.dataclass)
Base, Derived, Empty = OURS
for made in OURS:  # as of a class of a module, so that pickle finds it
    made.__qualname__ = made.__name__


@pytest.mark.parametrize(
    "use",
    [
        lambda base, derived, empty: repr((base("a", "b", 3), derived("a", limit=2), empty())),
        lambda base, derived, empty: [dataclasses.asdict(derived("a", limit=2)), base.word],
        lambda base, derived, empty: base("a") == base("a", "", 7) and hash(base("a")) == hash(base("a")),
        lambda base, derived, empty: base("a") == base("b") or base("a") == derived("a", limit=1),
        lambda base, derived, empty: [empty() == empty(), hash(empty()), base("a") == ("a", "")],
        lambda base, derived, empty: [each.__match_args__ for each in (base, derived, empty)],
        lambda base, derived, empty: dataclasses.replace(derived("a", limit=2), limit=3).limit,
        lambda base, derived, empty: derived("a", "b", 1, 2.0, limit=2).delay_s,
    ],
)
def test_a_class_behaves_as_one_of_python(use: Callable[..., object]) -> None:
    shown = str(use(*PYTHONS)).replace("classes.<locals>.", "")
    assert str(use(*OURS)) == shown


def test_a_value_survives_pickle_and_copy() -> None:
    for value in (Base("a", "b", 3), Derived("a", limit=2), Empty()):
        for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
            assert again == value and dataclasses.asdict(again) == dataclasses.asdict(value)


def test_a_value_cannot_be_changed() -> None:
    value = Base("a")
    changes: list[Callable[[], None]] = [lambda: setattr(value, "name", "b"), lambda: delattr(value, "name")]
    for change in changes:
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
            change()
    with pytest.raises(FrozenInstanceError):
        value.other = 1
    assert value.name == "a" and not hasattr(value, "__dict__")


@pytest.mark.parametrize("words", [(), ("a", "b", 3, 4)])
def test_a_value_needs_its_fields(words: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Base(*words)
