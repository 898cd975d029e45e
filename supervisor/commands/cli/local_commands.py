"""Commands that need neither Consul nor the daemon: demo, dev-agent, schema, help, version."""

import argparse
import os
import sys

from supervisor import __version__
from supervisor.commands.cli.arguments import parser
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE
from supervisor.commands.cli.terminal import fail, run_async, say


def demo(options: argparse.Namespace) -> int:
    from supervisor.rehearsal.drill.demo import play

    run_async(play(say, colours=sys.stdout.isatty(), environ=os.environ))
    return DONE


def dev_agent(options: argparse.Namespace) -> int:
    from supervisor.rehearsal.devagent.agent import run
    from supervisor.rehearsal.devagent.api import Settings

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
