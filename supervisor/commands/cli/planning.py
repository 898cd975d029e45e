"""``plan``: the session block that meets an operator's wishes, the inverse of ``check``."""

import argparse

from supervisor.commands.check.plan import FAILOVER, USUALLY, Wishes, as_text, cost_text
from supervisor.commands.check.plan import plan as plan_for
from supervisor.commands.check.relied_on import DEFAULT_GOSSIP, SERF_HEALTH, Gossip
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import fail, progress


def plan(options: argparse.Namespace) -> int:
    gossip = Gossip(options.probe_interval_s, options.suspicion_mult)
    usually_s, change_s, checks = options.failover_usually_s, options.leader_change_s, options.node_checks
    if options.failover_s is None and usually_s is None:
        return fail(USAGE, f"cannot plan without a wish for the failover: give {FAILOVER} or {USUALLY}")
    if usually_s is not None and SERF_HEALTH not in checks:
        checks = (*checks, SERF_HEALTH)
    if gossip != DEFAULT_GOSSIP and SERF_HEALTH not in checks:
        return fail(USAGE, "cannot use --probe-interval or --suspicion-mult without --checks serfHealth")
    on_lose_s, silence_s, watchdog_s = options.on_lose_s, options.silence_s, options.watchdog_s
    more = change_s, usually_s, watchdog_s, options.fence_s, gossip
    wishes = Wishes(options.failover_s, on_lose_s, silence_s, checks, *more)
    found = plan_for(wishes)
    if isinstance(found, tuple):
        fail(NEGATIVE, "cannot plan a session: none meets all these wishes; change one of them:")
        progress("\n".join(map(cost_text, found)))
        return NEGATIVE
    print(as_text(found, wishes), end="")
    return DONE
