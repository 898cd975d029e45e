"""``drill``: a rehearsal of a configuration on this machine."""

import argparse
import os

from supervisor.commands.cli.consul_commands import item_of
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE
from supervisor.commands.cli.terminal import progress, run_async, say
from supervisor.config import load
from supervisor.rehearsal.drill import NODES


def drill(options: argparse.Namespace) -> int:
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
