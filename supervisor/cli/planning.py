"""``plan``: the session block that meets an operator's wishes, the inverse of ``check``."""

import argparse

from supervisor.cli.exit_codes import DONE, NEGATIVE
from supervisor.cli.terminal import fail, progress


def plan(options: argparse.Namespace) -> int:
    """Print the session block with its sums, or the nearest wish that is possible for each."""
    from supervisor.check import plan

    wishes = plan.Wishes(options.failover_s, options.on_lose_s, options.silence_s, options.node_checks)
    found = plan.plan(wishes)
    if isinstance(found, plan.Contradiction):
        why, _, costs = plan.contradiction_text(found).partition("\n")
        fail(NEGATIVE, why)
        progress(costs)
        return NEGATIVE
    print(plan.as_text(found), end="")
    return DONE
