"""``plan`` is the inverse of ``check``: the loader judges each answer, and a search judges each refusal."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from supervisor.commands.check.plan import (
    ROUNDING_S,
    Wishes,
    as_text,
    plan,
    surroundings_of,
)
from supervisor.commands.check.report import as_text as checked_text
from supervisor.config import load
from supervisor.config.cross_checks import check_item
from supervisor.config.lease_checks import Surroundings, watchdog_sum
from supervisor.config.notification import UNIT_WATCHDOG_S
from supervisor.config.problems import Positions, Report
from supervisor.core.lease import lease_of
from supervisor.core.settings import Command, ElectionSettings, Hook, SessionSettings
from tests.support.configured import loaded
from tests.support.supervisor import command

FAILOVERS_S = (15.0, 23.0, 30.0, 47.6, 62.0, 90.0, 7200.0)
ON_LOSE_S = (0.0, 5.0, 12.3, 35.8, 50.0, 58.0)
SILENCES_S = (None, 0.0, 1.0, 14.0, 20.0, 45.0)
WISHES = [Wishes(*each) for each in product(FAILOVERS_S, ON_LOSE_S, SILENCES_S)]


class Candidate(NamedTuple):
    """The figures of one session, and how many warnings the loader has about it."""

    failover_s: float
    silence_s: float
    tolerated_s: float
    warnings: int


@cache
def candidates(on_lose_s: float) -> tuple[Candidate, ...]:
    """Return every session that the loader accepts: lock-delays in halves of a second, TTLs in seconds."""
    return tuple(_accepted(on_lose_s))


def _accepted(on_lose_s: float) -> Iterator[Candidate]:
    hook = Hook("on_lose[0]", Command(("true",), kill_after_s=0.0), on_lose_s)
    for ttl_s, lock_delay_s in product(range(10, 46), halves(60)):
        session = SessionSettings("app", ttl_s, lock_delay_s)
        settings = ElectionSettings("app", "app", b"", session, on_lose=(hook,) if on_lose_s else ())
        judged = Report(Positions(""))
        check_item(settings, judged, Surroundings(14.0))
        lease = lease_of(settings)
        assert lease.failover_s is not None
        if not judged.problems:
            tolerated_s = max(0.0, min(lease.silence_s, lease.cut_off_s))
            yield Candidate(lease.failover_s, lease.silence_s, tolerated_s, len(judged.warnings))


def halves(last: int) -> list[float]:
    return [number / 2 for number in range(2 * last + 1)]


def found_by_search(wishes: Wishes) -> list[Candidate]:
    """Return all candidates that meet the wishes."""
    return [each for each in candidates(wishes.on_lose_s) if meets(each, wishes)]


def meets(candidate: Candidate, wishes: Wishes) -> bool:
    if wishes.failover_s is not None and candidate.failover_s > wishes.failover_s + ROUNDING_S:
        return False
    if wishes.silence_s is None:
        return candidate.silence_s >= 14.5 - ROUNDING_S
    return candidate.tolerated_s >= wishes.silence_s - ROUNDING_S


def checked(tmp_path: Path, wishes: Wishes, answer: ElectionSettings) -> tuple[Candidate, str]:
    """Return the figures that the real loader gives a file with this session block, and the report."""
    hook = {"exec": ["true"], "name": "on_lose", "timeout": f"{wishes.on_lose_s:g}s", "kill_after": "0s"}
    block = yaml.safe_load(as_text(answer, wishes))
    election = {**block, "on_lose": [hook] if wishes.on_lose_s else []}
    file = tmp_path / "c.yaml"
    consul = {"leader_change": f"{wishes.leader_change_s:g}s"}
    file.write_text(yaml.safe_dump({"consul": consul, "elections": {"app": election}}))
    watchdog_s = surroundings_of(answer, wishes.leader_change_s).unit_watchdog_s
    config = load(file, {"WATCHDOG_USEC": f"{1e6 * watchdog_s:.0f}"}, "node1")
    lease = lease_of(config.items[0])
    assert lease.failover_s is not None
    tolerated_s = max(0.0, min(lease.silence_s, lease.cut_off_s))
    figures = Candidate(lease.failover_s, lease.silence_s, tolerated_s, len(config.warnings))
    return figures, checked_text(config)


# --- both ways -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "on_lose_s", [5.0, *(pytest.param(each, marks=pytest.mark.long) for each in ON_LOSE_S if each != 5.0)]
)
def test_an_answer_meets_its_wishes_and_a_contradiction_is_real(tmp_path: Path, on_lose_s: float) -> None:
    """The loader judges each answer as ``check`` does. The search finds nothing for a contradiction."""
    met = 0
    for wishes in (each for each in WISHES if each.on_lose_s == on_lose_s):
        answer, others = plan(wishes), found_by_search(wishes)
        if answer is None:
            assert others == [], wishes
            continue
        candidate, _ = checked(tmp_path, wishes, answer)
        assert meets(candidate, wishes), wishes
        assert candidate.warnings <= min((each.warnings for each in others), default=candidate.warnings)
        met += 1
    assert (met > 0) is (on_lose_s <= 55)  # the longest lock_delay less the margin and the least room


# --- what is printed -------------------------------------------------------------------------------


def test_a_silence_that_costs_a_warning_is_printed_with_it() -> None:
    text = planned("--failover", "45s", "--on-lose", "5s", "--silence", "12s")
    assert "  lock_delay: 25s\n" in text
    assert "\n# warning: elections.NAME.session.lock_delay: tolerates 12.08s without an answer" in text


def test_a_semaphore_with_the_block_has_the_same_figures(tmp_path: Path) -> None:
    answer = plan(Wishes(50.0, 5.0))
    assert isinstance(answer, ElectionSettings)
    hook = {"exec": ["true"], "name": "on_lose", "timeout": "5s", "kill_after": "0s"}
    semaphore = {"limit": 2, **yaml.safe_load(as_text(answer, Wishes(50.0, 5.0))), "on_lose": [hook]}
    config = loaded(tmp_path, yaml.safe_dump({"semaphores": {"app": semaphore}}))
    assert (lease_of(config.items[0]), config.warnings) == (lease_of(answer), ())


def test_serf_health_changes_no_figure_and_says_what_it_mostly_gains() -> None:
    usual = planned("--failover", "50s", "--on-lose", "5s")
    text = planned("--failover", "50s", "--on-lose", "5s", "--checks", "serfHealth,memory")
    assert '\n  node_checks: ["serfHealth", "memory"]\n' in text
    assert (
        "# usually      34s to 37s after a crash of the machine: Consul ends the session in 6s to 9s" in text
    )
    assert set(usual.splitlines()) <= set(text.splitlines())
    assert yaml.safe_load(text)["session"]["node_checks"] == ["serfHealth", "memory"]


QUICK = ("--on-lose", "500ms", "--leader-change", "3s")


def planned(*arguments: str) -> str:
    done = command("plan", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_quick_block_has_both_figures_and_names_what_it_relies_on() -> None:
    """The default TTL: gossip usually notices a crash, and only the TTL limits how long that takes."""
    text = planned("--failover-usually", "16s", *QUICK)
    assert yaml.safe_load(text)["session"] == {
        "ttl": "10s",
        "lock_delay": "7s",
        "confirm_every": "1s",
        "node_checks": ["serfHealth"],
    }
    assert "# silence      4s are tolerated" in text and "# failover     27s at most" in text
    assert "# usually      13s to 16s after a crash" in text
    assert (
        "# relies on    performance { raft_multiplier = 1 } on every server, and consul: {leader_change: 3s}"
        in text
    )
    assert "gossip_lan of every agent and server as it is by default" in text
    assert "[Service]\n#                WatchdogSec=4s\n" in text
    assert "session_ttl_min" not in text and "warning" not in text


def test_quicker_gossip_shortens_what_is_usual_and_is_named_with_its_price() -> None:
    gossip = ("--probe-interval", "200ms", "--suspicion-mult", "3")
    text = planned("--failover-usually", "9s", *gossip, *QUICK)
    usually = "8s to 8.6s after a crash of the machine: Consul ends the session in 1s to 1.6s"
    assert f"# usually      {usually}\n#              (serfHealth; 2 x ttl at most), then lock_delay" in text
    assert 'gossip_lan { probe_interval = "200ms" probe_timeout = "100ms" suspicion_mult = 3 }\n' in text
    assert "lock_delay: 7s\n" in text and "# failover     27s at most" in text
    fenced = planned("--failover-usually", "10s", "--fence", "5s", *gossip, *QUICK)
    assert "# usually      8s to 8.6s after a crash" in fenced and "the session in 1s to 1.6s" in fenced
    for wrong in ("0s", "2m", "1"):
        assert command("plan", *QUICK, "--failover", "50s", "--probe-interval", wrong).returncode == 2


def test_a_block_for_a_short_failover_at_most_names_the_ttl_that_servers_must_allow() -> None:
    text = planned("--failover", "16s", "--checks", "serfHealth", *QUICK)
    assert yaml.safe_load(text)["session"]["ttl"] == "3s"
    assert "# failover     13s at most" in text and "# usually" not in text
    assert 'session_ttl_min = "3s" on every server' in text
    assert text.count("# warning: ") == 1 and "unless its session_ttl_min allows it" in text


def test_wishes_that_cannot_be_met_together_are_refused_with_what_to_change() -> None:
    done = command("plan", "--failover-usually", "9s", *QUICK)
    assert (done.returncode, done.stdout) == (1, "")
    assert "allow a longer failover, or ask for less --on-lose" in done.stderr


@pytest.mark.parametrize(
    ("lock_delay_s", "watchdog_s"),
    [(12.5, UNIT_WATCHDOG_S), (12.0, 9.0), (7.5, 5.0), (6.5, 4.0), (6.0, UNIT_WATCHDOG_S)],
)
def test_the_drop_in_has_the_longest_watchdog_that_is_short_enough(
    lock_delay_s: float, watchdog_s: float
) -> None:
    """A second to restart, one to start and a lose_time of half a second come on top."""
    hook = Hook("on_lose", Command(("true",), kill_after_s=0.0), 0.5)
    session = SessionSettings("app", 10.0, lock_delay_s)
    settings = ElectionSettings("app", "app", b"", session, on_lose=(hook,))
    assert surroundings_of(settings, 3.0).unit_watchdog_s == watchdog_s


def test_the_help_has_the_silence_below_which_check_warns() -> None:
    told = " ".join(command("plan", "--help").stdout.split())
    assert Surroundings(3.0).silence_s == 3.5
    assert "half a second more than --leader-change of silence, below which check warns" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("--failover", "20s"),
        ("--on-lose", "20s"),
        ("--failover", "20", "--on-lose", "5s"),
        ("--failover", "20s", "--on-lose", "5s", "--checks", "a,,b"),
        ("--failover", "20s", "--on-lose", "5s", "--checks", "${X}"),
        ("--failover", "20s", "--on-lose", "5s", "--checks", ",".join(map(str, range(33)))),
    ],
)
def test_wishes_that_are_none_are_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = command("plan", *arguments)
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr


def test_a_watchdog_gets_the_least_lock_delay_that_leaves_it_time() -> None:
    planned = plan(Wishes(60.0, 0.5, silence_s=5.0, watchdog_s=15.0))
    assert isinstance(planned, ElectionSettings) and planned.watchdog is not None
    assert watchdog_sum(planned, planned.watchdog)[0] >= 0
    shorter = replace(planned.session, lock_delay_s=planned.session.lock_delay_s - 1.0)
    assert watchdog_sum(replace(planned, session=shorter), planned.watchdog)[0] < 0


def test_a_fence_makes_the_usual_failover_independent_of_the_lock_delay() -> None:
    wishes = Wishes(None, 6.0, node_checks=("serfHealth",), usually_s=20.0, fence_s=5.0)
    planned = plan(wishes)
    assert isinstance(planned, ElectionSettings)
    printed = as_text(planned, wishes)
    assert (
        "# usually      13s to 16s after a crash of the machine: Consul ends the session in 6s to 9s\n"
        in printed
    )
    assert "then after 2s, then fence 5s\n" in printed
    assert "fence: {exclusive: true, after: 2s} with a command that takes 5s at most.\n" in printed
    assert plan(replace(wishes, fence_s=None)) is None


def test_a_fence_that_would_end_after_the_wait_gets_a_longer_lock_delay() -> None:
    slow = plan(Wishes(120.0, 0.5, fence_s=40.0))
    assert isinstance(slow, ElectionSettings) and slow.session.lock_delay_s == 42.0
    assert plan(Wishes(120.0, 0.5, fence_s=70.0)) is None
    assert "--fence" in command("plan", "--help").stdout


def test_an_outage_lengthens_the_failover_without_the_fence_alone() -> None:
    wishes = ("--failover-usually", "22s", "--on-lose", "5s", "--fence", "5s")
    text = planned(*wishes, "--outage", "15m")
    assert "fence: {exclusive: true, after: 2s, outage: 15m} with a command that takes 5s at most.\n" in text
    assert text.startswith(planned(*wishes).partition("# failover")[0])
    assert "# outage       15m without" in text and "+ 16m where fence fails" in text
    refused = command("plan", *wishes, "--failover", "60s", "--outage", "15m")
    assert refused.returncode == 1 and "--fence or --outage" in refused.stderr
    refused = command("plan", *wishes[:-2], "--outage", "15m")
    assert refused.returncode == 2 and "cannot use --outage without --fence" in refused.stderr
