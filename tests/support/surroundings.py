"""What a test process has inherited from whatever started it, made the same everywhere.

A script starts its background jobs with SIGINT and SIGQUIT ignored, nohup ignores SIGHUP, a login sets
variables and a umask: all of it reaches every program that a test starts. Here is the one place that
undoes it; a test that is about such an inheritance sets it itself.
"""

import os
import signal
from types import FrameType

UMASK = 0o022
# What the supervisor, Consul, Python, systemd, make or a shell would obey.
FOREIGN = (
    "CONSUL_", "PYTHON", "XDG_", "LC_", "LANG", "MAKE", "MFLAGS", "LISTEN_", "NOTIFY_", "WATCHDOG_",
    "JOURNAL_STREAM", "INVOCATION_ID", "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY",
    "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TERM", "TZ", "ENV", "BASH_ENV", "CDPATH",
    "POSIXLY_CORRECT", "GREP_", "CURL_HOME", "SHELLOPTS", "BASHOPTS", "PIPX_",
)  # fmt: skip
WANTED = ("PYTHON", "TERMINFO")  # which interpreter make is to take; where terminals are described
OWN = {"LANG": "C.UTF-8", "TERM": "dumb"}
LOOPBACK = "localhost,127.0.0.1,::1"  # all that tests talk to; a proxy is for package indexes


def make_our_own() -> None:
    """Give this process, and what it starts, the signals, the umask and the variables of every run."""
    catch_what_is_ignored()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(UMASK)
    for name in tuple(os.environ):
        if name.startswith(FOREIGN) and name not in WANTED:
            del os.environ[name]
    os.environ.update(OWN, no_proxy=LOOPBACK, NO_PROXY=LOOPBACK)


def catch_what_is_ignored() -> None:
    """Go on without the signals that we were told to ignore, and let our children hear them.

    An exec passes on an ignored signal and resets a caught one. SIGPIPE and SIGXFSZ are ignored by
    Python itself, and ``subprocess`` resets them; SIGCHLD ignored would hide how children end.
    """
    ours = {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTIN, signal.SIGTTOU}
    for number in signal.valid_signals() - ours:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else _nothing)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Whatever started us wanted this signal to do nothing."""
