"""Where the program begins: ``consul-supervisor``, or ``python -m supervisor``.

A daemon that is told to stop before it can hear must not just end: an earlier one may have left a
leadership behind, whose on_lose is due. Until its loop runs, the signal waits.
"""

import sys

from supervisor.daemon import signals


def main() -> int:
    """Run the command of the command line; the exit code."""
    if sys.argv[1:2] == ["run"]:
        signals.block()
    from supervisor.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
