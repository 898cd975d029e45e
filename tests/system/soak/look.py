"""A process as the kernel shows it: memory, descriptors, threads, children."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

LOOKS, LOOKS_EVERY_S = 5, 0.2


@dataclass(frozen=True, slots=True)
class Look:
    """One process at one moment.

    children: those that live.
    dead: those that were not waited for yet.
    """

    rss_mb: float
    sockets: int
    files: int
    threads: int
    children: frozenset[int]
    dead: frozenset[int]


def look(pid: int) -> Look:
    """Return a look at the process; raise psutil.Error or OSError when it has ended."""
    process = psutil.Process(pid)
    targets = [_target(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = sum(target.startswith("socket:") for target in targets)
    children = {child.pid: _lives(child) for child in process.children()}
    return Look(
        rss_mb=process.memory_info().rss / 1e6,
        sockets=sockets,
        files=sum(bool(target) for target in targets) - sockets,
        threads=process.num_threads(),
        children=frozenset(child for child, lives in children.items() if lives),
        dead=frozenset(child for child, lives in children.items() if not lives),
    )


def least_files(pid: int) -> int:
    """Return the number of files open in each of several looks.

    A check may begin at any time, but it closes its files between two looks; a file that was leaked stays
    open.
    """
    seen = []
    for _ in range(LOOKS):
        seen.append(look(pid).files)
        time.sleep(LOOKS_EVERY_S)
    return min(seen)


def largest_file_kb(folder: Path) -> float:
    """Return the size of the largest record; a record that is removed meanwhile does not count."""
    sizes = [_size(path) for path in folder.glob("*.journal")]
    return max(sizes, default=0) / 1024


def _target(path: Path) -> str:
    """Return the target of a link; blank when it has been closed meanwhile."""
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return ""


def _lives(child: psutil.Process) -> bool:
    try:
        return child.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
