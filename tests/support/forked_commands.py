"""Commands of the program that end by themselves, as forks of a process that has imported it.

Python and the imports are most of the processor time of a command. ``tests/consul/test_imports.py`` and
``tests/consul/test_exit_codes.py`` start the program itself, and so do all tests that need its process.
"""

import atexit
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
from functools import cache
from importlib import import_module
from typing import Any

from tests.support.patience import PATIENCE_S

MESSAGE_BYTES_MAX = 1 << 17
FD_MAX = 1 << 16


def forked(arguments: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command with exactly this environment, and return its exit code and what it wrote."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, _file() as out, _file() as error, open(os.devnull) as given:
        message = json.dumps([arguments, dict(environ)]).encode()
        socket.send_fds(_started(), [message], [each.fileno() for each in (given, out, error, theirs)])
        theirs.close()
        ours.settimeout(PATIENCE_S)
        pid = int(ours.recv(99))
        try:
            code = int(ours.recv(99))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        out.seek(0)
        error.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), error.read())


def _file() -> Any:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


@cache
def _started() -> socket.socket:
    """Start the process that forks, and return the socket that takes commands; its close ends the process."""
    from tests.support.supervisor import ENVIRON, ROOT

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        argv = [sys.executable, "-m", __name__, str(theirs.fileno())]
        fds = (theirs.fileno(),)
        process = subprocess.Popen(argv, cwd=ROOT, env=ENVIRON, pass_fds=fds, start_new_session=True)
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


# --- the process that forks --------------------------------------------------------------------------


def fork_for_each(asks: int) -> list[Any]:
    """Fork for each command, and tell its process id and exit code; return in the fork, with the command."""
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
                os.write(told, str(code).encode())
                _close([ready, told])


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


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
    os.environ.clear()
    os.environ.update(environ)
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
