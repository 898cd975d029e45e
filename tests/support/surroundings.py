"""The surroundings of a test process, made equal on every machine.

A script starts its background jobs with SIGINT and SIGQUIT ignored, nohup ignores SIGHUP, and a login sets
variables and a umask. Every program that a test starts inherits them, so this module undoes them. A test
about such an inheritance sets it itself.
"""

import os
import signal
from types import FrameType

from supervisor import __version__

UMASK = 0o022
# Variables that the supervisor, Consul, Python, systemd, make or a shell would use.
FOREIGN = (
    "CONSUL_", "PYTHON", "XDG_", "LC_", "LANG", "MAKE", "MFLAGS", "LISTEN_", "NOTIFY_", "WATCHDOG_",
    "JOURNAL_STREAM", "INVOCATION_ID", "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY",
    "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "TZ", "ENV", "BASH_ENV", "CDPATH",
    "POSIXLY_CORRECT", "GREP_", "CURL_HOME", "SHELLOPTS", "BASHOPTS", "PIPX_",
)  # fmt: skip
WANTED = ("PYTHON", "TERMINFO")  # the interpreter for make, and the descriptions of terminals
OWN = {"LANG": "C.UTF-8", "TERM": "dumb"}
# What a test builds of this tree has the version of what it runs, whatever has been committed since.
BUILT = {"SETUPTOOLS_SCM_PRETEND_VERSION": __version__}
LOOPBACK = "localhost,127.0.0.1,::1"  # every peer of a test; a proxy is for package indexes


def make_our_own() -> None:
    """Give this process and its children equal signals, umask and variables in every run."""
    catch_what_is_ignored()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(UMASK)
    for name in tuple(os.environ):
        if name.startswith(FOREIGN) and name not in WANTED:
            del os.environ[name]
    os.environ.update(OWN | BUILT, no_proxy=LOOPBACK, NO_PROXY=LOOPBACK)


def catch_what_is_ignored() -> None:
    """Undo ignored signals, so that this process survives them and its children get them.

    An exec passes on an ignored signal and resets a caught one. Python itself ignores SIGPIPE and SIGXFSZ,
    and ``subprocess`` resets them. An ignored SIGCHLD would hide how children end.
    """
    ours = {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU}
    for number in signal.valid_signals() - ours:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else _nothing)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing, as the parent of this process wanted for this signal."""
