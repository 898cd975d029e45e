"""What an operator may type: commands, options and their values, as argparse has them.

It must never do anything: what a command does is ``cli``'s. Values are checked here as far as they
can be without asking anybody.
"""

import argparse
import os
import re
from pathlib import Path
from typing import TypeAlias

from supervisor import __version__
from supervisor.cli.exit_codes import codes_of

DEFAULT_CONFIG = Path("/etc/consul-supervisor")

_EXAMPLES = """\
examples:
  consul-supervisor check /etc/consul-supervisor      is the configuration right, and what does it promise?
  consul-supervisor check /etc/consul-supervisor --connect    and does Consul allow it?
  consul-supervisor run /etc/consul-supervisor        take part in all that it declares (what systemd starts)
  consul-supervisor status --watch                    what this node takes part in, and its hooks
  consul-supervisor holds backup && backup            for cron: only where this node holds it
  consul-supervisor leader namenode                   who leads, asked of Consul
  consul-supervisor verify --key K --session ID       is the sequencer that a holder showed still good?
  consul-supervisor pause namenode                    do not contend on this node until resume
  consul-supervisor step-down namenode                hand over to another node, now
  consul-supervisor reload                            follow the configuration as it is now
  consul-supervisor recover namenode                  after a failed on_lose, once nothing acts any more
  consul-supervisor limit rebuild 5                   from now on five may hold a slot
  consul-supervisor demo                              watch a failover, without any Consul
  consul-supervisor schema > config.schema.json       for editors

exit codes: 0 done, 1 negative answer, 2 usage, 69 not reachable, 70 a bug of ours, 78 configuration
"""

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def parser() -> argparse.ArgumentParser:
    """Of the whole command line; ``command`` of what it parses is the command's name."""
    parser = argparse.ArgumentParser(
        prog="consul-supervisor",
        description="Takes part in Consul leader elections and semaphores as a YAML file declares them, "
        "and runs hooks when this node acquires or loses.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"consul-supervisor {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    run = _command(
        commands, "run", "take part in elections and semaphores until stopped", "run /etc/consul-supervisor"
    )
    _add_path(run)
    _add_check(commands)
    _add_leader(commands)
    _add_verify(commands)
    _add_limit(commands)
    _add_status(commands)
    _add_daemon_commands(commands)
    _add_step_down(commands)
    _add_reload(commands)
    _command(commands, "demo", "watch an election, a failover and a semaphore, in some ten seconds", "demo")
    _add_dev_agent(commands)
    _command(commands, "schema", "print the JSON Schema of the configuration", "schema > config.schema.json")
    return parser


def _command(commands: _Commands, name: str, summary: str, example: str) -> argparse.ArgumentParser:
    codes = "".join(f"  {code:<3} {meaning}\n" for code, meaning in codes_of(name).items())
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example: consul-supervisor {example}\n\nexit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_path(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", type=Path, metavar="PATH", help="configuration: a file or a directory")


def _add_check(commands: _Commands) -> None:
    check = _command(
        commands, "check", "check a configuration and print its figures", "check /etc/consul-supervisor"
    )
    check.add_argument(
        "paths",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="configuration: a file or a directory. Several are checked each by itself, without figures and "
        "other options but --here; files that belong together are checked as their directory",
    )
    check.add_argument(
        "--with",
        type=Path,
        metavar="DIR",
        dest="folder",
        help="PATH is a lone drop-in: check it as if it stood in this folder",
    )
    check.add_argument(
        "--as",
        type=_drop_in,
        metavar="NAME",
        dest="name",
        help="with --with: what the drop-in is called there, and so which file it replaces "
        "(default: PATH's own name if it is there, else the file that says most of the same)",
    )
    check.add_argument(
        "--connect",
        action="store_true",
        help="ask Consul, too: reachable, its leader, its agent, the token's rights; changes nothing",
    )
    check.add_argument(
        "--here",
        action="store_true",
        help="the configuration is meant for this machine and the user who runs this: what cannot start here "
        "is an error (a missing program, an unknown user, a secret that cannot be read), else a warning",
    )
    check.add_argument("--json", action="store_true", help="print one JSON document, also for errors")


def _add_leader(commands: _Commands) -> None:
    leader = _command(commands, "leader", "print the current leader's value", "leader namenode")
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


def _add_verify(commands: _Commands) -> None:
    verify = _command(
        commands,
        "verify",
        "ask Consul whether a sequencer is still its holder's",
        "verify --key service/hdfs/leader --session $SESSION --lock-index $LOCK_INDEX",
    )
    verify.add_argument("--key", type=_key, required=True, metavar="KEY", help="the key in Consul")
    verify.add_argument(
        "--session", type=_session, required=True, metavar="ID", help="CONSUL_SUPERVISOR_SESSION of a hook"
    )
    verify.add_argument(
        "--lock-index",
        type=_index,
        metavar="N",
        help="CONSUL_SUPERVISOR_LOCK_INDEX: no, too, when the same session has locked the key anew. "
        "A plain PUT over the key sets it to 0 in Consul; then the session alone decides",
    )


def _add_limit(commands: _Commands) -> None:
    limit = _command(
        commands, "limit", "change how many may hold a semaphore, in Consul's record of it", "limit rebuild 5"
    )
    limit.add_argument("name", type=_name, metavar="NAME", help="a semaphore of the configuration")
    limit.add_argument("limit", type=_slots, metavar="N", help="at most so many; lowering it evicts nobody")
    limit.add_argument(
        "--config",
        type=Path,
        default=DEFAULT_CONFIG,
        metavar="PATH",
        help="configuration (default: %(default)s)",
    )


def _add_status(commands: _Commands) -> None:
    """What the running daemon tells."""
    status = _command(commands, "status", "show what the daemon takes part in", "status --watch")
    status.add_argument("name", nargs="?", type=_name, metavar="NAME", help="one election or semaphore alone")
    how = status.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print the daemon's JSON as it is")
    how.add_argument("--watch", action="store_true", help="on the terminal, each second anew, until Ctrl-C")
    _add_socket(status)
    holds = _command(
        commands,
        "holds",
        "tell by the exit code whether this node holds it now",
        "holds backup && /usr/local/bin/backup",
    )
    holds.add_argument("name", type=_name, metavar="NAME", help="an election or semaphore of the daemon")
    _add_socket(holds)


def _add_daemon_commands(commands: _Commands) -> None:
    """Those that the running daemon carries out."""
    recover = _command(
        commands,
        "recover",
        "end stuck, once nothing acts on this node any more",
        "recover namenode",
    )
    recover.add_argument("name", type=_name, metavar="NAME", help="an election or semaphore that is stuck")
    _add_socket(recover)
    for name, summary in (
        ("pause", "stop contending until resume, over restarts too"),
        ("resume", "contend again, at once: end a pause, and a rest after step-down"),
    ):
        added = _command(commands, name, summary, f"{name} namenode")
        which = added.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "name", nargs="?", type=_name, metavar="NAME", help="an election or semaphore of the daemon"
        )
        which.add_argument("--all", action="store_true", help="all that it has")
        _add_socket(added)


def _add_step_down(commands: _Commands) -> None:
    step_down = _command(
        commands,
        "step-down",
        "hand over: release what this node holds, and return when another holds",
        "step-down namenode --for 5m",
    )
    step_down.add_argument("name", type=_name, metavar="NAME", help="an election or semaphore of the daemon")
    step_down.add_argument(
        "--for",
        type=_rest_s,
        default="60s",
        dest="rest_s",
        metavar="DURATION",
        help="do not contend for so long after that, a day at most (default: %(default)s)",
    )
    _add_socket(step_down)


def _add_reload(commands: _Commands) -> None:
    reload = _command(
        commands, "reload", "follow the configuration as it is now, and say what became of it", "reload"
    )
    _add_socket(reload)


def _add_socket(command: argparse.ArgumentParser) -> None:
    command.add_argument("--socket", type=_socket, metavar="PATH", help="the daemon's control socket")
    command.add_argument(
        "--config",
        type=Path,
        metavar="PATH",
        help=f"without --socket: the configuration whose control_socket it is (default: {DEFAULT_CONFIG}, "
        "if it can be read)",
    )


def _add_dev_agent(commands: _Commands) -> None:
    agent = _command(
        commands, "dev-agent", "run an in-memory Consul agent, for trying out only", "dev-agent --port 8500"
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
    agent.add_argument(
        "--client-agent",
        action="store_true",
        help="answer as a client agent does, which most machines run: an error of its servers begins with "
        "'rpc error making call: '",
    )


# --- values --------------------------------------------------------------------------------------


def _name(text: str) -> str:
    from supervisor.control.protocol import NAME

    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError("no name: at most 63 lower-case letters, digits, _ and -")
    return text


def _drop_in(text: str) -> str:
    from supervisor.config.files import is_drop_in

    if "/" in text or not is_drop_in(text):
        raise argparse.ArgumentTypeError("no drop-in: a name that ends with .yaml or .yml, without a folder")
    return text


def _socket(text: str) -> str:
    from supervisor.config.control import PATH_BYTES_MAX

    path = str(Path(text).absolute())
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise argparse.ArgumentTypeError(f"no socket: its path has at most {PATH_BYTES_MAX} bytes")
    return path


def _key(text: str) -> str:
    segments = text.split("/")
    if not re.fullmatch(r"[A-Za-z0-9,_./-]+", text) or "" in segments or {".", ".."} & set(segments):
        raise argparse.ArgumentTypeError("no key: letters, digits and ,_.- in segments between single /")
    return text


def _slots(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,3}|10000", text):
        raise argparse.ArgumentTypeError("no limit: write a number from 1 to 10000")
    return int(text)


def _session(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        raise argparse.ArgumentTypeError("no session: an id of Consul is a UUID")
    return text


def _index(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise argparse.ArgumentTypeError("no index of Consul: write a number from 0")
    return int(text)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port: write 0 to 65535")
    return int(text)


def _rest_s(text: str) -> float:
    from supervisor.control.protocol import REST_S_MAX

    rest_s = _duration_s(text)
    if rest_s > REST_S_MAX:
        raise argparse.ArgumentTypeError("too long: a day at most, for longer there is `pause`")
    return rest_s


def _duration_s(text: str) -> float:
    from supervisor.formats.durations import seconds

    try:
        return seconds(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no duration: write 500ms, 1s or 1m30s") from None
