"""Commands, options and exit codes: the only module that prints.

It dispatches and does no work itself; what a command needs is imported when it runs, so that
``--help`` stays quick. Whoever is at fault gets one line on standard error and a code: the
operator 2 or 78, the peer 69, we ourselves 70 (with the trace that a report of the bug needs).
"""

import argparse
import asyncio
import errno
import os
import re
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from supervisor import __version__

if TYPE_CHECKING:
    from supervisor.config import Config

DONE, NEGATIVE, USAGE, UNREACHABLE, BUG, CONFIGURATION, INTERRUPTED = 0, 1, 2, 69, 70, 78, 130
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # of standard output
DEFAULT_CONFIG = Path("/etc/consul-supervisor")

_EXAMPLES = """\
examples:
  consul-supervisor check /etc/consul-supervisor      is the configuration right, and what does it promise?
  consul-supervisor run /etc/consul-supervisor        take part in its elections (what systemd starts)
  consul-supervisor leader namenode                   who leads, asked of Consul
  consul-supervisor demo                              watch a failover, without any Consul
  consul-supervisor schema > config.schema.json       for editors

exit codes: 0 done, 1 negative answer, 2 usage, 69 Consul not reachable, 70 a bug of ours, 78 configuration
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    _stand_in_for_closed()
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has had enough
        return DONE
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug()
        return _fail(NEGATIVE, f"cannot write the answer: {error.strerror}")
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the one place that turns a bug of ours into its exit code
        return _bug()


def _bug() -> int:
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="consul-supervisor",
        description="Takes part in Consul leader elections as a YAML file declares them, "
        "and runs hooks when this node acquires or loses.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"consul-supervisor {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    run = _command(
        commands, "run", _run, "take part in the elections until stopped", "run /etc/consul-supervisor"
    )
    run.add_argument("path", type=Path, metavar="PATH", help="configuration: a file or a directory")
    check = _command(
        commands, "check", _check, "check a configuration and print its figures", "check hdfs.yaml"
    )
    check.add_argument("path", type=Path, metavar="PATH", help="configuration: a file or a directory")
    leader = _command(commands, "leader", _leader, "print the current leader's value", "leader namenode")
    which = leader.add_mutually_exclusive_group(required=True)
    which.add_argument("name", nargs="?", metavar="NAME", help="an election of the configuration")
    which.add_argument("--key", type=_key, metavar="KEY", help="a key in Consul, without any configuration")
    leader.add_argument(
        "--config",
        type=Path,
        default=DEFAULT_CONFIG,
        metavar="PATH",
        help="configuration (default: %(default)s)",
    )
    _command(commands, "demo", _demo, "watch an election and a failover, in half a minute", "demo")
    _dev_agent_parser(commands)
    _command(
        commands,
        "schema",
        _schema,
        "print the JSON Schema of the configuration",
        "schema > config.schema.json",
    )
    return parser


def _dev_agent_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    agent = _command(
        commands,
        "dev-agent",
        _dev_agent,
        "run an in-memory Consul agent, for trying out only",
        "dev-agent --port 8500",
    )
    agent.add_argument(
        "--port", type=_port, default=8500, metavar="N", help="0 for any (default: %(default)s)"
    )
    agent.add_argument(
        "--session-ttl-min",
        type=_duration_s,
        default="1s",
        metavar="DURATION",
        help="the shortest TTL that it allows (default: %(default)s; a real Consul's is 10s)",
    )


def _key(text: str) -> str:
    segments = text.split("/")
    if not re.fullmatch(r"[A-Za-z0-9,_./-]+", text) or "" in segments or {".", ".."} & set(segments):
        raise argparse.ArgumentTypeError("no key: letters, digits and ,_.- in segments between single /")
    return text


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: write 0 to 65535")
    return int(text)


def _duration_s(text: str) -> float:
    from supervisor.config.durations import seconds

    try:
        return seconds(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no duration: write 500ms, 1s or 1m30s") from None


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    command: object,
    summary: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example: consul-supervisor {example}",
        allow_abbrev=False,
    )
    parser.set_defaults(command=command)
    return parser


def _fail(code: int, text: str) -> int:
    print(f"consul-supervisor: {text}", file=sys.stderr)
    return code


# --- commands ------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    from supervisor.config import ConfigError, load
    from supervisor.journal import JournalError
    from supervisor.token import TokenError

    try:
        return _daemon(load(options.path, os.environ, socket.gethostname()))
    except ConfigError as error:
        _refuse(error)
    except TokenError as error:
        _fail(CONFIGURATION, str(error))
    except JournalError as error:
        return _fail(CONFIGURATION, str(error))
    _wind_up(options.path)
    return CONFIGURATION


def _wind_up(path: Path) -> None:
    """A file that cannot be loaded orphans nothing: what is on record is wound up before the end."""
    from dataclasses import replace

    from supervisor.config import state_dir_of
    from supervisor.journal import JournalError
    from supervisor.records import config_of_records
    from supervisor.token import TokenError

    try:
        config = config_of_records(state_dir_of(path, os.environ))
        if config is None:
            return
        print("winding up what an earlier run holds, by its records", file=sys.stderr)
        try:
            _daemon(config, only_wind_up=True)
        except TokenError:  # then Consul refuses the release, but on_lose has run
            config = replace(config, consul=replace(config.consul, token_file=None))
            _daemon(config, only_wind_up=True)
    except JournalError as error:
        _fail(CONFIGURATION, str(error))


def _daemon(config: "Config", *, only_wind_up: bool = False) -> int:
    from supervisor.daemon import Daemon, boottime
    from supervisor.log import Log

    log = Log(config.log.level, config.log.format, boottime)
    for warning in config.warnings:
        log.line("warning", "configuration", why=str(warning))

    async def daemon() -> int:
        running = Daemon(config, socket.gethostname(), os.environ, log, only_wind_up=only_wind_up)
        return await running.run()

    return asyncio.run(daemon())


def _check(options: argparse.Namespace) -> int:
    from supervisor.check import report
    from supervisor.config import ConfigError, load

    try:
        config = load(options.path, os.environ, socket.gethostname())
    except ConfigError as error:
        return _refuse(error)
    print(report(config))
    return DONE


def _leader(options: argparse.Namespace) -> int:
    from supervisor.config import ConfigError, consul_settings, load
    from supervisor.lookup import LookupFailed, leader_of
    from supervisor.token import TokenError

    try:
        if options.key is not None:
            settings, key = consul_settings(os.environ), options.key
        else:
            config = load(options.config, os.environ, socket.gethostname())
            settings = config.consul
            keys = {election.name: election.key for election in config.elections}
            if options.name not in keys:
                known = ", ".join(sorted(keys))
                return _fail(
                    USAGE, f"cannot find election {options.name} in {options.config}: it has {known}"
                )
            key = keys[options.name]
        value = asyncio.run(leader_of(settings, key))
    except ConfigError as error:
        return _refuse(error)
    except TokenError as error:
        return _fail(CONFIGURATION, str(error))
    except LookupFailed as error:
        return _fail(UNREACHABLE, str(error))
    if value is None:
        return _fail(NEGATIVE, f"no leader: nobody holds {key}")
    sys.stdout.buffer.write(value + b"\n")
    return DONE


def _demo(options: argparse.Namespace) -> int:
    from supervisor.demo import DemoFailed, demo

    try:
        asyncio.run(demo(_say, colours=sys.stdout.isatty(), environ=os.environ))
    except DemoFailed as failed:
        return _fail(NEGATIVE, f"cannot finish the demo: {failed}")
    return DONE


def _dev_agent(options: argparse.Namespace) -> int:
    from supervisor.devagent.agent import run
    from supervisor.devagent.api import Settings

    settings = Settings(session_ttl_min_s=options.session_ttl_min)
    try:
        asyncio.run(run("127.0.0.1", options.port, settings, _say))
    except OSError as error:
        return _fail(NEGATIVE, f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}")
    return DONE


def _say(line: str) -> None:
    print(line, flush=True)


def _schema(options: argparse.Namespace) -> int:
    from supervisor.config import schema_text

    print(schema_text(), end="")
    return DONE


def _refuse(error: Exception) -> int:
    sys.stderr.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a file's name may be any bytes
    print(error, file=sys.stderr)
    return CONFIGURATION


if __name__ == "__main__":
    sys.exit(main())
