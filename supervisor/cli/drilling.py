"""``drill``: a rehearsal of a configuration on this machine."""

import argparse
import os
from typing import TYPE_CHECKING

from supervisor.cli.commands import DRILL_HOOKS, DRILL_SPEED
from supervisor.cli.consul_commands import not_found
from supervisor.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.cli.terminal import fail, progress, run_async, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from supervisor.config import Config


def drill(options: argparse.Namespace) -> int:
    """Rehearse the configuration, print promises and measurements, and return the exit code."""
    if why := _wrong_options(options):
        return fail(USAGE, why)
    if options.live is not None:
        from supervisor.cli.live_drilling import drill_live

        return drill_live(options)
    from supervisor.config import load
    from supervisor.drill import NODES

    options.hooks, options.speed = options.hooks or DRILL_HOOKS[0], options.speed or DRILL_SPEED
    configs = {node: load(options.path, os.environ, node) for node in NODES}
    config = configs[NODES[0]]
    names = [item.name for item in config.items]
    if unknown := [name for name in options.names if name not in names]:
        return not_found("election or semaphore", config, options.path, unknown[0])
    return _rehearse(options, configs)


def _wrong_options(options: argparse.Namespace) -> str:
    """Return why these options cannot be used together. Blank: they can."""
    rehearses = {
        "NAME": options.names,
        "--hooks": options.hooks,
        "--speed": options.speed,
        "--all": options.all,
    }
    lives = {
        "--to": options.to,
        "--back-by": options.back_by,
        "--one-way": options.one_way,
        "--timeout": options.timeout_s,
        "--yes": options.yes,
        "--socket": options.socket,
    }
    is_live = options.live is not None
    for option, given in (rehearses if is_live else lives).items():
        if given not in (None, False, []):
            way = "with --live, which hands over for real" if is_live else "without --live"
            return f"cannot use {option} {way}"
    return "" if is_live or options.path is not None else "the configuration PATH is missing"


def _rehearse(options: argparse.Namespace, configs: "Mapping[str, Config]") -> int:
    """Rehearse the items, and print the result of each.

    configs: the configuration as each node loads it.
    """
    from supervisor.drill.rehearsal import plan, rehearse
    from supervisor.drill.report import as_json, begin_lines, end_line, item_lines

    environ = _environ(*configs.values())
    planned = plan(configs, options.names, options.speed, real=options.hooks == "real", each=options.all)
    tell = progress if options.json else say
    for line in begin_lines(options.path, planned):
        tell(line)
    if left := 0 if options.names else len(configs[next(iter(configs))].items) - len(planned.items):
        tell(f"One item of each for_each is drilled, and {left} more with --all.")
    drilled = []
    for item in planned.items:
        drilled.append(run_async(rehearse(planned, item, environ, progress)))
        for line in item_lines(drilled[-1], planned.speed):
            if not options.json:
                say(line)
    print(as_json(options.path, planned, drilled) if options.json else f"\n{end_line(drilled)}")
    return DONE if all(item.kept for item in drilled) else NEGATIVE


def _environ(*configs: "Config") -> dict[str, str]:
    """Return the environment without the secrets of the supervisor."""
    withheld = {name for config in configs for name in config.withheld}
    return {name: value for name, value in os.environ.items() if name not in withheld}
