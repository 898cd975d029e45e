"""The examples of semaphores keep the promises of their comments: the files themselves, on several nodes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.consul.semaphores.fleet import Fleet
from tests.support.consul import Agent
from tests.support.staging import staged
from tests.support.supervisor import kill_all, processes_of, until

pytestmark = pytest.mark.long

FIVE = ("a", "b", "c", "d", "e")

MakeFleet = Callable[[str, Mapping[str, str]], Fleet]


@pytest.fixture
def make_fleet(agent: Agent, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MakeFleet]:
    """Return a function that makes a fleet of an example, with some of its times changed."""
    with ExitStack() as stack:
        yield lambda example, times: stack.enter_context(
            staged(Fleet(agent, tmp_path / "fleet", example, times), request)
        )


# --- rolling-restart --------------------------------------------------------------------------------

# The work of systemd goes on when the client that requested it ends; `start` waits for it.
RESTARTER = """\
case "$1 $2" in
"restart app")
    env -i PATH="$PATH" NODE="$NODE" JOURNAL="$JOURNAL" RUN="$RUN" setsid "$0" started app &
    wait ;;
"started app")
    rm "$RUN/app-runs"
    note down
    while test -e "$RUN/app-is-slow"; do sleep 0.05; done
    note up
    touch "$RUN/app-runs" ;;
"start app")
    test -e "$RUN/app-runs" || note waits
    while ! test -e "$RUN/app-runs"; do sleep 0.05; done ;;
*) exit 1 ;;
esac
"""
HEALTHY = 'if test -e "$RUN/app-is-broken"; then note sick; exit 1; fi; test -e "$RUN/app-runs"\n'


@pytest.fixture
def restart(make_fleet: MakeFleet) -> Fleet:
    """Return four nodes whose service runs."""
    return running(make_fleet, {})


def running(make_fleet: MakeFleet, times: Mapping[str, str]) -> Fleet:
    fleet = make_fleet("rolling-restart", {"interval: 5s": "interval: 1s", **times})
    fleet.provide("systemctl", RESTARTER)
    fleet.provide("app-is-healthy", HEALTHY)
    fleet.start("a", "b", "c", "d")
    for name in fleet.nodes:
        (fleet.run(name) / "app-runs").touch()
    fleet.wait_role("ineligible", fleet.nodes)
    return fleet


def wanted(fleet: Fleet) -> list[str]:
    """List the nodes on which the file still requests a restart."""
    return [name for name in fleet.nodes if (fleet.run(name) / "app-restart").exists()]


def ask(fleet: Fleet, *names: str) -> None:
    for name in names:
        (fleet.run(name) / "app-restart").touch()


def test_a_rolling_restart_takes_down_one_node_at_a_time_and_each_node_once(restart: Fleet) -> None:
    """When all nodes are restarted, no node is left in line."""
    assert not restart.in_line("service/app-restart")
    ask(restart, *restart.nodes)
    restart.wait("up", 4)
    until(lambda: not wanted(restart), "nobody wants a restart any more")
    restart.wait_role("ineligible", restart.nodes)
    assert sorted(restart.nodes_that("down")) == sorted(restart.nodes)
    for node in restart.nodes.values():
        node.wait_line("role", role="holding")
        assert len(node.lines("role", role="holding")) == 1, node.log_tail()
    assert restart.most_at_once("down", "up") == 1
    until(lambda: not restart.in_line("service/app-restart"), "the line is empty")


# --- rebuild ----------------------------------------------------------------------------------------

# The unit goes on without its client, and ends when it is done or is stopped.
REBUILDER = """\
unit="$RUN/unit"
case "$*" in
"start --wait rebuild")
    if ! test -e "$unit"; then
        touch "$unit"
        env -i PATH="$PATH" NODE="$NODE" JOURNAL="$JOURNAL" RUN="$RUN" setsid "$0" work &
    fi
    while test -e "$unit"; do sleep 0.05; done ;;
work)
    note begin
    while test -e "$unit" && ! test -e "$RUN/may-end" && ! test -e "$RUN/stop"; do sleep 0.05; done
    test -e "$RUN/stop" || touch "$RUN/rebuilt"
    note end
    rm -f "$unit" "$RUN/stop" ;;
