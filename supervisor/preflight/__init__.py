"""Can the hooks start on this machine? It is found out before anybody relies on them.

    questions.py  what the hooks of a configuration need: programs, users, folders, files
    looker.py     the program that looks: a process of its own, for a file system may hang
    looks.py      one look: at a program, as its user, or at a file
    inquiry.py    one question to that program from the daemon's loop
    places.py     for ``check``: what cannot start, with its place in the file
    lookout.py    for the daemon: looks at the start, after a reload, and from time to time

Nothing named by a configuration is looked at in the process that asks.
"""

import os
import sys

LOOK_S = 5.0  # what has not answered by then is a fault; a file system that answers takes milliseconds
ENDS_S = 1.0  # for a process to begin and end beside that, on a busy machine
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_BEGIN = "import sys; sys.path.append(sys.argv[1]); from supervisor.preflight.looker import main; main()"


def command(*, alone: bool) -> list[str]:
    """How the program that looks is started. ``alone``: with the standard library and nothing else."""
    return [sys.executable, "-I", "-B", *(["-S"] if alone else []), "-c", _BEGIN, _HOME]
