"""Resources that a hook needs to begin run short at the worst moments: at a loss, and after a win."""

import os
import resource
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor, until
from tests.support.tenures import SCRIPT

SHORT_S = 0.4  # of the 5 s that an on_lose here has
ROOMY = {"lock_delay": "8s"}
NONE_LEFT = 3  # of descriptors: open ones stay open, and no new one can be opened


def limit_descriptors(supervisor: Supervisor, count: int) -> None:
    """Limit the number of the supervisor's descriptors from now on."""
    _, hard = resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE, (count, hard))


def leave_descriptors(supervisor: Supervisor, count: int) -> None:
    """Leave this many descriptors free, once no hook's are open, because those are about to be closed."""
    until(lambda: not has_children(supervisor), "the end of every hook")
    used, limit = {int(fd.name) for fd in Path(f"/proc/{supervisor.pid}/fd").iterdir()}, 0
    while count:
        count -= limit not in used
        limit += 1
    limit_descriptors(supervisor, limit)


def has_children(supervisor: Supervisor) -> bool:
    """Return whether a pipe, a file in memory or a watched process of a hook is open."""
    links = []
    for fd in Path(f"/proc/{supervisor.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            links.append(os.readlink(fd))
    return any(link.startswith(("pipe:", "/memfd:", "anon_inode:[pidfd]")) for link in links)


def enough_descriptors(supervisor: Supervisor) -> None:
    """Allow as many descriptors as the hard limit does."""
    _, hard = resource.prlimit(supervisor.pid, resource.RLIMIT_NOFILE)
    limit_descriptors(supervisor, hard)


def assert_lost_in_order(scene: Scene, a: Supervisor) -> None:
    """Check that on_lose has run to its end."""
    ended = scene.wait(node="a", event="lose", stage="end")
    assert ended.exit == 0
    assert not a.lines("role", role="stuck") and not a.lines("hook-failed")


@pytest.mark.long
def test_a_loss_while_descriptors_are_short_for_a_moment_runs_on_lose(scene: Scene) -> None:
    a = scene.leader("a", on_lose=[scene.hook("a", "lose", timeout="5s")], session=ROOMY)
    scene.waiter("b")
    limit_descriptors(a, NONE_LEFT)
    enough = threading.Timer(SHORT_S, enough_descriptors, (a,))
    scene.agent.session_destroy(scene.session_of("a"))
    a.wait_line("hook-delayed", hook="on_lose[0]")
    enough.start()
    assert_lost_in_order(scene, a)
    enough.join()
    assert scene.wait_leader() in ("a", "b")


def test_on_lose_runs_on_reserved_descriptors_when_all_others_are_used_up(scene: Scene) -> None:
    a = scene.leader("a")
    used = max(int(fd.name) for fd in Path(f"/proc/{a.pid}/fd").iterdir()) + 1
    limit_descriptors(a, used)
    scene.agent.session_destroy(scene.session_of("a"))
    assert_lost_in_order(scene, a)
    enough_descriptors(a)


def test_a_loss_while_the_program_of_on_lose_is_being_replaced_runs_on_lose(
    scene: Scene, tmp_path: Path
) -> None:
    script = tmp_path / "down"
    script.write_text(f"#!/bin/sh\nexec /bin/sh {SCRIPT} :\n")
    script.chmod(0o755)
    lose = {**scene.hook("a", "lose", timeout="5s"), "exec": [str(script)]}
    a = scene.leader("a", on_lose=[lose], session=ROOMY)
    with script.open("a"):
        scene.agent.session_destroy(scene.session_of("a"))
        a.wait_line("hook-delayed", hook="on_lose[0]")
    assert_lost_in_order(scene, a)


@pytest.mark.long
def test_a_node_that_cannot_start_on_acquire_gives_the_lock_back_without_on_lose(scene: Scene) -> None:
    b = scene.leader("b")
    a = scene.waiter("a", on_acquire=[scene.hook("a", "acquire", timeout="700ms")], rejoin_delay="30s")
    a.wait_line("hook-succeeded", hook="on_change[0]")
    leave_descriptors(a, 2)  # for the connection of the acquire; a hook needs six
    assert b.stop() == 0
    failed = a.wait_line("hook-failed", hook="on_acquire[0]")
    assert failed["detail"] == "cannot start: Too many open files"
    enough_descriptors(a)
    scene.node("c")
    assert scene.wait_leader(but="b") == "c"
    assert scene.calls("a") == []
