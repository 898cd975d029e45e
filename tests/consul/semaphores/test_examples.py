"""The examples of semaphores keep the promises of their comments: the files themselves, on several nodes."""

import re
import signal
import subprocess
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


def test_a_rolling_restart_stops_at_the_node_that_does_not_come_back(restart: Fleet) -> None:
    """Other nodes go on once the node works again, or once the operator removes its file."""
    for name in restart.nodes:
        (restart.run(name) / "app-is-broken").touch()
    ask(restart, "a", "b", "c")
    until(lambda: restart.in_line("service/app-restart") == 3, "the others wait")
    first, *_ = restart.wait("sick", 2)
    assert restart.journal()[:2] == [("down", first), ("up", first)] and restart.nodes_that("up") == [first]
    (restart.run(first) / "app-is-broken").unlink()
    _, second = restart.wait("up", 2)
    assert wanted(restart) == sorted({"a", "b", "c"} - {first})
    (restart.run(second) / "app-restart").unlink()
    assert sorted(restart.wait("up", 3)) == ["a", "b", "c"]
    assert restart.most_at_once("down", "up") == 1
    third = restart.nodes_that("up")[2]
    (restart.run(third) / "app-is-broken").unlink()
    until(lambda: not wanted(restart), "nobody wants a restart any more")


def test_a_supervisor_that_is_stopped_amid_a_restart_keeps_the_slot_until_the_service_is_up(
    restart: Fleet,
) -> None:
    for name in restart.nodes:
        (restart.run(name) / "app-is-slow").touch()
    ask(restart, "a", "b")
    [first] = restart.wait("down", 1)
    until(lambda: restart.in_line("service/app-restart") == 2, "the other one waits")
    node = restart.nodes[first]
    node.signal(signal.SIGTERM)
    restart.wait("waits", 1)
    for name in restart.nodes:
        (restart.run(name) / "app-is-slow").unlink()
    assert node.wait() == 0
    _, second = restart.wait("down", 2)
    assert {first, second} == {"a", "b"}
    until(lambda: wanted(restart) == [first], "the other one is done")
    of_first = [("down", first), ("waits", first), ("up", first)]
    assert restart.journal() == [*of_first, ("down", second), ("up", second)]


def test_a_supervisor_that_crashes_amid_a_restart_repeats_it_in_its_own_slot(restart: Fleet) -> None:
    """The restart is not repeated when the file that requests it is gone."""
    for name in restart.nodes:
        (restart.run(name) / "app-is-broken").touch()
    ask(restart, "a", "b", "c")
    until(lambda: restart.in_line("service/app-restart") == 3, "the others wait")
    first, *_ = restart.wait("sick", 1)
    node = restart.nodes[first]
    node.kill()
    node.start()
    assert restart.wait("up", 2) == [first, first]
    node.kill()
    (restart.run(first) / "app-restart").unlink()
    node.start()
    _, _, second = restart.wait("up", 3)
    assert second != first and restart.most_at_once("down", "up") == 1


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


def test_a_rebuild_is_stopped_before_its_slot_is_freed(rebuild: Fleet) -> None:
    first = rebuild.nodes_that("begin")[0]
    assert rebuild.nodes[first].stop() == 0
    rebuild.wait("begin", 4)
    assert rebuild.nodes_that("end") == [first]
    assert rebuild.most_at_once("begin", "end") == 3


# --- cron-on-two ------------------------------------------------------------------------------------


class Cron:
    """Runs the crontab's line, as the example's comment has it, on all nodes at once."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        found = re.search(r"^# +\*/5 \* \* \* \*  root  (.+)$", fleet.text, re.MULTILINE)
        assert found is not None, "the example has no line for the crontab"
        self._line = found[1]
        self.most_at_once = 0

    def tick(self) -> list[str]:
        """Run the line once, and return the nodes on which the job ran."""
        before = len(self._fleet.nodes_that("report"))
        running = [
            subprocess.Popen(
                ["/bin/sh", "-c", self._fleet.placed(name, self._line)], env=self._fleet.environ(name)
            )
            for name in self._fleet.nodes
        ]
        for process in running:
            process.wait()
        ran = sorted(self._fleet.nodes_that("report")[before:])
        self.most_at_once = max(self.most_at_once, len(ran))
        return ran


def test_the_job_runs_on_two_of_many_nodes_and_each_node_has_its_turn(make_fleet: MakeFleet) -> None:
    """One holder after the other is stopped: the job never runs on three nodes, and soon on two again."""
    fleet = make_fleet("cron-on-two", {})
    fleet.provide("report", "note report\n")
    fleet.start(*FIVE)
    cron = Cron(fleet)

    def two_run() -> list[str]:
        return ran if len(ran := cron.tick()) == 2 else []

    stopped: set[str] = set()
    while len(stopped) < 3:
        holder = until(two_run, "the job runs on two nodes")[0]
        assert fleet.nodes[holder].stop() == 0
        stopped.add(holder)
        assert holder not in cron.tick()
    assert sorted(set(until(two_run, "the job runs on two nodes")) | stopped) == list(FIVE)
    assert cron.most_at_once == 2


# --- shards -----------------------------------------------------------------------------------------

SHARDS = 5
WORKER = """\
[ "$1" = --shard ] || exit 2
note "begins-$2"
trap 'note "ends-$2"; exit 0' TERM
while :; do sleep 0.2; done
"""


def test_each_shard_has_one_worker_and_a_worker_keeps_its_shard(make_fleet: MakeFleet) -> None:
    """Some workers leave in order, one is killed with its machine, and one loses its supervisor alone."""
    times = {
        "ttl: 10s": "ttl: 4s",
        "stop_timeout: 10s": "stop_timeout: 2s",
        "prune_delay: 45s": "prune_delay: 12s",
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
