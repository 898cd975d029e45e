"""Processes of the program, daemons too, as forks of a process that has imported it.

Python and the imports are most of the processor time of a command, and of a daemon that serves one scene. A
fork shows its own command line and environment to the kernel. ``tests/consul/test_imports.py``,
``tests/consul/test_exit_codes.py`` and all tests on machines start the program itself, and so do those that
start it by way of another program.
"""

import atexit
import ctypes
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from tests.support.patience import PATIENCE_S

MESSAGE_BYTES_MAX = 1 << 17
FD_MAX = 1 << 16
ROOM_BYTES = 1 << 16  # for the command line of a fork, and for its environment
PR_SET_PDEATHSIG = 1  # prctl(2)


class ForkedProcess:
    """A process of the program with exactly this environment, in a session of its own, as ``Popen`` has it.

    It is killed when the test process dies.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], out: int, error: int) -> None:
        self.args = arguments
        self.returncode: int | None = None
        self._told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, open(os.devnull) as given:
            message = json.dumps([arguments, dict(environ)]).encode()
            socket.send_fds(_started(), [message], [given.fileno(), out, error, theirs.fileno()])
        self._told.settimeout(PATIENCE_S)
        self.pid = int(self._told.recv(99))

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal. None: the process runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended; subprocess.TimeoutExpired when it does not."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                self.returncode = int(self._told.recv(99))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            self._told.close()
        return self.returncode

    def kill(self) -> None:
        """Send SIGKILL, unless the process is known to have ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, signal.SIGKILL)


def forked(arguments: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command with exactly this environment, and return its exit code and what it wrote."""
    with _file() as out, _file() as error:
        process = ForkedProcess(arguments, environ, out.fileno(), error.fileno())
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), error.read())


def _file() -> Any:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


@cache
def _started() -> socket.socket:
    """Start the process that forks, and return the socket that takes commands; its close ends the process.

    Its own command line and environment are long, because a fork writes its own over them.
    """
    from tests.support.supervisor import ENVIRON, ROOT

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        argv = [sys.executable, "-m", __name__, str(theirs.fileno()), "-" * ROOM_BYTES]
        environ = {**ENVIRON, "ROOM": "-" * ROOM_BYTES}
        fds = (theirs.fileno(),)
        process = subprocess.Popen(argv, cwd=ROOT, env=environ, pass_fds=fds, start_new_session=True)
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


# --- the process that forks --------------------------------------------------------------------------


def fork_for_each(asks: int) -> list[Any]:
    """Fork for each process, and tell its id and exit code; return in the fork, with its command."""
    running: dict[int, tuple[int, int]] = {}  # by the descriptor of the process: its id, and who is told
    with socket.socket(fileno=asks) as asked:
        while True:
            for ready in select.select([asks, *running], [], [])[0]:
                if ready == asks:
                    message, fds, _, _ = socket.recv_fds(asked, MESSAGE_BYTES_MAX, 4)
                    if not message:
                        sys.exit()
                    if pid := os.fork():
                        os.write(fds[3], str(pid).encode())
                        running[os.pidfd_open(pid)] = pid, fds.pop()
                        _close(fds)
                        continue
                    for fd in range(3):
                        os.dup2(fds[fd], fd)
                    asked.detach()
                    os.closerange(3, FD_MAX)
                    return list(json.loads(message))
                pid, told = running.pop(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(BrokenPipeError):  # a test that has failed does not ask any more
                    os.write(told, str(code).encode())
                _close([ready, told])


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def show(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Write over the memory from which the kernel reads the command line and the environment (proc(5))."""
    with open("/proc/self/stat") as stat:
        arguments_at, arguments_end, environ_at, environ_end = map(
            int, stat.read().rpartition(")")[2].split()[45:49]
        )
    shown = [(arguments_at, arguments_end, argv)]
    shown += [(environ_at, environ_end, [f"{name}={value}" for name, value in environ.items()])]
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for begin, end, words in shown:
            text = b"".join(os.fsencode(word) + b"\0" for word in words)
            assert len(text) < end - begin, f"no room for {len(text)} bytes"
            memory.seek(begin)
            memory.write(text.ljust(end - begin, b"\0"))


def main() -> None:
    """Import all of the program, fork, and run a command in the fork as the program does."""
    import supervisor

    for module in pkgutil.walk_packages(supervisor.__path__, "supervisor."):
        import_module(module.name)
    for name in ("jsonschema.validators", "yaml", "requests"):
        import_module(name)
    from supervisor.__main__ import main as command

    gc.collect()
    gc.freeze()
    arguments, environ = fork_for_each(int(sys.argv[1]))
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(environ)
    show([sys.executable, "-m", "supervisor", *arguments], environ)
    sys.argv = ["consul-supervisor", *arguments]
    try:
        code = command()
    except SystemExit as end:
        code = int(end.code or 0)
    gc.collect()  # what was left open warns now
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the end of all imported modules takes the time of several commands


if __name__ == "__main__":
    main()
