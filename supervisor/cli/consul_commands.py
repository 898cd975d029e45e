"""Commands that send requests to Consul about one election or semaphore: leader, verify, limit."""

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor.cli.commands import DEFAULT_CONFIG
from supervisor.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.cli.terminal import fail, run_async

if TYPE_CHECKING:
    from supervisor.config import Config, ConsulSettings
    from supervisor.core.settings import ItemSettings


def leader(options: argparse.Namespace) -> int:
    """Print the leader's value, or everything that Consul shows of the key, and return the exit code."""
    from supervisor.consul.query import key_now

    if options.key is not None:
        settings, key = _settings_alone(options), options.key
    else:
        config, item = load_item(options.config, options.name)
        if item is None:
            return not_found("election", config, options.config, options.name)
        settings, key = config.consul, item.key
        if item.kind != "election":
            why = f"a semaphore has holders, not one; `members {options.name}` lists them"
            return fail(USAGE, f"cannot name a leader of {options.name}: {why}")
    if options.json:
        return _leader_json(settings, key)
    value = run_async(key_now(settings, key)).leader
    if value is None:
        return _nobody(key)
    sys.stdout.buffer.write(value + b"\n")
    return DONE


def _nobody(key: str) -> int:
    return fail(NEGATIVE, f"no leader: nobody holds {key}")


def _leader_json(settings: "ConsulSettings", key: str) -> int:
    from supervisor.cli.display.members import leader_json
    from supervisor.consul.members import leader_now

    view, member = run_async(leader_now(settings, key))
    if member is None:
        return _nobody(key)
    print(leader_json(key, view, member))
    return DONE


def verify(options: argparse.Namespace) -> int:
    """Return DONE if the session of a sequencer still holds the key or slot, else print why not."""
    from supervisor.consul.query import key_now, slots_now, why_no_slot, why_not_held
    from supervisor.core.settings import LOCK_SUFFIX

    if options.key is not None:
        settings, key = _settings_alone(options), options.key
    else:
        config, item = load_item(options.config, options.name)
        if item is None:
            return not_found("election or semaphore", config, options.config, options.name)
        settings, key = config.consul, item.key
    if key.endswith(LOCK_SUFFIX):
        prefix = key.removesuffix(LOCK_SUFFIX)
        slots = run_async(slots_now(settings, prefix))
        if slots.lock is not None and not slots.lock.is_lock:
            asked = why_no_slot(settings, prefix, slots, options.session, options.lock_index)
            return _no_longer(key, run_async(asked))
    return _no_longer(
        key, why_not_held(run_async(key_now(settings, key)), options.session, options.lock_index)
    )


def _no_longer(key: str, why_not: str) -> int:
    return fail(NEGATIVE, f"no longer the holder of {key}: {why_not}") if why_not else DONE


def limit(options: argparse.Namespace) -> int:
    """Write the limit into the semaphore's record in Consul, print it, and return the exit code."""
    from supervisor.consul.query import set_limit
    from supervisor.core.settings import SemaphoreSettings

    config, item = load_item(options.config, options.name)
    if not isinstance(item, SemaphoreSettings):
        return not_found("semaphore", config, options.config, options.name)
    former = run_async(set_limit(config.consul, item.prefix, options.limit))
    if not options.quiet:
        was = "as before" if former == options.limit else f"before {former or 'none'}"
        print(f"{item.name}: the limit in Consul is {options.limit}, {was}")
    return DONE


def load_item(path: Path | None, name: str) -> "tuple[Config, ItemSettings | None]":
    """Return the configuration, and its item of this name. None: it has no such item.

    path: where the configuration is. None: at the default.
    Raises ConfigError.
    """
    from supervisor.config import load_for_question

    config = load_for_question(path or DEFAULT_CONFIG, name, os.environ, socket.gethostname())
    return config, next((item for item in config.items if item.name == name), None)


def not_found(kind: str, config: "Config", path: Path | None, name: str) -> int:
    """Print that the configuration has no item of this kind and name, and return the exit code.

    kind: a kind of item, or several.
    path: where the configuration is. None: at the default.
    """
    from supervisor.config.problems import known_names

    known = known_names(name, sorted(item.name for item in config.items if item.kind in kind))
    return fail(USAGE, f"cannot find {kind} {name} in {path or DEFAULT_CONFIG}: it has {known}")


def _settings_alone(options: argparse.Namespace) -> "ConsulSettings":
    """Return how to reach Consul for a question about a key: by --config, else by the environment alone.

    Raises ConfigError.
    """
    from supervisor.config import consul_settings, load_for_question

    if options.config is None:
        return consul_settings(os.environ)
    no_item = ""
    return load_for_question(options.config, no_item, os.environ, socket.gethostname()).consul
