"""The table of commands: help, exit codes, arguments, and the function that runs each.

    spec.py    a command as the table describes it, and what several commands have
    local.py   the commands of this machine: run, check, lock, drill, ...
    consul.py  the commands that ask Consul: leader, members, wait, ...
    daemon.py  the commands to the daemon: status, pause, step-down, ...

The function is named as text and imported when its command runs, so that ``--help`` stays quick.
docs/commands.md and each ``--help`` are made from here.
"""

from supervisor.commands.cli.table.consul import CONSUL
from supervisor.commands.cli.table.daemon import DAEMON
from supervisor.commands.cli.table.local import LOCAL, TOOLS

COMMANDS = LOCAL | CONSUL | DAEMON | TOOLS
