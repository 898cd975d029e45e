"""kill -9 of a supervisor, and what it leaves on record."""

import json
import zlib
from pathlib import Path

from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor


def crash(scene: Scene, node: str) -> Supervisor:
    """kill -9; unlike ``scene.kill`` it excuses nothing, for the restart owes everything."""
    scene.restarts = True
    supervisor = scene.nodes[node]
    supervisor.kill()
    return supervisor


def flag_of(scene: Scene) -> Path:
    """While it is there, a hook that looks for it goes on."""
    scene.folder.mkdir(parents=True, exist_ok=True)
    flag = scene.folder / "slow"
    flag.touch()
    return flag


def state_of(supervisor: Supervisor, name: str) -> dict[str, object]:
    """The newest state on record; empty when there is none."""
    path = supervisor.state_dir / f"{name}.journal"
    lines = path.read_text().rstrip(" ").splitlines() if path.exists() else []
    states = [json.loads(line.partition(" ")[2]) for line in lines]
    return next((state for state in reversed(states) if state["record"] == "state"), {})


def session_in_force(scene: Scene) -> str:
    entry = scene.agent.kv_get(scene.key)
    return str(entry["Session"]) if entry else ""


def rewrite(supervisor: Supervisor, name: str, **changes: str) -> None:
    """The newest state with other fields, its checksum right."""
    path = supervisor.state_dir / f"{name}.journal"
    *before, newest = path.read_bytes().rstrip(b" ").splitlines(keepends=True)
    state = json.loads(newest.partition(b" ")[2]) | changes
    text = json.dumps(state).encode()
    path.write_bytes(b"".join(before) + b"%08x %s\n " % (zlib.crc32(text), text))


def spoil(supervisor: Supervisor, name: str) -> None:
    """One byte of the newest line is another."""
    path = supervisor.state_dir / f"{name}.journal"
    content = path.read_bytes().rstrip(b" ")
    path.write_bytes(content[:-10] + b"x" + content[-9:] + b" ")


def refile(supervisor: Supervisor, config: object) -> None:
    """Another file from the next start on."""
    supervisor.config_path.write_text(json.dumps(config))
