"""Commands that need neither Consul nor the daemon: plan, drill, demo, dev-agent, schema, help, version."""

import argparse
import os
import sys

from supervisor import __version__
from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import fail, progress, run_async, say


def plan(options: argparse.Namespace) -> int:
    from supervisor.commands.check.plan import Wishes, as_text
    from supervisor.commands.check.plan import plan as plan_for
    from supervisor.commands.check.relied_on import DEFAULT_GOSSIP, SERF_HEALTH, Gossip

    gossip = Gossip(options.probe_interval_s, options.suspicion_mult)
    usually_s, change_s, checks = options.failover_usually_s, options.leader_change_s, options.checks or ()
    if options.failover_s is None and usually_s is None:
        return fail(
            USAGE, "cannot plan without a wish for the failover: give --failover or --failover-usually"
        )
    if usually_s is not None and SERF_HEALTH not in checks:
        checks = (*checks, SERF_HEALTH)
    if gossip != DEFAULT_GOSSIP and SERF_HEALTH not in checks:
        return fail(USAGE, "cannot use --probe-interval or --suspicion-mult without --checks serfHealth")
    if options.outage_s is not None and options.fence_s is None:
        return fail(USAGE, "cannot use --outage without --fence")
    on_lose_s, silence_s, watchdog_s = options.on_lose_s, options.silence_s, options.watchdog_s
    more = change_s, usually_s, watchdog_s, options.fence_s, options.outage_s, gossip
    wishes = Wishes(options.failover_s, on_lose_s, silence_s, checks, *more)
    if (found := plan_for(wishes)) is None:
        remedy = "allow a longer failover, or ask for less --on-lose, --silence, --fence or --outage"
        return fail(NEGATIVE, f"cannot plan a session: none meets all these wishes; {remedy}")
    print(as_text(found, wishes), end="")
    return DONE


def drill(options: argparse.Namespace) -> int:
    from supervisor.commands.cli.consul_commands import item_of
    from supervisor.config import load
    from supervisor.rehearsal.drill import NODES

    configs = {node: load(options.path, os.environ, node) for node in NODES}
    for name in options.names:
        item_of(configs[NODES[0]], options.path, name)
    from supervisor.rehearsal.drill.rehearsal import plan, rehearse
    from supervisor.rehearsal.drill.report import as_json, begin_lines, end_line, item_lines

    withheld = {name for config in configs.values() for name in config.withheld}
    environ = {name: value for name, value in os.environ.items() if name not in withheld}
    planned = plan(configs, options.names, options.speed, real=options.hooks == "real", each=options.all)
    tell = progress if options.json else say
    for line in begin_lines(options.path, planned):
        tell(line)
    drilled = []
    for item in planned.items:
        drilled.append(run_async(rehearse(planned, item, environ, progress)))
        for line in item_lines(drilled[-1], planned.speed):
            if not options.json:
                say(line)
    print(as_json(options.path, planned, drilled) if options.json else f"\n{end_line(drilled)}")
    return DONE if all(item.kept for item in drilled) else NEGATIVE


def demo(options: argparse.Namespace) -> int:
    from supervisor.rehearsal.drill.demo import play

    run_async(play(say, colours=sys.stdout.isatty(), environ=os.environ))
    return DONE


def dev_agent(options: argparse.Namespace) -> int:
    from supervisor.rehearsal.devagent.agent import run
    from supervisor.rehearsal.devagent.api.call import Settings

    settings = Settings(session_ttl_min_s=options.session_ttl_min_s, client_agent=options.client_agent)
    try:
        run_async(run(options.port, settings, say))
    except OSError as error:
        return fail(NEGATIVE, f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}")
    return DONE


def schema(options: argparse.Namespace) -> int:
    from supervisor.config import schema_text

    print(schema_text(), end="")
    return DONE


def help(options: argparse.Namespace) -> int:
    """Print the help of all commands or of one. An unknown command ends the process."""
    topic = [] if options.topic is None else [options.topic]
    parser().parse_args([*topic, "--help"])  # ends the process, too
    return DONE


def version(options: argparse.Namespace) -> int:
    print(f"consul-supervisor {__version__}")
    return DONE
