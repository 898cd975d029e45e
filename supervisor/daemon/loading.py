"""Loads the configuration in a child process, so that the loop goes on meanwhile.

A thousand elections take half a second to read and to validate, in which a daemon would not renew its
sessions. The validator also stays out of the daemon's memory. The child is a fork of the daemon. So both have
one version of each of our modules, even while an upgrade replaces the installed files, and no secret is
passed in arguments or in the environment. The finished settings come back through a file in memory.
"""

import gc
import os
import pickle
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from supervisor.config import Config, ConfigError
from supervisor.filesystem.children import Child, NoAnswer
from supervisor.runtime.signals import HANDLED

WITHIN_S = 30.0  # two thousand elections take a second; a machine may be many times slower

Load = Callable[[], Config]
Keep = Callable[[Config], None]


class NotLoaded(Exception):
    """The child ended without a result. The message has the reason, and nothing of the configuration."""


async def load_in_child(
    load: Load, path: Path, within_s: float = WITHIN_S, keep: Keep | None = None
) -> Config:
    """Return the result of ``load`` for the configuration at ``path``, called in a child.

    keep: called with the result in a process of its own, for whose end nobody waits.
    Raises ConfigError as ``load`` does, NotLoaded when the child ends otherwise, NoAnswer when the time is
    over, and another OSError when no child can be started.
    """
    child = Child(str(path), lambda out, err: _fork(load, keep, out, err, within_s))
    try:
        if not await child.comes_to_end(within_s):
            raise NoAnswer(str(path), within_s, "it could not be read")
        if (code := child.wait()) != 0:
            why = child.error().rpartition("\n")[2] or "it was killed"
            raise NotLoaded(f"the process that reads it ended with {code}: {why}")
        loaded = pickle.loads(child.result())
    finally:
        child.close()
    if isinstance(loaded, Config):
        return loaded
    raise ConfigError(loaded)


def _fork(load: Load, keep: Keep | None, out: int, err: int, within_s: float) -> int:
    """Start the child. Return its process id.

    Our signals are blocked meanwhile, because a handler that the child inherits would wake the loop of the
    parent.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    try:
        pid = os.fork()
        if pid == 0:
            _be_child(load, keep, out, err, within_s)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pid


def _be_child(load: Load, keep: Keep | None, out: int, err: int, within_s: float) -> NoReturn:
    """Write to ``out`` the result of ``load``, or the problems that ``load`` finds, and end this process."""
    code = 1
    try:
        os.setpgid(0, 0)  # a Ctrl-C at the terminal is for the daemon
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(2 * within_s) + 1)  # ends the child even if the daemon was killed meanwhile
        _keep_only(out, err)
        gc.disable()  # a collection would write to all memory, and so copy it
        try:
            result: object = load()
        except ConfigError as error:
            result = error.problems
        _write(out, pickle.dumps(result))
        if keep is not None and isinstance(result, Config) and os.fork() == 0:
            signal.alarm(int(WITHIN_S))
            keep(result)
        code = 0
    finally:
        if code:
            _write(err, traceback.format_exc().encode(errors="replace"))
        os._exit(code)


def _keep_only(*kept: int) -> None:
    """Close all other descriptors, so that a child that hangs holds no lock and no connection of ours."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in {0, 1, 2}.difference(kept):
        os.dup2(null, standard)
    first = 3
    for fd in sorted(kept):
        os.closerange(first, fd)
        first = max(first, fd + 1)
    os.closerange(first, os.sysconf("SC_OPEN_MAX"))


def _write(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]
