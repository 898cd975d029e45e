"""The entry point of ``consul-supervisor`` and of ``python -m supervisor``.

A stop signal that comes before the daemon's loop runs must not simply end the process, because an earlier
process may have left a tenure whose on_lose is due. So stop signals are blocked until the loop runs.
"""

import sys

from supervisor.daemon import signals


def main() -> int:
    """Run the command of the command line, and return its exit code."""
    if sys.argv[1:2] == ["run"]:
        signals.block()
    from supervisor.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
