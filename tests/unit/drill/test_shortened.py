"""What a drill changes of an item: durations are divided, the lease keeps its room, each change is listed."""

from pathlib import Path

import pytest

from supervisor.config import load
from supervisor.core.lease import ROOM_MIN_S, lease_of
from supervisor.core.settings import Command, Fence, Hook, ItemSettings, SemaphoreSettings
from supervisor.rehearsal.drill.shortened import LIMIT_MAX, ROOM_S, shorten
from tests.support.configured import loaded as configured
from tests.support.examples import CONFIGURATIONS, VARIABLES

ELECTION = """
elections:
  app:
    session: {ttl: 20s, lock_delay: 60s, node_checks: [serfHealth], service_checks: [{id: "service:app"}]}
    acquire_delay: 5s
    on_acquire: [{shell: a, timeout: 20s}]
    on_lose: [{name: stop, shell: b, timeout: 6s}]
"""


@pytest.fixture
def election(tmp_path: Path) -> ItemSettings:
    return loaded(tmp_path, ELECTION)


def loaded(folder: Path, text: str) -> ItemSettings:
    (item,) = configured(folder, text, {}, "node-a").items
    return item


def test_with_recorders_all_durations_are_divided_and_listed(election: ItemSettings) -> None:
    short, changes = shorten(election, 10, real=False)
    assert (short.session.ttl_s, short.on_lose[0].timeout_s) == (2.0, 0.6)
    assert short.on_acquire[0].timeout_s == 2.0
    assert "ttl 20s to 2s" in changes and "stop timeout 6s to 0.6s" in changes
    assert "acquire_delay 5s to 0.5s" in changes


def test_with_real_hooks_their_times_are_those_of_the_file(election: ItemSettings) -> None:
    short, changes = shorten(election, 10, real=True)
    assert short.on_lose == election.on_lose and short.on_acquire == election.on_acquire
    assert lease_of(short).lose_time_s == lease_of(election).lose_time_s
    assert not any("timeout" in change for change in changes)


@pytest.mark.parametrize("real", [False, True])
def test_a_rehearsal_has_no_watchdog(tmp_path: Path, real: bool) -> None:
    guarded = loaded(tmp_path, "watchdog: {}" + ELECTION)
    assert guarded.watchdog is not None and shorten(guarded, 10, real=real)[0].watchdog is None


@pytest.mark.parametrize("real", [True, False])
def test_a_rehearsal_switches_no_machine_off(tmp_path: Path, real: bool) -> None:
    """Whether its own command or its own target would do it."""
    fenced = loaded(
        tmp_path,
        "elections: {app: {fence: {shell: shoot, env: {A: b}, user: root, target: db1, exclusive: true}}}",
    )
    short, changes = shorten(fenced, 10, real=real)
    hook = Hook("fence", Command(("false",), kill_after_s=0.1), 3.0, retries=1000, retry_delay_s=0.1)
    assert short.fence == Fence(hook, target=None, after_s=1.0, exclusive=True)
    assert "fence after 2s to 1s" in changes and "fence timeout 30s to 3s" in changes


@pytest.mark.parametrize(("speed", "outage_s"), [(10, 90.0), (1000, 4.0)])
def test_an_outage_is_divided_and_outlasts_the_lock_delay(
    tmp_path: Path, speed: int, outage_s: float
) -> None:
    lasting = "elections: {app: {fence: {shell: shoot, exclusive: true, outage: 15m}}}"
    short, changes = shorten(loaded(tmp_path, lasting), speed, real=False)
    assert short.fence is not None and short.fence.outage_s == outage_s >= short.lockout_s
    assert f"fence outage 15m to {outage_s:g}s" in changes


@pytest.mark.parametrize("real", [False, True])
def test_the_lease_keeps_its_room(election: ItemSettings, real: bool) -> None:
    assert lease_of(shorten(election, 1000, real=real)[0]).room_s >= ROOM_S > ROOM_MIN_S


def test_a_speed_of_1_changes_no_duration(election: ItemSettings) -> None:
    short, changes = shorten(election, 1, real=False)
    assert lease_of(short) == lease_of(election)
    assert changes == ("without the checks service:app, which the embedded agent does not have",)


def test_checks_that_the_embedded_agent_lacks_are_left_out(election: ItemSettings) -> None:
    session = shorten(election, 10, real=False)[0].session
    assert (session.node_checks, session.service_checks) == (("serfHealth",), ())


def test_one_of_three_nodes_waits_for_a_slot(tmp_path: Path) -> None:
    item = loaded(tmp_path, "semaphores: {app: {limit: 5, prune_delay: 2m}}")
    short, changes = shorten(item, 10, real=False)
    assert isinstance(short, SemaphoreSettings) and short.limit == LIMIT_MAX
    assert "limit 5 to 2, so that one of three nodes waits" in changes


def test_an_observer_is_not_changed(tmp_path: Path) -> None:
    item = loaded(tmp_path, "elections: {app: {contend: false, on_change: [{shell: a}]}}")
    assert shorten(item, 10, real=False)[0] is item


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_no_example_gets_a_longer_duration(path: Path) -> None:
    for item in load(path, VARIABLES, "node-a").items:
        if item.contend:
            lease, short = lease_of(item), lease_of(shorten(item, 10, real=False)[0])
            assert short.lockout_s <= lease.lockout_s and short.lose_time_s <= lease.lose_time_s
