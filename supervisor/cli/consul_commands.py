"""Commands that send requests to Consul, without the daemon: leader, verify, limit."""

import argparse
import os
import socket
import sys
from collections.abc import Iterable

from supervisor.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.cli.terminal import fail, run_async


def leader(options: argparse.Namespace) -> int:
    """Print the value of the current leader, and return the exit code."""
    from supervisor.config import consul_settings, load_for_question
    from supervisor.consul.query import key_now

    if options.key is not None:
        settings, key = consul_settings(os.environ), options.key
    else:
        config = load_for_question(options.config, options.name, os.environ, socket.gethostname())
        settings = config.consul
        items = {item.name: item for item in config.items}
        if options.name not in items:
            elections = (name for name, item in items.items() if item.kind == "election")
            return _not_found("election", elections, options)
        key = items[options.name].key
        if items[options.name].kind != "election":
            why = f"a semaphore has holders, not one; consul kv get {key} names them"
            return fail(USAGE, f"cannot name a leader of {options.name}: {why}")
    value = run_async(key_now(settings, key)).leader
    if value is None:
        return fail(NEGATIVE, f"no leader: nobody holds {key}")
    sys.stdout.buffer.write(value + b"\n")
    return DONE


def verify(options: argparse.Namespace) -> int:
    """Return DONE if the session of a sequencer still holds the key or slot, else print why not."""
    from supervisor.config import consul_settings
    from supervisor.consul.query import key_now, slots_now, why_no_slot, why_not_held
    from supervisor.core.settings import LOCK_SUFFIX

    settings = consul_settings(os.environ)
    if options.key.endswith(LOCK_SUFFIX):
        prefix = options.key.removesuffix(LOCK_SUFFIX)
        slots = run_async(slots_now(settings, prefix))
        if slots.lock is not None and not slots.lock.is_lock:
            asked = why_no_slot(settings, prefix, slots, options.session, options.lock_index)
            return _no_longer(options.key, run_async(asked))
    view = run_async(key_now(settings, options.key))
    return _no_longer(options.key, why_not_held(view, options.session, options.lock_index))


def _no_longer(key: str, why_not: str) -> int:
    return fail(NEGATIVE, f"no longer the holder of {key}: {why_not}") if why_not else DONE


def limit(options: argparse.Namespace) -> int:
    """Write the limit into the semaphore's record in Consul, and return the exit code."""
    from supervisor.config import load_for_question
    from supervisor.consul.query import set_limit
    from supervisor.core.settings import SemaphoreSettings

    config = load_for_question(options.config, options.name, os.environ, socket.gethostname())
    found = {item.name: item for item in config.items if isinstance(item, SemaphoreSettings)}
    if options.name not in found:
        return _not_found("semaphore", found, options)
    run_async(set_limit(config.consul, found[options.name].prefix, options.limit))
    return DONE


def _not_found(kind: str, names: Iterable[str], options: argparse.Namespace) -> int:
    known = ", ".join(sorted(names)) or "none"
    return fail(USAGE, f"cannot find {kind} {options.name} in {options.config}: it has {known}")
