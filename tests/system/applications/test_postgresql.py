"""PostgreSQL by examples/postgresql: one primary at a time, and no confirmed row is ever lost."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.supervisor import until
from tests.system.applications.postgres_nodes import LOCAL, PostgresDatabase, make_home, make_template
from tests.system.applications.stage import Stage

NodesOf = Callable[[int], PostgresDatabase]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Yield a folder that the user postgres can enter, with a path short enough for the name of a socket."""
    folder = make_home(Path(tempfile.mkdtemp(prefix="pg-")))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def template(home: Path) -> Path:
    """Make the first node's cluster, once for all tests."""
    folder = home / "template"
    folder.mkdir()
    make_home(folder)
    make_template(folder)
    return folder


@pytest.fixture
def scene_of(stage: Stage, home: Path, template: Path) -> Iterator[NodesOf]:
    """Yield a maker of nodes that are not started; the first has the cluster, the others have nothing."""
    with ExitStack() as stack:
        folder = make_home(Path(tempfile.mkdtemp(dir=home)))
        stack.callback(shutil.rmtree, folder)
        yield lambda count: stack.enter_context(PostgresDatabase(stage, template, folder, count))


@pytest.mark.parametrize("by", ["pg_rewind", "pg_basebackup"])
def test_a_machine_that_dies_is_replaced_and_comes_back_as_a_standby(scene_of: NodesOf, by: str) -> None:
    """The machine that died has a row that no standby has received; it was never confirmed."""
    scene = scene_of(3)
    a, b, c = scene.led_by_first()
    a.freeze("walsender")
    assert a.ask(f"{LOCAL}INSERT INTO numbers VALUES (-1) RETURNING number") == ["-1"]
    a.die()
    new = scene.wait_leader(but=a)
    other = c if new is b else b
    scene.wait_sent(new, other)
    scene.wait_confirmed(new)
    if by == "pg_basebackup":
        with (a.data / "consul-supervisor.lineage").open("a") as file:
            file.write("4711 a tenure of which the leader knows nothing\n")
    a.supervisor.start()
    scene.wait_sent(new, a, other)
    assert a.said("pg_rewind: undoing") == (by == "pg_rewind")
    assert [node.copies() for node in (a, b, c)] == [int(by == "pg_basebackup"), 1, 1], scene.account()
    scene.judge(new)
    until(lambda: a.rows() == new.rows(), "the former primary has the rows of the new one, and no other")
    assert -1 not in a.rows()
    stop(scene)


def test_a_primary_without_a_standby_confirms_nothing(
    scene_of: NodesOf, stage: Stage, tmp_path: Path
) -> None:
    """So every confirmed row is on two machines. One standby of two is enough, and a backup is no standby."""
    scene = scene_of(3)
    a, b, c = scene.led_by_first()
    b.die()
    scene.wait_confirmed(a)
    c.die()
    stage.program("backup", *a.receiver(tmp_path))
    scene.wait(lambda: a.ask("SELECT flush_lsn FROM pg_stat_replication") not in ([], [""]), "it reports")
    assert a.ask("INSERT INTO numbers VALUES (-1) RETURNING number") == []
    assert a.is_primary() and -1 not in a.rows(), "it waits for a standby"
    b.supervisor.start()
    scene.wait_confirmed(a)
    assert b.copies() == 1  # from its first start


def test_a_standby_that_lacks_rows_leaves_the_lead_to_one_that_has_them(scene_of: NodesOf) -> None:
    scene = scene_of(3)
    a, b, c = scene.led_by_first()
    c.die()
    scene.wait_confirmed(a)
    assert b.supervisor.stop() == 0  # its PostgreSQL still runs
    scene.wait_confirmed(a)
    a.die()
    c.supervisor.start()
    c.supervisor.wait_line("hook-failed", hook="promote")
    assert c.said(f"{b.address} has more of the data")
    b.supervisor.start()
    assert scene.wait_leader() is b
    scene.wait_sent(b, c)
    scene.wait_confirmed(b)
    scene.judge(b)


def test_a_primary_that_stands_still_is_killed_before_another_is_promoted(scene_of: NodesOf) -> None:
    scene = scene_of(3)
    a, b, c = scene.led_by_first()
    frozen = a.processes()
    a.freeze()
    scene.wait(lambda: not any(process.is_running() for process in frozen), "it is killed")
    new = scene.wait_leader(but=a)
    promoted = new.supervisor.wait_line("hook-started", hook="promote")
    assert a.supervisor.wait_line("hook-succeeded", hook="stop")["time"] <= promoted["time"]
    scene.wait_sent(new, a, c if new is b else b)
    scene.wait_confirmed(new)
    scene.judge(new)


def test_a_primary_is_stopped_although_its_disk_takes_no_file(scene_of: NodesOf) -> None:
    """The node is stuck, because its next start would make a second primary; its PostgreSQL has ended."""
    scene = scene_of(2)
    a, _ = scene.led_by_first()
    a.data.chmod(0o500)
    try:
        assert a.supervisor.stop() == 1
        assert not a.processes()
        assert a.said("standby.signal cannot be written")
    finally:
        a.data.chmod(0o700)


def test_no_standby_is_promoted_beside_a_primary_whose_supervisor_has_died(scene_of: NodesOf) -> None:
    """When the supervisor is back, it ends that primary first; until then the old primary accepts writes."""
    scene = scene_of(3)
    a, b, c = scene.led_by_first()
    a.supervisor.kill()
    scene.wait(lambda: any(node.said("is also a primary") for node in (b, c)), "a refusal")
    for node in (b, c):
        assert node.ask("SELECT pg_is_in_recovery()") == ["t"]
    former = a.processes()[0]
    assert a.is_primary()
    a.supervisor.start()
    scene.wait(lambda: not former.is_running(), "the old primary is ended")
    new = scene.wait_leader()  # the first node may lead again
    scene.wait_sent(new, *(node for node in scene.nodes if node is not new))
    scene.wait_confirmed(new)
    assert [node.copies() for node in scene.nodes] == [0, 1, 1], scene.account()
    scene.judge(new)


def stop(scene: PostgresDatabase) -> None:
    """Stop all supervisors; assert that each ends with 0 and has logged no fault."""
    for node in scene.nodes:
        assert node.supervisor.stop() == 0
        node.supervisor.assert_no_fault()
