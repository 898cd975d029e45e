"""Exit codes: what a command's end says to the program that ran it.

They are part of the contract: scripts, systemd and cron decide by them. The numbers from 64 on are
those of ``sysexits.h``. What each command means by them stands in its ``--help`` and in
docs/commands.md, both made from here.
"""

DONE = 0
NEGATIVE = 1
USAGE = 2
UNREACHABLE = 69  # EX_UNAVAILABLE
BUG = 70  # EX_SOFTWARE
CONFIGURATION = 78  # EX_CONFIG; systemd's unit does not restart after it
INTERRUPTED = 130  # as a shell says of SIGINT

OF_ALL = {
    USAGE: "wrong usage",
    BUG: "a bug of ours: please report what is printed",
    INTERRUPTED: "Ctrl-C",
}

_NO_CONSUL = "Consul cannot be reached, or does not tell"
_NO_SETTINGS = "the configuration, a CONSUL_ variable or the token file cannot be used"
_NO_DAEMON = "the daemon cannot be reached: nothing is known"
_NO_PLACE = "the configuration, which tells where the daemon listens, cannot be used"
_NO_ITEM = "wrong usage, or the daemon has no such election or semaphore"

OF_COMMAND = {
    "run": {
        DONE: "stopped in order",
        NEGATIVE: "not in order: on_lose failed, a second signal came, or another process uses state_dir",
        CONFIGURATION: "the configuration, token file, state_dir or control socket cannot be used",
    },
    "check": {
        DONE: "it is right; there may be warnings",
        CONFIGURATION: "it is wrong; with --here: what it names cannot start or be read here; with "
        "--connect: Consul's answers show a fault, such as a missing right",
        UNREACHABLE: "with --connect: Consul cannot be reached or has no leader",
    },
    "leader": {
        DONE: "the value is printed",
        NEGATIVE: "nobody holds the key",
        USAGE: "wrong usage, or the configuration has no such election",
        UNREACHABLE: _NO_CONSUL,
        CONFIGURATION: _NO_SETTINGS,
    },
    "verify": {
        DONE: "the session is still the holder's",
        NEGATIVE: "it is not",
        UNREACHABLE: "cannot tell: " + _NO_CONSUL,
        CONFIGURATION: "a CONSUL_ variable or the token file cannot be used",
    },
    "limit": {
        DONE: "the record in Consul says so",
        NEGATIVE: "there is no record that could be changed",
        USAGE: "wrong usage, or the configuration has no such semaphore",
        UNREACHABLE: _NO_CONSUL,
        CONFIGURATION: _NO_SETTINGS,
    },
    "status": {
        DONE: "the daemon told, whatever it told; or --watch was ended",
        USAGE: _NO_ITEM,
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: _NO_PLACE,
    },
    "holds": {
        DONE: "this node holds it now: on_acquire has finished, the lease is valid",
        NEGATIVE: "it does not",
        USAGE: _NO_ITEM,
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: _NO_PLACE,
    },
    "recover": {
        DONE: "it lets go, and contends again",
        NEGATIVE: "it is not stuck",
        USAGE: _NO_ITEM,
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: _NO_PLACE,
    },
    "pause": {
        DONE: "it does not contend until resume",
        NEGATIVE: "it only observes or has ended, or this cannot be recorded",
        USAGE: _NO_ITEM,
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: _NO_PLACE,
    },
    "resume": {
        DONE: "neither a pause nor a rest keeps it from contending",
        NEGATIVE: "it only observes or has ended, or this cannot be recorded",
        USAGE: _NO_ITEM,
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: _NO_PLACE,
    },
    "step-down": {
        DONE: "it let go, and another holds",
        NEGATIVE: "nobody took over in time, or it does not hold, or cannot now",
        USAGE: _NO_ITEM,
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: _NO_PLACE,
    },
    "reload": {
        DONE: "the daemon follows the configuration as it is now",
        UNREACHABLE: _NO_DAEMON,
        CONFIGURATION: "nothing has changed: the configuration has faults, or needs a restart; or "
        + _NO_PLACE,
    },
    "demo": {DONE: "all was shown", NEGATIVE: "it could not be shown"},
    "dev-agent": {DONE: "stopped by a signal", NEGATIVE: "it cannot listen there"},
    "schema": {DONE: "it is printed"},
}


def codes_of(command: str) -> dict[int, str]:
    """All that this command may end with, by code, with what it means."""
    return dict(sorted({**OF_ALL, **OF_COMMAND[command]}.items()))
