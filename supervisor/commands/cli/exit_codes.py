"""Exit codes, from which scripts, systemd and cron learn how a command ended.

The numbers from 64 to 78 are those of ``sysexits.h``.
"""

DONE = 0
NEGATIVE = 1
USAGE = 2
UNREACHABLE = 69  # EX_UNAVAILABLE
BUG = 70  # EX_SOFTWARE
CONFIGURATION = 78  # EX_CONFIG; systemd's unit does not restart after it
NOT_EXECUTABLE = 126  # as in a shell, like the next two
NOT_FOUND = 127
INTERRUPTED = 130  # 128 and the number of SIGINT

OF_ALL = {
    USAGE: "wrong usage, or a name that does not exist",
    BUG: "a bug of ours: please report what is printed",
    INTERRUPTED: "Ctrl-C",
}
