"""The child of both tools: ``stamper.py FILE NODE`` writes "I am alive" every 50 ms until TERM.

A stamp is a line "NODE PID SECONDS" of CLOCK_BOOTTIME, one write to a file opened for appending. A tool that
is killed leaves its child behind. So the child ends also when its file is renamed, and after a limited time
in any case. It is run as a program, by a Python without its site packages.
"""

import os
import sys
import time

EVERY_S = 0.05
LONGEST_S = 600.0


def main(path: str, node: str) -> None:
    """Write stamps until a reason to end."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    began = now = time.clock_gettime(time.CLOCK_BOOTTIME)
    while os.path.exists(path) and now - began < LONGEST_S:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        os.write(file, f"{node} {os.getpid()} {now:.3f}\n".encode())
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