"stop rebuild")
    if test -e "$unit"; then touch "$RUN/stop"; fi
    while test -e "$unit"; do sleep 0.05; done ;;
*) exit 1 ;;
esac
"""


@pytest.fixture
def rebuild(make_fleet: MakeFleet) -> Fleet:
    """Return five nodes that have to rebuild, three of which do."""
    fleet = make_fleet("rebuild", {"interval: 10s": "interval: 1s"})
    fleet.provide("systemctl", REBUILDER)
    fleet.provide("rebuild-is-due", '! test -e "$RUN/rebuilt"\n')
    fleet.start(*FIVE)
    fleet.wait("begin", 3)
    until(lambda: fleet.in_line("service/rebuild") == 5, "two wait")
    return fleet


def finish(fleet: Fleet, *names: str) -> None:
    for name in names:
        (fleet.run(name) / "may-end").touch()


def test_at_most_three_nodes_rebuild_at_once_and_each_node_once(rebuild: Fleet) -> None:
    finish(rebuild, *FIVE)
    rebuild.wait("end", 5)
    rebuild.wait_role("ineligible", FIVE)
    assert sorted(rebuild.nodes_that("begin")) == list(FIVE)
    assert rebuild.most_at_once("begin", "end") == 3


def test_a_rebuild_outlives_a_crash_of_the_supervisor(rebuild: Fleet) -> None:
    """The rebuild goes on in its slot, and the slot is freed when it has ended."""
    first, *others = rebuild.nodes_that("begin")
    node = rebuild.nodes[first]
    node.kill()
    node.start()
    node.wait_line("role", role="holding", reason="adopted")
    assert rebuild.nodes_that("begin") == [first, *others] and not rebuild.nodes_that("end")
    finish(rebuild, first)
    rebuild.wait("begin", 4)
    assert rebuild.nodes_that("begin").count(first) == 1
    finish(rebuild, *FIVE)
    rebuild.wait("end", 5)
    assert rebuild.most_at_once("begin", "end") == 3


# --- shards -----------------------------------------------------------------------------------------

SHARDS = 5
WORKER = """\
[ "$1" = --shard ] || exit 2
note "begins-$2"
trap 'note "ends-$2"; exit 0' TERM
while :; do sleep 0.05; done
"""


def test_each_shard_has_one_worker_and_a_worker_keeps_its_shard(make_fleet: MakeFleet) -> None:
    """Some workers leave in order, one is killed with its machine, and one loses its supervisor alone."""
    times = {
        "ttl: 10s": "ttl: 2s",
        "stop_timeout: 10s": "stop_timeout: 1s",
        "prune_delay: 45s": "prune_delay: 5s",
    }
    fleet = make_fleet("shards", times)
    fleet.provide("worker", WORKER)
    nodes = [f"w{number}" for number in range(SHARDS + 4)]
    for node in nodes:
        fleet.start(node)
    workers = {number: fleet.wait(f"begins-{number}", 1)[0] for number in range(SHARDS)}
    until(lambda: fleet.in_line("service/shards") == len(nodes), "the others wait")
    for number in (3, 0, 4):
        assert fleet.nodes[workers[number]].stop() == 0
        assert fleet.wait(f"begins-{number}", 2)[0] == workers[number]
    lost = fleet.nodes[workers[1]]
    kill_all([*processes_of(str(lost.folder))])
    lost.wait()
    successor = fleet.wait("begins-1", 2)[1]
    assert successor != workers[1]
    for number in range(SHARDS):
        begun = [node for what, node in fleet.journal() if what in (f"begins-{number}", f"ends-{number}")]
        assert len(begun) == {1: 2, 2: 1}.get(number, 3), fleet.account()
        if number != 1:  # the killed worker wrote no end
            assert fleet.most_at_once(f"begins-{number}", f"ends-{number}") == 1
    back = fleet.nodes[workers[2]]
    back.kill()
    back.start()
    back.wait_line("role", role="holding", reason="adopted")
    until(lambda: set(fleet.nodes_that("begins-2")) == {workers[2]}, "it goes on with its shard")
