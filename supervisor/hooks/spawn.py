"""Starts a command: as a process group of its own, with its standard streams, and nothing else of ours.

By posix_spawn, which takes two thirds of the time of ``subprocess.Popen``, at a moment at which
nobody holds the lock; where a folder is asked for, or a standard stream of ours is closed, by Popen,
which alone can do it. It must never leave a descriptor of ours to a command: ours are closed by an
exec, and what our parent left us is seen to at the start.

Either waits until the kernel has opened the program and entered the folder. Where one of them may not lie
on a disk of this machine, coreutils' ``env``, which does, is started in its place and goes on from there:
a file system that does not answer then hangs that child, which the hook's timeout ends, and not us.
"""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from supervisor.filesystem.mounts import are_all_local, is_local

MFD_NOEXEC_SEAL = 0x8  # Linux 6.3; with the sysctl vm.memfd_noexec=2 there is no file without it
STANDARD = (0, 1, 2)
LAUNCHER = "/usr/bin/env"
EXACT_LAUNCHER = ("/usr/bin/nice", "-n", "0", "--")  # behind env, which takes A=B for no program
HEAD_BYTES = 256  # of a script: BINPRM_BUF_SIZE, as far as the kernel looks for its interpreter
INTERPRETERS_MAX = 5  # of interpreters that are scripts again; the kernel follows no more
# A shell script that starts us in the background, nohup and Python itself ignore some signals, and an
# exec passes on what is ignored: a hook would never hear them.
SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}


_Ends = tuple[int, int, int]


class Spawned(NamedTuple):
    """A process that is being executed, and the descriptors of what it writes; whoever gets this closes
    them."""

    pid: int
    stdout: int
    stderr: int


def keep_descriptors() -> None:
    """What our parent has left open to us, beside the standard streams, is not for hooks."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in STANDARD:
            with suppress(OSError):  # the listing's own is closed by now
                os.set_inheritable(int(name), False)


def spawn(argv: list[str], cwd: str | None, env: Mapping[str, str], stdin: bytes) -> Spawned:
    """The command is being executed when this returns.

    Raises OSError or ValueError when it cannot be: no such file, not executable, a NUL byte in it,
    too large, no descriptors left. The loop waits for execve, as for every vfork. What only a child may
    touch, because it may hang, is reported by the exit of that child: 125, 126 or 127.
    """
    if not _surely_begins(argv[0], cwd, env):
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
    process.returncode = 0  # whoever asked waits for it
    return process.pid


def _surely_begins(name: str, cwd: str | None, env: Mapping[str, str]) -> bool:
    """Whether nothing that the kernel touches until the program runs can hang."""
    if are_all_local():
        return True
    if cwd is not None and not is_local(cwd):
        return False
    if os.path.dirname(name):
        return _is_near(os.path.join(cwd or "", name))
    for folder in os.get_exec_path(env):
        path = os.path.join(cwd or "", folder, name)
        if not is_local(path):
            return False
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return _is_near(path)
    return True


def _is_near(program: str) -> bool:
    """Whether it lies on a local disk, and the interpreter that it names, if it is a script."""
    for _ in range(INTERPRETERS_MAX):
        if not is_local(program):
            return False
        mark, words = _head(program)
        if mark != b"#!" or not words:
            return True
        program = os.fsdecode(words[0])
    return True


def _head(program: str) -> tuple[bytes, list[bytes]]:
    """Its first two bytes and the words behind them; blank where it cannot be read: then the kernel says
    what is wrong, or it is no script."""
    try:
        fd = os.open(program, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b"", []
    try:
        head = os.pread(fd, HEAD_BYTES, 0)
        return head[:2], head[2:].partition(b"\n")[0].split()
    except OSError:
        return b"", []
    finally:
        os.close(fd)


def launched(argv: list[str], cwd: str | None) -> list[str]:
    """The same behind a launcher, which enters the folder and opens the program in our place."""
    folder = [] if cwd is None else [f"--chdir={cwd}"]
    exactly = EXACT_LAUNCHER if "=" in argv[0] else ()
    return [LAUNCHER, *folder, "--", *exactly, *argv]


@contextmanager
def _default_signals() -> Iterator[None]:
    """Let a program that starts meanwhile begin with default dispositions and no signal blocked.

    What we ignore is caught meanwhile by a handler that does nothing: an exec resets what is caught.
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
    """The file that this command is, by the PATH that it gets."""
    if os.path.dirname(name):
        return name
    found = shutil.which(name, path=os.pathsep.join(os.get_exec_path(env)))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _file_in_memory() -> int:
    """Unlike a pipe it takes any size at once, whether or not a child reads it."""
    try:
        return os.memfd_create("event", os.MFD_CLOEXEC | MFD_NOEXEC_SEAL)
    except OSError:  # EINVAL of an older kernel; any other reason comes again
        return os.memfd_create("event", os.MFD_CLOEXEC)


def _fill(fd: int, content: bytes) -> None:
    """From its beginning, where whoever reads it begins, too."""
    written = 0
    while written < len(content):
        written += os.pwrite(fd, content[written:], written)
