"""Process 1 of a container, which the kernel makes the parent of every orphan.

Process 1 must reap orphans, and receives only signals that it handles. Another process does the work, so that
process 1 can reap every child without taking an exit status away from that work.
"""

import os
import signal

_NOT_PASSED_ON = {
    signal.SIGSEGV,  # a fault of this process itself
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTSTP,  # the terminal sends these to the child as well
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGCONT,
}


def stay_as_init() -> None:
    """Return in a child if this process is process 1, and at once in any other process.

    Process 1 itself passes signals on to the child, reaps, and ends with the exit code of the child.
    """
    if os.getpid() != 1:
        return
    handled = signal.valid_signals() - _NOT_PASSED_ON
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        number = signal.sigwait(handled)
        if number == signal.SIGCHLD:
            _reap(child)
        else:
            os.kill(child, number)


def _reap(child: int) -> None:
    """Reap all children that have ended. End this process when ``child`` is one of them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
