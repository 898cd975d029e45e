"""The model answers as Consul does, and the comparison finds a model with a fault."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.consul.devagent.comparison import SETTLE_S, against, chosen, fresh_agent, node_of, report
from tests.support.captured import captured
from tests.support.consul import Agent

pytestmark = pytest.mark.long

QUICK, TIMED, SEED = 160, 40, 1
CLIENT_QUICK = 10
ROOT = Path(__file__).resolve().parents[3]
RUN_S = 120.0


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Agent]:
    """Return a real agent that no client has used, for as many clients as there are waits."""
    with fresh_agent(tmp_path) as agent:
        yield agent


def test_the_model_and_consul_agree(fresh: Agent, request: pytest.FixtureRequest) -> None:
    """They agree in status, body, relations of indexes, and in the queries that each step wakes."""
    result = against(fresh.host, fresh.port, node_of(fresh), chosen(QUICK, TIMED, SEED))
    told = report(result, QUICK, TIMED, SEED)
    request.node.add_report_section("call", "comparison", told)
    assert not result.faults, "\n".join([told, *result.faults[:5]])
    assert result.sequences >= 236 and result.woken >= 250
    assert result.cut_short < result.sequences / 4, told


def test_the_model_of_a_client_agent_agrees_with_one(fresh: Agent, tmp_path: Path) -> None:
    """A client agent puts words before the errors of its servers."""
    sequences = [sequence for sequence in chosen(CLIENT_QUICK, 0, SEED) if not sequence.timed]
    limits = {"limits": {"http_max_conns_per_client": 5000}}
    with Agent(tmp_path / "client", servers=fresh, config=limits) as client:
        where = (client.host, client.port, node_of(client))
        result = against(*where, sequences, client_agent=True)
        assert not result.faults, "\n".join(result.faults[:5])
        assert against(*where, sequences[:CLIENT_QUICK], SETTLE_S[:1]).faults


@dataclass(frozen=True)
class Mutant:
    """A fault of the model.

    old: the text of a module that ``new`` replaces.
    only: names sequences that show the fault.
    """

    name: str
    module: str
    old: str
    new: str
    only: str


MUTANTS = (
    Mutant("TTL at 1x", "sessions.py", "TTL_MULTIPLIER = 2", "TTL_MULTIPLIER = 1", "only renewal"),
    Mutant(
        "no lock-delay on destroy",
        "store.py",
        "if session.lock_delay_s > 0:",
        "if session.lock_delay_s > 0 and now in self.sessions.expiries.values():",
        "lock-delay after a destroy",
    ),
    Mutant(
        "no wake on release",
        "kv.py",
        "        path = path_of(entry.key)\n        beside",
        "        if existing is not None and existing.session and not entry.session:\n"
        "            self.entries[entry.key] = written\n            self.index = index\n"
        "            return written\n        path = path_of(entry.key)\n        beside",
        "release wakes",
    ),
    Mutant("wake without change", "kv.py", "existing.same(entry)", "False", "nothing else"),
    Mutant("lock index is not counted", "kv.py", "(0 if existing.session else 1)", "0", "re-acquire"),
    Mutant("lists forget deletes", "kv.py", "self.tombstones.items() if key", "() if key", "leaving"),
    Mutant(
        "no roll-back", "store.py", "write(copy, index):", "write(copy, index) or True:", "nothing of itself"
    ),
    Mutant("contender keys stay", "store.py", "== DELETE:", "== '':", "deletes its contender key"),
    Mutant(
        "any session will do", "txn.py", "found.session != entry.session", "False", "check-session and cas"
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_in_the_model_is_detected(mutant: Mutant, agent: Agent, tmp_path: Path) -> None:
    """The comparison of a copy with the fault ends with 1, and that of a true copy with 0."""
    copy = tmp_path / "copy"
    for part in ("supervisor", "tests"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    assert compared(copy, agent, mutant.only).returncode == 0
    source = copy / "supervisor" / "devagent" / mutant.module
    text = source.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.name}: its text is not in {mutant.module} once"
    source.write_text(text.replace(mutant.old, mutant.new))
    agent.restart()  # the agent loses all its data
    ended = compared(copy, agent, mutant.only)
    assert ended.returncode == 1 and "model " in ended.stdout, ended.stdout + ended.stderr


def compared(copy: Path, agent: Agent, only: str) -> "subprocess.CompletedProcess[str]":
    """Return the report on this copy beside an unused agent."""
    where = ["--address", f"{agent.host}:{agent.port}", "--node", node_of(agent)]
    argv = [sys.executable, "-m", "tests.consul.devagent.comparison", "--once", "--only", only, *where]
    return captured(argv, cwd=copy, timeout=RUN_S)
