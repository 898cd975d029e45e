"""A resource that a hook needs to begin runs short at the worst moment: at a loss."""

import resource
from pathlib import Path

from tests.consul.elections.scene import Scene


def test_on_lose_runs_on_reserved_descriptors_when_all_others_are_used_up(scene: Scene) -> None:
    a = scene.leader("a")
    used = max(int(fd.name) for fd in Path(f"/proc/{a.pid}/fd").iterdir()) + 1
    soft, hard = resource.prlimit(a.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(a.pid, resource.RLIMIT_NOFILE, (used, hard))
    scene.agent.session_destroy(scene.session_of("a"))
    assert scene.wait(node="a", event="lose", stage="end").exit == 0
    assert not a.lines("role", role="stuck") and not a.lines("hook-failed")
    resource.prlimit(a.pid, resource.RLIMIT_NOFILE, (soft, hard))
