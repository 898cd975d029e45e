"""Exit codes, by which scripts, systemd and cron decide what a command's end means.

The numbers from 64 on are those of ``sysexits.h``. ``commands.py`` says what each means at each command.
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
