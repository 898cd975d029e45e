"""Ends the hooks that a crashed supervisor left running.

These hooks end before anything else begins, because otherwise two hooks of one item would run at once. A
process is recognised by the number of its group together with the start time of the group's leader, or by the
transition's id in its environment. The number alone would not do, because the kernel may have given it to
another process by now. The functions of this module run before the loop, and so may wait.
"""

import os
import select
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROUNDS_MAX = 10  # a process may fork while the processes are listed; a fork bomb is not ours to end
EXEC_LOOKS, EXEC_LOOK_S = 5, 0.001  # an exec takes far less time
VARIABLE = "CONSUL_SUPERVISOR_TRANSITION"


@dataclass(frozen=True, slots=True)
class Group:
    """The process group of a hook."""

    pgid: int  # the number of the group, which is that of its leader
    started: int  # start time of the leader in clock ticks since boot, field 22 of /proc/PID/stat (proc(5))
    transition: str  # the id of the transition to which the hook belongs


def started_at(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot. None: no process has this number."""
    fields = stat_of(pid)
    return int(fields[19]) if fields else None


def find_abandoned(transitions: Sequence[str]) -> tuple[Group, ...]:
    """Return the groups of the processes that have one of these transitions in their environment.

    A group need not be on record, because a crash may come between the begin of a hook and the record of its
    group.
    """
    marks = {f"\0{VARIABLE}={transition}\0".encode(): transition for transition in transitions}
    found = []
    for _, entry, fields in _processes() if marks else ():
        mark = _mark(entry, marks)
        if mark is not None:
            found.append(Group(int(fields[2]), started_at(int(fields[2])) or 0, marks[mark]))
    return tuple(dict.fromkeys(found))


def kill_abandoned(groups: Sequence[Group], transitions: Sequence[str], *, within_s: float) -> list[str]:
    """Kill all processes of these groups and transitions.

    Return a message for each that has not ended in time.
    """
    ended_by = time.monotonic() + within_s
    killed: dict[int, int] = {}  # pidfd by number
    try:
        for _ in range(ROUNDS_MAX):
            found = [pid for pid in _members(groups, transitions) if pid not in killed]
            for pid in found:
                _kill(pid, killed)
            if not found:
                break
        return [
            f"cannot end process {pid}, left by an earlier run: it ignores KILL"
            for pid, fd in killed.items()
            if not _gone(fd, ended_by - time.monotonic())
        ]
    finally:
        for fd in killed.values():
            os.close(fd)


def _kill(pid: int, killed: dict[int, int]) -> None:
    """Kill the process by a pidfd, which stays with this process even when another one gets its number."""
    with suppress(ProcessLookupError, PermissionError):
        fd = os.pidfd_open(pid)
        killed[pid] = fd
        signal.pidfd_send_signal(fd, signal.SIGKILL)


def _gone(fd: int, within_s: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, within_s) * 1000))


def _members(groups: Sequence[Group], transitions: Sequence[str]) -> Iterator[int]:
    """Yield the processes of these transitions, and of the groups whose leader is the recorded one."""
    alive = {group.pgid for group in groups if started_at(group.pgid) == group.started}
    marks = {f"\0{VARIABLE}={transition}\0".encode() for transition in transitions}
    for pid, entry, fields in _processes():
        if int(fields[2]) in alive or _mark(entry, marks) is not None:
            yield pid


def _processes() -> Iterator[tuple[int, Path, list[str]]]:
    """Yield the number, the folder and the fields of each living process except process 1, our parent and us.

    The folder is the one below /proc, and the fields are those that ``stat_of`` returns.
    """
    ours = (1, os.getpid(), os.getppid())
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (pid := int(entry.name)) not in ours:
            fields = stat_of(pid)
            if fields and (fields[0] != "Z" or fields[17] != "1"):  # another thread of it may live
                yield pid, entry, fields


def _mark(process: Path, marks: Iterable[bytes]) -> bytes | None:
    with suppress(OSError):
        environment = b"\0" + _environ(process) + b"\0"
        return next((mark for mark in marks if mark in environment), None)
    return None


def _environ(process: Path) -> bytes:
    """Return the environment of a process.

    Read again while the process runs an exec, because the kernel then shows none for a moment.
    """
    content = (process / "environ").read_bytes()
    for _ in range(EXEC_LOOKS):
        if content or not os.path.exists(process / "exe"):  # a kernel thread has no program
            break
        select.select((), (), (), EXEC_LOOK_S)
        content = (process / "environ").read_bytes()
    return content


def stat_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state (field 3) on. Empty: there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []
