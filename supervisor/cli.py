"""Commands, options and exit codes: the only module that prints.

It dispatches and does no work itself; what a command needs is imported when it runs, so that
``--help`` stays quick. Whoever is at fault gets one line on standard error and a code: the
operator 2 or 78, the peer 69, we ourselves 70 (with the trace that a report of the bug needs).
"""

import argparse
import errno
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from supervisor import signals
from supervisor.arguments import DEFAULT_CONFIG, parser
from supervisor.exit_codes import BUG, CONFIGURATION, DONE, INTERRUPTED, NEGATIVE, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from supervisor.config import Config
    from supervisor.findings import Finding

T = TypeVar("T")

_WHERE = "if it runs, --socket or --config says where it listens"
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # of standard output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    _stand_in_for_closed()
    options = parser().parse_args(arguments)
    try:
        code = _COMMANDS[options.command](options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has had enough
        return DONE
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug()
        return _fail(NEGATIVE, f"cannot write the answer: {error.strerror}")
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the one place that turns a bug of ours into its exit code
        return _bug()


def _bug() -> int:
    import traceback

    traceback.print_exc()
    return _fail(BUG, "cannot go on: a bug in consul-supervisor; please report the lines above")


def _stand_in_for_closed() -> None:
    """Closed standard descriptors would be given to the next sockets, and lines written into them."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w")
    sys.stderr = sys.stderr or open(os.devnull, "w")


def _awaited(work: Coroutine[object, object, T]) -> T:
    """Its result; the loop is imported by those alone who need one."""
    import asyncio

    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _fail(code: int, text: str) -> int:
    print(f"consul-supervisor: {text}", file=sys.stderr)
    return code


# --- commands ------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    from supervisor.config import ConfigError
    from supervisor.control import ControlError
    from supervisor.journal import JournalBusy, JournalError
    from supervisor.token import TokenError

    read = partial(_load, options.path, in_use=True)
    try:
        return _daemon(read(), read, options.path)
    except ConfigError as error:
        _refuse(error)
    except (TokenError, ControlError) as error:
        _fail(CONFIGURATION, str(error))
    except JournalBusy as error:
        return _fail(NEGATIVE, str(error))  # systemd tries again: it may be about to end
    except JournalError as error:
        return _fail(CONFIGURATION, str(error))
    _wind_up(options.path)
    return CONFIGURATION


def _load(path: Path, *, in_use: bool) -> "Config":
    """With what others on this machine may do among its warnings. Raises ConfigError."""
    from dataclasses import replace

    from supervisor.config import load
    from supervisor.precautions import precautions

    config = load(path, os.environ, socket.gethostname())
    return replace(config, warnings=(*config.warnings, *precautions(path, config, in_use=in_use)))


def _wind_up(path: Path) -> None:
    """A file that cannot be loaded orphans nothing: what is on record is wound up before the end."""
    from supervisor.config import state_dirs_of

    for directory in state_dirs_of(path, os.environ):
        try:
            _wind_up_records(directory)
        except OSError as error:
            _fail(CONFIGURATION, f"cannot use state_dir {directory}: {error.strerror}")


def _wind_up_records(directory: str) -> None:
    from dataclasses import replace

    from supervisor.journal import JournalError
    from supervisor.records import config_of_records
    from supervisor.token import TokenError

    try:
        config = config_of_records(directory, os.environ)
        if config is None:
            return
        print("winding up what an earlier run holds, by its records", file=sys.stderr)
        try:
            _daemon(config, None)
        except TokenError:  # then Consul refuses the release, but on_lose has run
            config = replace(config, consul=replace(config.consul, token_file=None))
            _daemon(config, None)
    except JournalError as error:
        _fail(CONFIGURATION, str(error))


def _daemon(config: "Config", load: "Callable[[], Config] | None" = None, path: Path | None = None) -> int:
    from supervisor.daemon import Daemon, boottime
    from supervisor.log import STANDARD_ERROR, Log, reaches_journal

    journal = reaches_journal(STANDARD_ERROR, os.environ)
    log = Log(config.log.level, config.log.format, boottime, journal=journal)
    for warning in config.warnings:
        log.line("warning", "configuration", why=str(warning))

    async def daemon() -> int:
        running = Daemon(config, socket.gethostname(), os.environ, log, load=load, path=path)
        try:
            return await running.run()
        finally:
            # What follows may be other records to wind up: a stop waits until it is heard again.
            signals.hold()

    return _awaited(daemon())


def _check(options: argparse.Namespace) -> int:
    from supervisor.check import refused_json
    from supervisor.config import ConfigError

    if options.name is not None and options.folder is None:
        return _fail(USAGE, "cannot use --as alone: it names a drop-in in the folder of --with")
    try:
        return _checked(options)
    except ConfigError as error:
        if not options.json:
            return _refuse(error)
        print(refused_json(error.problems))
        return CONFIGURATION


def _checked(options: argparse.Namespace) -> int:
    """Raises ConfigError."""
    from dataclasses import replace

    from supervisor.check import Checked, as_json, as_text
    from supervisor.config import load_drop_in

    hostname = socket.gethostname()
    if options.folder is None:
        checked = Checked(_load(options.path, in_use=False))
    else:
        placed = load_drop_in(options.path, options.folder, options.name, os.environ, hostname)
        checked = Checked(placed.config, placed.replaces, placed.standing)
    code = DONE
    if options.connect:
        found, code = _connected(checked.config)
        checked = replace(checked, found=found)
    print(as_json(checked) if options.json else as_text(checked))
    return code


def _connected(config: "Config | None") -> tuple[list["Finding"], int]:
    """What ``--connect`` finds, and the exit code."""
    from supervisor.connect import examine, is_reached
    from supervisor.findings import Finding, Level
    from supervisor.token import TokenError

    if config is None:
        text = "Consul was not asked: the folder cannot be used, see the warnings"
        return [Finding("reachable", Level.UNTOLD, text)], DONE
    try:
        found = _awaited(examine(config, socket.gethostname()))
    except TokenError as error:
        found = [Finding("token", Level.ERROR, str(error))]
    if not is_reached(found):
        return found, UNREACHABLE
    return found, CONFIGURATION if any(one.level is Level.ERROR for one in found) else DONE


def _answered(question: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """The exit code of a question to Consul, also when it cannot be asked or is not answered."""
    from supervisor.config import ConfigError
    from supervisor.lookup import LookupFailed
    from supervisor.token import TokenError

    try:
        return question(options)
    except ConfigError as error:
        return _refuse(error)
    except TokenError as error:
        return _fail(CONFIGURATION, str(error))
    except LookupFailed as error:
        return _fail(UNREACHABLE, str(error))


def _leader(options: argparse.Namespace) -> int:
    from supervisor.config import consul_settings, load
    from supervisor.lookup import key_now

    if options.key is not None:
        settings, key = consul_settings(os.environ), options.key
    else:
        config = load(options.config, os.environ, socket.gethostname())
        settings = config.consul
        items = {item.name: item for item in config.items}
        if options.name not in items:
            elections = (name for name, item in items.items() if item.kind == "election")
            known = ", ".join(sorted(elections)) or "none"
            return _fail(USAGE, f"cannot find election {options.name} in {options.config}: it has {known}")
        key = items[options.name].key
        if items[options.name].kind != "election":
            why = f"a semaphore has holders, not one; consul kv get {key} names them"
            return _fail(USAGE, f"cannot name a leader of {options.name}: {why}")
    value = _awaited(key_now(settings, key)).leader
    if value is None:
        return _fail(NEGATIVE, f"no leader: nobody holds {key}")
    sys.stdout.buffer.write(value + b"\n")
    return DONE


def _verify(options: argparse.Namespace) -> int:
    from supervisor.config import consul_settings
    from supervisor.core.settings import LOCK_SUFFIX
    from supervisor.lookup import key_now, slots_now, why_no_slot, why_not_held

    settings = consul_settings(os.environ)
    if options.key.endswith(LOCK_SUFFIX):
        prefix = options.key.removesuffix(LOCK_SUFFIX)
        slots = _awaited(slots_now(settings, prefix))
        if slots.lock is not None and not slots.lock.is_lock:
            asked = why_no_slot(settings, prefix, slots, options.session, options.lock_index)
            return _no_longer(options.key, _awaited(asked))
    view = _awaited(key_now(settings, options.key))
    return _no_longer(options.key, why_not_held(view, options.session, options.lock_index))


def _no_longer(key: str, why_not: str) -> int:
    return _fail(NEGATIVE, f"no longer the holder of {key}: {why_not}") if why_not else DONE


def _limit(options: argparse.Namespace) -> int:
    from supervisor.config import load
    from supervisor.core.settings import SemaphoreSettings
    from supervisor.lookup import CannotChange, set_limit

    config = load(options.config, os.environ, socket.gethostname())
    found = {item.name: item for item in config.items if isinstance(item, SemaphoreSettings)}
    if options.name not in found:
        known = ", ".join(sorted(found)) or "none"
        return _fail(USAGE, f"cannot find semaphore {options.name} in {options.config}: it has {known}")
    try:
        _awaited(set_limit(config.consul, found[options.name].prefix, options.limit))
    except CannotChange as error:
        return _fail(NEGATIVE, str(error))
    return DONE


def _demo(options: argparse.Namespace) -> int:
    from supervisor.demo import DemoFailed, demo

    try:
        _awaited(demo(_say, colours=sys.stdout.isatty(), environ=os.environ))
    except DemoFailed as failed:
        return _fail(NEGATIVE, f"cannot finish the demo: {failed}")
    return DONE


def _dev_agent(options: argparse.Namespace) -> int:
    from supervisor.devagent.agent import run
    from supervisor.devagent.api import Settings

    settings = Settings(session_ttl_min_s=options.session_ttl_min)
    try:
        _awaited(run("127.0.0.1", options.port, settings, _say))
    except OSError as error:
        return _fail(NEGATIVE, f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}")
    return DONE


def _say(line: str) -> None:
    print(line, flush=True)


def _schema(options: argparse.Namespace) -> int:
    from supervisor.config import schema_text

    print(schema_text(), end="")
    return DONE


def _command_daemon(options: argparse.Namespace) -> int:
    """Those that the running daemon carries out."""
    from supervisor.config import ConfigError
    from supervisor.control import Command, Outcome, Verb
    from supervisor.control.client import DaemonUnreachable, ask
    from supervisor.control.commands import REST_S

    name, rest_s = getattr(options, "name", None), getattr(options, "rest_s", REST_S)
    try:
        reply = _awaited(ask(_socket_path(options), Command(Verb(options.command), name, rest_s)))
    except ConfigError as error:
        return _refuse(error)
    except DaemonUnreachable as error:
        return _fail(UNREACHABLE, f"{error}; {_WHERE}")
    for line in reply.lines:
        print(line, file=sys.stdout if reply.outcome is Outcome.DONE else sys.stderr)
    if reply.outcome is Outcome.DONE:
        return DONE
    codes = {Outcome.UNKNOWN: USAGE, Outcome.FAULTY: CONFIGURATION}
    return _fail(codes.get(reply.outcome, NEGATIVE), reply.error)


def _told(question: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """The exit code of a question to the daemon, also when it cannot be asked."""
    from supervisor.config import ConfigError
    from supervisor.control.fetch import DaemonUnreachable

    try:
        return question(options)
    except ConfigError as error:
        return _refuse(error)
    except DaemonUnreachable as error:
        return _fail(UNREACHABLE, f"{error}; {_WHERE}")


def _status(options: argparse.Namespace) -> int:
    from supervisor.control import fetch
    from supervisor.table import lines, of_item

    path = _socket_path(options)
    if options.watch:
        return _watch(options, path)
    body, status = fetch.status(path)
    shown = status if options.name is None else of_item(status, options.name)
    if options.name is not None and not shown["items"]:
        return _no_such_item(options.name, status)
    if options.json:
        sys.stdout.buffer.write(body if shown is status else _as_json(shown))
        return DONE
    print("\n".join(lines(shown, _columns(), colours=_has_colours())))
    return DONE


def _as_json(status: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps(status).encode() + b"\n"


def _watch(options: argparse.Namespace, path: str) -> int:
    from supervisor.follow import Follower
    from supervisor.watch import watch

    if not sys.stdout.isatty():
        return _fail(USAGE, "cannot watch: standard output is no terminal; --json is for programs")
    follower = Follower(path, options.name, colours=_has_colours())
    watch(follower.lines, partial(print, end="", flush=True), sys.stdout.fileno())
    return DONE


def _holds(options: argparse.Namespace) -> int:
    """Silent but for what an operator must mend: cron sends a mail for each line."""
    from supervisor.control import fetch

    path = _socket_path(options)
    held = fetch.holds(path, options.name)
    if held is None:
        return _no_such_item(options.name, fetch.status(path)[1])
    return DONE if held else NEGATIVE


def _no_such_item(name: str, status: Mapping[str, Any]) -> int:
    known = ", ".join(sorted(item["name"] for item in status["items"])) or "none"
    return _fail(USAGE, f"cannot find {name}: no such election or semaphore, there are {known}")


def _columns() -> int | None:
    """Of the terminal; None where there is none, so that what reads the lines gets them whole."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _socket_path(options: argparse.Namespace) -> str:
    """Where the daemon is. Raises ConfigError."""
    from supervisor.config import control_settings

    if options.socket is not None:
        return str(options.socket)
    unread = options.config is None and not os.access(DEFAULT_CONFIG, os.R_OK)  # absent, or of root alone
    return control_settings(None if unread else options.config or DEFAULT_CONFIG, os.environ).path


def _refuse(error: Exception) -> int:
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a file's name may be any bytes
    print(error, file=sys.stderr)
    return CONFIGURATION


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "check": _check,
    "leader": partial(_answered, _leader),
    "recover": _command_daemon,
    "pause": _command_daemon,
    "resume": _command_daemon,
    "step-down": _command_daemon,
    "reload": _command_daemon,
    "status": partial(_told, _status),
    "holds": partial(_told, _holds),
    "verify": partial(_answered, _verify),
    "limit": partial(_answered, _limit),
    "schema": _schema,
    "demo": _demo,
    "dev-agent": _dev_agent,
}

if __name__ == "__main__":
    sys.exit(main())
