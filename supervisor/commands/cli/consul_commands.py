"""Commands that send requests to Consul about one election or semaphore: leader, verify, limit."""

import argparse
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.table.spec import DEFAULT_CONFIG
from supervisor.commands.cli.terminal import UnknownItem, fail, run_async
from supervisor.config import ConfigError, load
from supervisor.config.consul import from_environment
from supervisor.config.places import usual_socket
from supervisor.config.problems import known_names
from supervisor.errors import OperatorError

if TYPE_CHECKING:
    from supervisor.config import Config, ConsulSettings, FleetSettings
    from supervisor.core.settings import ItemSettings

ITEM = "election or semaphore"
OWN_TOKEN = ("CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN_FILE")  # variables of whoever runs a command


def leader(options: argparse.Namespace) -> int:
    from supervisor.adapters.consul.query import key_now

    settings, key, kind = _key_of(options, "election")
    if kind == "semaphore":
        why = f"a semaphore has holders, not one; `members {options.name}` lists them"
        return fail(USAGE, f"cannot name a leader of {options.name}: {why}")
    if options.json:
        from supervisor.adapters.consul.members import leader_now
        from supervisor.commands.cli.display.members import leader_json

        view, member = run_async(leader_now(settings, key))
        if member is not None:
            print(leader_json(key, view, member))
            return DONE
    elif (value := run_async(key_now(settings, key)).leader) is not None:
        sys.stdout.buffer.write(value + b"\n")
        return DONE
    return fail(NEGATIVE, f"no leader: nobody holds {key}")


def verify(options: argparse.Namespace) -> int:
    from supervisor.adapters.consul.query import why_not_held

    settings, key, _ = _key_of(options, ITEM)
    why_not = run_async(why_not_held(settings, key, options.session, options.lock_index))
    return fail(NEGATIVE, f"no longer the holder of {key}: {why_not}") if why_not else DONE


def limit(options: argparse.Namespace) -> int:
    from supervisor.adapters.consul.query import set_limit
    from supervisor.core.settings import SemaphoreSettings

    config, item = load_item(options.config, options.name, "semaphore")
    if not isinstance(item, SemaphoreSettings):
        raise unknown_item("semaphore", config, options.config, options.name)
    former = run_async(set_limit(config.consul, item.prefix, options.limit))
    if not options.quiet:
        was = "as before" if former == options.limit else f"before {former or 'none'}"
        print(f"{item.name}: the limit in Consul is {options.limit}, {was}")
    return DONE


def load_for(asked: str, path: Path | None) -> "Config":
    """Load the configuration at ``path`` for a request to Consul about ``asked``, as ``load`` does.

    Where it cannot be used, return the last accepted one, as the daemon goes on by it, and print a warning.
    Its token is the daemon's: that of whoever asks takes its place.
    """
    path = path or DEFAULT_CONFIG
    try:
        config = load(path, os.environ, socket.gethostname(), asked=asked)
    except ConfigError as error:
        from supervisor.config.loader import state_dirs_of
        from supervisor.daemon import accepted

        runtime = os.path.dirname(usual_socket(os.environ))
        former = accepted.find(state_dirs_of(path, os.environ), runtime, path)
        if former is None:
            raise
        instead = (
            f"so this command uses the configuration of {former.time}, which the daemon has accepted last"
        )
        fail(DONE, f"warning: {error.in_short}; {instead}")
        config = former.config
    own = from_environment(os.environ) if any(map(os.environ.get, OWN_TOKEN)) else config.consul
    return replace(config, consul=replace(config.consul, token=own.token, token_file=own.token_file))


def load_item(path: Path | None, name: str, kind: str = ITEM) -> "tuple[Config, ItemSettings]":
    """Return the configuration, and its item of this name. Raises ConfigError, and UnknownItem."""
    config = load_for(name, path)
    return config, item_of(config, path, name, kind)


def fleet_of(config: "Config", path: Path | None, deed: str, lacks: str) -> "FleetSettings":
    """Return the fleet of the configuration at ``path``. Raises OperatorError, with what it lacks."""
    if config.fleet is None:
        why = f"{path or DEFAULT_CONFIG} has no section fleet, so {lacks}"
        raise OperatorError(f"cannot {deed}: {why}; add `fleet: {{}}` to it on all nodes, and reload them")
    return config.fleet


def item_of(config: "Config", path: Path | None, name: str, kind: str = ITEM) -> "ItemSettings":
    """Return the item of this name of the configuration at ``path``. Raises UnknownItem."""
    for item in config.items:
        if item.name == name:
            return item
    raise unknown_item(kind, config, path, name)


def unknown_item(kind: str, config: "Config", path: Path | None, name: str) -> UnknownItem:
    """Return the error that the configuration has no item of this kind, or of several kinds, and name."""
    known = known_names(name, sorted(item.name for item in config.items if item.kind in kind))
    return UnknownItem(f"cannot find {kind} {name} in {path or DEFAULT_CONFIG}: it has {known}")


def _key_of(options: argparse.Namespace, kind: str) -> "tuple[ConsulSettings, str, str]":
    """Return how to reach Consul, the key in question, and the kind of its item. Blank: only a key is given.

    A key alone is asked about by --config, else by the environment alone. Raises ConfigError or UnknownItem.
    """
    if options.key is None:
        config, item = load_item(options.config, options.name, kind)
        return config.consul, item.key, item.kind
    if options.config is None:
        return from_environment(os.environ), options.key, ""
    config = load_for("", options.config)  # about no item
    return config.consul, options.key, ""
