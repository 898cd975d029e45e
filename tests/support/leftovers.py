"""The things that no test may leave on the machine: files of an installation, networks, processes."""

import os
from pathlib import Path

import psutil

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
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    running = {each.pid: each.info["cmdline"] or [""] for each in psutil.process_iter(["cmdline"])}
    return {
        f"process {pid}: {' '.join(words[:4])}"
        for pid, words in running.items()
        if pid not in ours and words[0].startswith(f"{ROOT}/.")  # .venv, .cache
    }
