"""A child that is a fork of this process, and does in its place what may hang or take long.

So both have one version of each of our modules, even while an upgrade replaces the installed files, and no
secret is passed in arguments or in the environment. A fork takes the loop a millisecond or two.
"""

import gc
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import NoReturn, TypeVar

from supervisor.adapters.filesystem import mounts
from supervisor.adapters.filesystem.children import Child, NoAnswer

STARVED_TIMES = 10  # a load of 30 on two processors, and the same once more
Result = TypeVar("Result")


class ChildFailed(Exception):
    """The child ended without a result. The message has the reason."""


async def call_in_child(path: str, function: Callable[[], Result], within_s: float) -> Result:
    """Return the result of ``function``, called in a child while the loop goes on.

    path: what the function reads, which names the child.
    within_s: STARVED_TIMES as long for a child that goes on, on a machine that leaves it little time.
    Raises ChildFailed when the child ends without a result, NoAnswer when the time is over, and another
    OSError when no child can be started.
    """
    began, most_s, now = time.monotonic(), STARVED_TIMES * within_s, object()
    with closing(forked(path, lambda out: write(out, pickle.dumps(function())), most_s)) as child:
        while not await child.comes_to_end(within_s / 10):
            waited_s, before, now = time.monotonic() - began, now, child.progress()
            if waited_s >= most_s:
                raise NoAnswer(path, most_s, "this machine left too little time to read it")
            if waited_s >= within_s and now == before:
                raise NoAnswer(path, within_s)
        reap(child, "the process that reads it")
        result: Result = pickle.loads(child.result())
        return result


def reap(child: Child, who: str) -> None:
    """Reap a child that has ended. Raises ChildFailed, with ``who`` in its text, if it could not go on."""
    if (code := child.wait()) != 0:
        why = child.error().rpartition("\n")[2] or "it was killed"
        raise ChildFailed(f"{who} ended with {code}: {why}")


def forked(path: str, work: Callable[[int], object], within_s: float, *kept: int) -> Child:
    """Start a child that calls ``work`` with the descriptor for its result.

    All signals are blocked in the child, because a handler that it inherits would wake the loop of its
    parent. It ends by itself after twice ``within_s``, even if this process was killed meanwhile.

    kept: descriptors of ours that the child needs. It closes all others.
    Raises OSError as Child does.
    """
    return Child(path, partial(_fork, work, within_s, kept))


def _fork(work: Callable[[int], object], within_s: float, kept: tuple[int, ...], out: int, err: int) -> int:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _be_child(work, within_s, kept, out, err)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return pid


def _be_child(
    work: Callable[[int], object], within_s: float, kept: tuple[int, ...], out: int, err: int
) -> NoReturn:
    """Do the work and end this process, so that it never runs the code of its parent."""
    code = 1
    try:
        os.setpgid(0, 0)  # a Ctrl-C at the terminal is for the parent
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.alarm(int(2 * within_s) + 1)
        _keep_only(out, err, *kept)
        mounts.read_anew()
        gc.disable()  # a collection would write to all memory, and so copy it
        work(out)
        code = 0
    finally:
        if code:
            write(err, traceback.format_exc().encode(errors="replace"))
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


def write(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]
