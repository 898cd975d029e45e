"""``check`` and ``policy``: whether a configuration is valid, its figures, and the rights that it needs."""

import argparse
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.commands.check.report import (
    as_json,
    as_text,
    faults_text,
    refused_json,
    refused_verdict,
    verdict,
    warnings_text,
)
from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import CONFIGURATION, DONE, UNREACHABLE, USAGE
from supervisor.commands.cli.terminal import fail, report, run_async
from supervisor.config import Config, ConfigError, Problem, environment_file, load
from supervisor.config.formats.durations import parse_duration
from supervisor.config.problems import Positions
from supervisor.daemon.preflight.file_modes import audit

TTL = ".session.ttl"  # ends the path of the warning about a TTL that Consul may refuse
SYSTEMD_S = 2.0  # it answers within milliseconds
TIMES_OF_UNIT = {"Watchdog": "WATCHDOG_USEC", "TimeoutStart": "TIMEOUT_START_USEC"}

if TYPE_CHECKING:
    from supervisor.commands.check.findings import Finding


def check(options: argparse.Namespace) -> int:
    if options.json and options.quiet:
        return fail(USAGE, "cannot use --quiet with --json: the document is whole")
    several = len(options.paths) > 1
    for option, given in (("--connect", options.connect), ("--json", options.json)):
        if several and given:
            return fail(USAGE, f"cannot use {option} with several PATHs: it is about one configuration")
    return max([_check(path, options, several=several) for path in options.paths])


def _check(path: Path, options: argparse.Namespace, *, several: bool) -> int:
    try:
        config = _loaded(path, options.here)
    except ConfigError as error:
        return _refused(path, error, options)
    found, code = None, DONE
    if options.connect:
        found, code = _ask_consul(config)
        config = _without_proven(config, found)
    if options.json:
        print(as_json(config, found))
        return code
    if options.quiet:
        text = faults_text(found)
    else:
        text = warnings_text(config.warnings) if several else f"{as_text(config, found)}\n"
    print(f"{text}{verdict(path, config, found)}", flush=True)
    return code


def _refused(path: Path, error: ConfigError, options: argparse.Namespace) -> int:
    """Print every fault, the warnings that may explain one, and the verdict, and return the exit code.

    A variable is missing if its line in the file of the daemon's variables cannot be used.
    """
    warnings = environment_file.read().warnings
    if options.json:
        print(refused_json(error.problems, warnings))
        return CONFIGURATION
    code = report(error)
    text = "" if options.quiet else warnings_text(warnings)
    print(f"{text}{refused_verdict(path, error.problems, warnings)}", file=sys.stderr)
    return code


def _environ(here: bool) -> Mapping[str, str]:
    """Return the environment, with ``here`` also the times of the unit that systemd runs on this machine."""
    environ = {**os.environ}
    for time, variable in TIMES_OF_UNIT.items() if here else ():
        shown = _of_unit("show", f"--property={time}USec", "--value")
        if shown == "infinity":  # also of a unit that has never started
            shown = "".join(re.findall(rf"(?m)^\s*{time}Sec\s*=\s*(.*?)\s*$", _of_unit("cat"))[-1:])
        span = re.sub(r"\s|(?<=s)ec(onds?)?|(?<=m)in(utes?)?", "", shown)  # as in 1min 30s
        with suppress(ValueError):
            time_s = float(span) if span.isdecimal() else parse_duration(span)
            environ[variable] = f"{1e6 * time_s:.0f}"
        if variable not in environ:  # there is no unit, for which systemd would show its own defaults
            break
    return environ


def _of_unit(*question: str) -> str:
    """Return what systemd says of the daemon's unit. Blank: it says nothing."""
    argv, null = ["systemctl", *question, "consul-supervisor.service"], subprocess.DEVNULL
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        return subprocess.check_output(argv, stdin=null, stderr=null, text=True, timeout=SYSTEMD_S).strip()
    return ""


def _hidden_device(config: Config) -> Iterator[Problem]:
    """Yield the problem that the unit hides the watchdog that the configuration requires, if it does."""
    needed = [item.watchdog.device for item in config.items if item.watchdog and item.watchdog.required]
    if needed and "yes" in _of_unit("show", "--property=PrivateDevices,ProtectClock", "--value"):
        why = (
            f"cannot open {needed[0]}: the unit hides it: install the drop-in watchdog.conf, restart the unit"
        )
        yield Problem(*(config.positions or Positions("")).of_key(("watchdog",)), "watchdog", why)


def _loaded(path: Path, here: bool) -> Config:
    """Load a configuration, with warnings about this machine: hooks that cannot start, file modes.

    here: whether the configuration is meant for this machine. If so, a hook that cannot start is a fault.
    Raises ConfigError.
    """
    config = load(path, _environ(here), socket.gethostname())
    from supervisor.daemon.preflight.problems import unstartable  # which a file with faults does not need

    found = run_async(unstartable(config, os.environ, here=here))
    found += tuple(_hidden_device(config)) if here else ()
    if here and found:
        raise ConfigError(found)
    variables = environment_file.read()
    secret = variables.values.keys() & {*config.withheld, "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH"}
    secret_files = [environment_file.FILE] if secret else []
    careful = audit(path, config, also_secret=secret_files)
    return replace(config, warnings=(*config.warnings, *variables.warnings, *found, *careful))


def _without_proven(config: Config, found: list["Finding"]) -> Config:
    """Return the configuration without the warning about a short TTL, if Consul would make each session."""
    from supervisor.commands.check.rights import MAKES_SESSION

    made = {one.item for one in found if MAKES_SESSION in one.text}
    if any(each.contend and each.name not in made for each in config.items):
        return config
    return replace(config, warnings=tuple(one for one in config.warnings if not one.path.endswith(TTL)))


def _ask_consul(config: Config) -> tuple[list["Finding"], int]:
    from supervisor.adapters.consul.token import TokenError
    from supervisor.commands.check.connection import check_connection
    from supervisor.commands.check.findings import Finding, Level

    try:
        found = run_async(check_connection(config, socket.gethostname()))
    except TokenError as error:
        found = [Finding("token", Level.ERROR, str(error))]
    wrong = {one.what for one in found if one.level is Level.ERROR}
    return found, UNREACHABLE if wrong & {"reachable", "leader"} else CONFIGURATION if wrong else DONE


def policy(options: argparse.Namespace) -> int:
    from supervisor.adapters.consul.endpoints import NODE
    from supervisor.commands.check.policy import agents_node
    from supervisor.commands.check.policy import policy as policy_for

    config = load(options.path, os.environ, socket.gethostname())
    if NODE in (rules := policy_for(config, options.purpose)):
        node, why = (options.node, "") if options.node else run_async(agents_node(config.consul))
        if why:
            return fail(UNREACHABLE, f"cannot name the agent's node, --node names it: {escape(why)}")
        rules = rules.replace(NODE, node)
    print(rules, end="")
    return DONE
