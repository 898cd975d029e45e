"""The things that no test may leave on the machine: files of an installation, networks, processes."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = [Path("/", *parts, "consul-supervisor") for parts in (("etc",), ("run",), ("var", "lib"))]
NETWORKS = Path("/run/netns")


def leftovers() -> set[str]:
    """Return the files, networks and processes that there are now."""
    return files() | {str(path) for path in NETWORKS.glob("*")} | _processes()


def files() -> set[str]:
    """Return the files in the places of an installed supervisor."""
    return {str(path) for place in PLACES for path in (place, *place.rglob("*")) if path.exists()}


def _processes() -> set[str]:
    """Return the programs of this checkout that run, but this process and its ancestors."""
    ours = set()
    pid = os.getpid()
    while pid > 1:
        ours.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    found = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) in ours:
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:  # it has ended
            continue
        if words[0].startswith(f"{ROOT}/."):  # .venv, .cache
            found.add(f"process {folder.name}: {' '.join(words[:4])}")
    return found
