"""``plan``: the session block that meets an operator's wishes, the inverse of ``check``."""

import argparse

from supervisor.check.plan import Wishes, as_text, costs_text
from supervisor.check.plan import plan as plan_for
from supervisor.cli.exit_codes import DONE, NEGATIVE
from supervisor.cli.terminal import fail, progress


def plan(options: argparse.Namespace) -> int:
    """Print the session block with its sums, or the nearest wish that is possible for each."""
    found = plan_for(Wishes(options.failover_s, options.on_lose_s, options.silence_s, options.node_checks))
    if isinstance(found, tuple):
        fail(NEGATIVE, "cannot plan a session: none meets all these wishes; change one of them:")
        progress(costs_text(found))
        return NEGATIVE
    print(as_text(found), end="")
    return DONE
