"""The entry point of ``consul-supervisor`` and of ``python -m supervisor``.

A stop signal that comes before the daemon's loop runs must not simply end the process, because an earlier
process may have left a tenure whose on_lose is due. So stop signals are blocked until the loop runs.
"""

import gc
import os
import sys

# The garbage collector hardly runs during the imports. ``lock`` and ``run`` set a lower limit afterwards.
COLLECTED_AT = (100_000, 20, 20)
INTERRUPTED = 130  # as commands/cli/exit_codes.py has it, which may not be imported yet


def main() -> int:
    """Run the command of the command line, and return its exit code."""
    gc.set_threshold(*COLLECTED_AT)
    try:
        if sys.argv[1:2] == ["run"]:
            from supervisor.adapters.runtime import init, notification, signals
            from supervisor.config.notification import may_stand_still_s

            signals.block()
            init.stay_as_init()  # first, so that process 1 stays small
            notification.still_starting(os.environ, may_stand_still_s(os.environ))
        from supervisor.commands.cli import main as command

        return command()
    except KeyboardInterrupt:  # while modules are imported
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
