"""Starts a command as a process group of its own, with its standard streams and no other descriptor of ours.

posix_spawn takes two thirds of the time of ``subprocess.Popen``, at a moment at which nobody holds the lock.
Popen is used where only Popen can do it: when a folder is requested, or when a standard stream of ours is
closed. No descriptor of ours may reach a command. An exec closes our own, and ``keep_descriptors`` at the
start sees to those that our parent left open.

Both calls wait until the kernel has opened the program and entered the folder. Where one of them may not be
on a disk of this machine, coreutils' ``env`` is started in its place and goes on from there. A file system
that does not answer then hangs that child, which the hook's timeout ends, and not this process.
"""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from supervisor.adapters.filesystem.executable import SCRIPTS_MAX, head_of, interpreter_of
from supervisor.adapters.filesystem.mounts import are_all_local, is_local

MFD_NOEXEC_SEAL = 0x8  # Linux 6.3; with the sysctl vm.memfd_noexec=2 memfd_create needs this flag
STANDARD = (0, 1, 2)
LAUNCHER = "/usr/bin/env"
EXACT_LAUNCHER = ("/usr/bin/nice", "-n", "0", "--")  # after env, which takes A=B for a variable
# A shell script that starts us in the background, nohup and Python itself ignore some signals. An exec
# keeps them ignored, so that a hook would never receive them.
SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


_Ends = tuple[int, int, int]


class Spawned(NamedTuple):
    """A process that is being executed, and the descriptors of its output, which the caller closes."""

    pid: int
    stdout: int = -1  # -1: its output goes where that of this process goes
    stderr: int = -1  # likewise


def keep_descriptors() -> None:
    """Keep the descriptors that our parent left open, except the standard streams, from all hooks."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in STANDARD:
            with suppress(OSError):  # the descriptor of the listing itself is closed by now
                os.set_inheritable(int(name), False)


def spawn(argv: list[str], cwd: str | None, env: Mapping[str, str], stdin: bytes) -> Spawned:
    """Start a command, which is being executed when this returns.

    Raises OSError or ValueError when it cannot start: no such file, not executable, a NUL byte in an
    argument, arguments that are too large, or no descriptors left. The loop waits for execve, as after every
    vfork. Where the program or the folder may hang, the child reports such an error by its exit code: 125,
    126 or 127.
    """
    if not _is_start_local(argv[0], cwd, env):
        argv, cwd = launched(argv, cwd), None
    fds: list[int] = []
    try:
        fds.append(_file_in_memory())
        _fill(fds[0], stdin)
        fds += os.pipe()
        fds += os.pipe()
        document, out, out_theirs, err, err_theirs = fds
        ends = (document, out_theirs, err_theirs)
        if cwd is not None or min(fds) in STANDARD:
            pid = _by_popen(argv, cwd, env, ends)
        else:
            pid = _by_posix_spawn(argv, env, ends)
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    for fd in ends:
        os.close(fd)
    return Spawned(pid, out, err)


def _by_posix_spawn(argv: list[str], env: Mapping[str, str], ends: _Ends) -> int:
    return os.posix_spawn(
        _found(argv[0], env),
        argv,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, end, number) for number, end in zip(STANDARD, ends, strict=True)],
        setpgroup=0,
        setsigmask=(),
        setsigdef=SIGNALS,
    )


def _by_popen(argv: list[str], cwd: str | None, env: Mapping[str, str], ends: _Ends) -> int:
    stdin, stdout, stderr = ends
    with _default_signals():
        process = subprocess.Popen(
            argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, process_group=0
        )
    process.returncode = 0  # so that Popen does not wait for the process, because the caller does
    return process.pid


def _is_start_local(name: str, cwd: str | None, env: Mapping[str, str]) -> bool:
    """Return whether nothing that the kernel touches until the program runs can hang."""
    if are_all_local():
        return True
    if cwd is not None and not is_local(cwd):
        return False
    if os.path.dirname(name):
        return _is_program_local(os.path.join(cwd or "", name))
    for folder in os.get_exec_path(env):
        path = os.path.join(cwd or "", folder, name)
        if not is_local(path):
            return False
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return _is_program_local(path)
    return True


def _is_program_local(program: str) -> bool:
    """Return whether the program is on a local disk, and so is each interpreter that a script names."""
    for _ in range(SCRIPTS_MAX):
        if not is_local(program):
            return False
        runner = interpreter_of(head_of(program, flags=os.O_NONBLOCK) or b"")
        if runner is None:
            return True
        program = runner[0]
    return True


def launched(argv: list[str], cwd: str | None) -> list[str]:
    """Return the argv of a launcher, which enters the folder and opens the program in our place."""
    folder = [] if cwd is None else [f"--chdir={cwd}"]
    exactly = EXACT_LAUNCHER if "=" in argv[0] else ()
    return [LAUNCHER, *folder, "--", *exactly, *argv]


@contextmanager
def _default_signals() -> Iterator[None]:
    """Let a program that starts in this block begin with default dispositions and no signal blocked.

    Each ignored signal is caught meanwhile by a handler that does nothing, because an exec resets caught
    signals and keeps ignored ones (execve(2)).
    """
    ignored = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN]
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in ignored:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _found(name: str, env: Mapping[str, str]) -> str:
    """Return the file of this command, found in the PATH that the command gets. Raises FileNotFoundError."""
    if os.path.dirname(name):
        return name
    found = shutil.which(name, path=os.pathsep.join(os.get_exec_path(env)))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _file_in_memory() -> int:
    """Return the descriptor of a file in memory. Unlike a pipe it takes any size at once, read or not."""
    try:
        return os.memfd_create("event", os.MFD_CLOEXEC | MFD_NOEXEC_SEAL)
    except OSError:  # EINVAL of an older kernel; any other error is raised again here
        return os.memfd_create("event", os.MFD_CLOEXEC)


def _fill(fd: int, content: bytes) -> None:
    """Write the content, and leave the file offset at the beginning, from which the child reads."""
    written = 0
    while written < len(content):
        written += os.pwrite(fd, content[written:], written)
