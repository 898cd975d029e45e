"""The file, read again while the daemon runs: checked whole before anything changes.

Says what of it the running process cannot follow: what it was started with, and shares with whoever
finds it by that. It changes nothing itself, and must never let a part of a file through.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from supervisor.config import Config, ConfigError

STATE_DIR = "state_dir"
KILLED = "Restart it: killed with SIGKILL, it keeps what it holds (systemctl kill -s KILL)"
STOPPED = (
    "Restart it in order (systemctl restart), which gives up what it holds: a killed one would not be known "
    "in the new state_dir"
)


class CannotReload(Exception):
    """Everything stays as it is. ``faulty``: that is the configuration's fault; ``lines``: all of them."""

    def __init__(self, text: str, lines: tuple[str, ...] = (), *, faulty: bool = True) -> None:
        super().__init__(text)
        self.lines = lines
        self.faulty = faulty


def read_again(load: Callable[[], Config], running: Config) -> Config:
    """The configuration as it is now. Raises CannotReload."""
    try:
        config = load()
    except ConfigError as error:
        lines = tuple(str(error).splitlines())
        raise CannotReload("cannot reload: the configuration has faults, nothing changes", lines) from None
    if fixed := tuple(_fixed(running, config)):
        remedy = STOPPED if STATE_DIR in fixed else KILLED
        why = f"{', '.join(fixed)} changed, which the running process cannot follow"
        raise CannotReload(f"cannot reload: {why}; nothing changes. {remedy}")
    return config


def _fixed(running: Config, config: Config) -> Iterator[str]:
    """How Consul is reached is part of what is on record; the others are where this process is found."""
    tokenless = (replace(each.consul, token=None, token_file=None) for each in (running, config))
    before, after = tokenless
    for name in ("address", "datacenter", "namespace", "partition", "tls"):
        if getattr(before, name) != getattr(after, name):
            yield f"consul.{name}"
    if running.state_dir != config.state_dir:
        yield STATE_DIR
    if running.control != config.control:
        yield "control_socket or control_group"
