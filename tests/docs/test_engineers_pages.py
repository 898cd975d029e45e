"""ARCHITECTURE.md and CONTRIBUTING.md are true: their tables are the code's, and named things exist."""

import re
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pytest

from supervisor.core.claim import claim as claims
from supervisor.core.contender import scheduler
from supervisor.core.contender.state import ROLE_OF_PHASE, ROLES_WITHOUT_TENURE
from supervisor.core.machines import session as sessions
from supervisor.core.machines import tenure as tenures
from tests.support.pages import ARCHITECTURE, CONTRIBUTING, LEASE, ROOT, code_of, fenced, name, rows
from tests.unit.test_package import FLOORS, PROMISE

PACKAGE = ROOT / "supervisor"
PAGES = [ARCHITECTURE, CONTRIBUTING]
PATH = re.compile(r"[\w.-]*(?:/[\w.-]*)+|\w+\.(?:md|py|toml|txt)")
State = TypeVar("State", bound=Enum)
Cause = TypeVar("Cause")
FOLDERS = [folder.name for folder in (*ROOT.iterdir(), *PACKAGE.iterdir()) if folder.is_dir()]


def edges(transitions: Mapping[State, Mapping[Cause, State]], state: State) -> str:
    """Return the cell that shows how the state ends."""
    return "; ".join(f"{after.name}: {cause}" for cause, after in transitions[state].items())


def test_the_table_of_the_tenure_is_the_codes() -> None:
    shown = [(phase, role, after) for phase, role, _, after in rows(ARCHITECTURE, "phase")]
    assert shown == [
        (phase.name, ROLE_OF_PHASE[phase], edges(tenures.TRANSITIONS, phase)) for phase in tenures.TRANSITIONS
    ]


def test_the_table_of_the_session_is_the_codes() -> None:
    shown = [(stage, after) for stage, _, after in rows(ARCHITECTURE, "stage")]
    assert shown == [(stage.name, edges(sessions.TRANSITIONS, stage)) for stage in sessions.TRANSITIONS]


def test_the_table_of_the_claim_is_the_codes() -> None:
    shown = [(standing, after) for standing, _, after in rows(ARCHITECTURE, "standing")]
    assert shown == [(standing.name, edges(claims.TRANSITIONS, standing)) for standing in claims.TRANSITIONS]


def test_the_roles_without_a_tenure_are_the_codes_in_their_order() -> None:
    assert [role for role, _ in rows(ARCHITECTURE, "role")] == [role for role, _ in ROLES_WITHOUT_TENURE]


def test_the_scheduler_begins_things_in_the_documented_order() -> None:
    told = ARCHITECTURE.read_text().partition("in a fixed order: ")[2].partition(".")[0]
    order = [begin.__name__.lstrip("_").removeprefix("advance_") for begin in scheduler._IN_ORDER]
    assert re.findall(r"`(\w+)`", told) == order


def test_a_package_stands_above_all_that_it_may_import() -> None:
    (drawn,) = [block.text for block in fenced(ARCHITECTURE) if block.section == "The floors"]
    line_of = {package: number for number, line in enumerate(drawn.splitlines()) for package in line.split()}
    above, _, below = drawn.partition("---")
    assert {name.split(".")[0] for name in re.findall(r"[a-z]\S+", below)} == PROMISE
    assert sorted(re.findall(r"[a-z]\S+", drawn)) == sorted(FLOORS)
    assert {name.split(".")[0] for name in above.split()} & PROMISE == set()
    wrong = [
        f"{package} beside or below {other}"
        for package, others in FLOORS.items()
        for other in others.split()
        if line_of[other] <= line_of[package]
    ]
    assert wrong == []


def test_the_limits_are_constants_of_the_named_modules() -> None:
    missing, found = [], 0
    for _, where in rows(ARCHITECTURE, "what is bounded"):
        for path, constants in re.findall(r"`([\w/]+)\.py`: ((?:`\w+`(?:, )?)+)", where):
            module = import_module(f"supervisor.{path.removesuffix('/__init__').replace('/', '.')}")
            for constant in re.findall(r"`(\w+)`", constants):
                found += 1
                missing += [] if hasattr(module, constant) else [f"{path}.py: {constant}"]
    assert missing == [] and found > 20


def test_the_sum_of_the_lease_is_the_proved_one() -> None:
    (told,) = re.findall(r"^    (room = .*)$", ARCHITECTURE.read_text(), re.MULTILINE)
    assert f"`{told.removeprefix('room = ')}`" in LEASE.read_text()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_on_the_engineers_pages_exist(page: Path) -> None:
    """Paths begin at the root of the checkout or of the package."""
    pieces = {piece.rstrip("/") for piece in code_of(page) if PATH.fullmatch(piece)}
    paths = {piece for piece in pieces if piece.split("/")[0] in FOLDERS or "/" not in piece}
    assert len(paths) > 5
    assert {path for path in paths if not any((root / path).exists() for root in (ROOT, PACKAGE))} == set()


def test_commands_on_the_engineers_pages_exist() -> None:
    text = "\n".join(code_of(CONTRIBUTING))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= set(phony.split())
    for module in re.findall(r"\bpython -m ([a-z_.]+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
