"""Whether the hooks of a configuration can start on this machine, found out before a hook is due.

    questions.py  the programs, users, folders and files that the hooks of a configuration need
    looker.py     the program that looks, in a process of its own because a file system may hang
    looks.py      one look: at a program as its user, or at a file
    inquiry.py    one run of that program, read by the daemon's loop
    places.py     for ``check``: each hook that cannot start, with its place in the file
    lookout.py    for the daemon: looks at the start, after a reload, and from time to time

The daemon itself never looks at a program, user or file that a configuration names.
"""

import os
import sys

LOOK_S = 5.0  # a look without an answer by then is a fault; a file system that answers takes milliseconds
ENDS_S = 1.0  # for the process to begin and to end, on a busy machine
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# First on the path, because a Python may have another package of the name `supervisor`.
_BEGIN = "import sys; sys.path.insert(0, sys.argv[1]); from supervisor.preflight.looker import main; main()"


def command(*, alone: bool) -> list[str]:
    """Return the command line of the program that looks.

    alone: whether only the standard library can be imported besides this package, which starts sooner.
    """
    return [sys.executable, "-I", "-B", *(["-S"] if alone else []), "-c", _BEGIN, _HOME]
