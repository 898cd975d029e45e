"""``kill -9`` of a supervisor, and helpers that read and change its record."""

import json
import zlib
from pathlib import Path

from tests.consul.elections.scene import Scene
from tests.support.supervisor import Supervisor, until


def crash(scene: Scene, node: str) -> Supervisor:
    """Kill a supervisor with SIGKILL and excuse nothing, because its restart must finish the tenure."""
    scene.restarts = True
    supervisor = scene.nodes[node]
    supervisor.kill()
    return supervisor


def _record_of(supervisor: Supervisor, name: str) -> Path:
    """Return the file of a record: in memory, unless a stop in order has left it on disk alone."""
    folder = supervisor.records if supervisor.records.exists() else supervisor.state_dir
    return folder / f"{name}.journal"


def flag_of(scene: Scene) -> Path:
    """Return a file that a hook looks for: the hook goes on while the file is there."""
    scene.folder.mkdir(parents=True, exist_ok=True)
    flag = scene.folder / "slow"
    flag.touch()
    return flag


def state_of(supervisor: Supervisor, name: str) -> dict[str, object]:
    """Return the newest state on record; blank when there is none."""
    path = _record_of(supervisor, name)
    lines = path.read_text().rstrip(" ").splitlines() if path.exists() else []
    states = [json.loads(line.partition(" ")[2]) for line in lines]
    return next((state for state in reversed(states) if state["record"] == "state"), {})


def session_in_force(scene: Scene) -> str:
    entry = scene.agent.kv_get(scene.key)
    return str(entry["Session"]) if entry else ""


def rewrite(supervisor: Supervisor, name: str, **changes: str) -> None:
    """Write the newest state with other fields and a correct checksum."""
    path = _record_of(supervisor, name)
    *before, newest = path.read_bytes().rstrip(b" ").splitlines(keepends=True)
    state = json.loads(newest.partition(b" ")[2]) | changes
    text = json.dumps(state).encode()
    path.write_bytes(b"".join(before) + b"%08x %s\n " % (zlib.crc32(text), text))


def spoil(supervisor: Supervisor, name: str) -> None:
    """Change one byte of the newest line of the record."""
    path = _record_of(supervisor, name)
    content = path.read_bytes().rstrip(b" ")
    path.write_bytes(content[:-10] + b"x" + content[-9:] + b" ")


def refile(supervisor: Supervisor, config: object) -> None:
    """Replace the configuration file, which the next start reads."""
    supervisor.config_path.write_text(json.dumps(config))


def accepted_file(supervisor: Supervisor) -> Path:
    """Return the file in which the last accepted configuration is kept."""
    return supervisor.state_dir / "accepted.json"


def crash_and_forget(scene: Scene, node: str) -> None:
    """Kill a supervisor, and leave it without any configuration that was ever accepted."""
    until(accepted_file(scene.nodes[node]).exists, "its configuration is kept: no child copies it later")
    forget_accepted(crash(scene, node))


def forget_accepted(supervisor: Supervisor) -> None:
    """Remove the configuration that was accepted last."""
    for folder in (supervisor.state_dir, supervisor.records):
        (folder / "accepted.json").unlink(missing_ok=True)
