"""Process 1 of a container, which the kernel makes the parent of every orphan.

Process 1 must reap orphans, and receives only signals that it handles. Another process does the work, so that
process 1 can reap every child without taking an exit status away from that work.
"""

import os
import signal

SI_USER = 0  # a process has sent the signal, and not the kernel: see sigaction(2)
_OF_TERMINAL = {signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH}  # the kernel sends these to the child as well
_NOT_PASSED_ON = {
    signal.SIGSEGV,  # a fault of this process itself
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTSTP,  # as _OF_TERMINAL
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
        received = signal.sigwaitinfo(handled)
        if received.si_signo == signal.SIGCHLD:
            _reap(child)
        elif received.si_signo not in _OF_TERMINAL or received.si_code <= SI_USER:
            os.kill(child, received.si_signo)


def _reap(child: int) -> None:
    """Reap all children that have ended. End this process when ``child`` is one of them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
