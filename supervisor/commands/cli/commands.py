"""The table of commands: help, exit codes, arguments, and the function that runs each.

The function is named as text and imported when its command runs, so that ``--help`` stays quick.
docs/commands.md and each ``--help`` are made from here.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from supervisor.commands.cli import exit_codes, values

DEFAULT_CONFIG = Path("/etc/consul-supervisor")


Arguments = Mapping[str, str | dict[str, Any]]
"""The help of each argument, or its details, by its spelling: ``[NAME]``, ``--quiet``, ``--port N=8500``.

An optional argument stands in brackets, and a default behind the placeholder of the value.
"""


class OneOf(NamedTuple):
    """Arguments of which exactly one must be given."""

    arguments: Arguments


class CommandSpec:
    """One command."""

    def __init__(
        self, summary: str, example: str, function: str, *arguments: Arguments | OneOf, **codes: str
    ) -> None:
        self.summary = summary  # the effect of the command, in one line
        self.example = example  # an example of the text after ``consul-supervisor``
        # ``module:name`` in this package, which takes the parsed arguments and returns the code.
        self.function = function
        self.arguments = arguments
        # The meaning of its exit codes, which are given by their names. Those of every command are in OF_ALL.
        codes = {"done": "done", **codes}
        self.codes: dict[int, str] = {getattr(exit_codes, name.upper()): codes[name] for name in codes}


def parsed(group: Arguments | OneOf) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each argument, and its details as ``ArgumentParser.add_argument`` takes them.

    A duration is parsed as ``option_s``, and an option without a value is a flag.
    """
    arguments = group.arguments if isinstance(group, OneOf) else group
    for spelled, given in arguments.items():
        left, has_default, default = spelled.strip("[]").partition("=")
        name, _, metavar = left.rpartition(" ")
        details = {"help": given} if isinstance(given, str) else given
        if left.startswith("--") and not name:
            yield left, {"action": "store_true", **details}
            continue
        usual: dict[str, Any] = {"metavar": metavar, "type": _TYPES.get(left) or _TYPES.get(metavar, str)}
        usual |= {"default": default} if has_default else {}
        usual |= {"nargs": "?"} if spelled.startswith("[") else {}
        if metavar == "DURATION":
            usual["dest"] = f"{name.removeprefix('--').replace('-', '_')}_s"
        yield name or metavar.lower(), {**usual, **details}


# By the placeholder of the value, where the option before it has no other.
_TYPES: dict[str, Callable[[str], Any]] = {
    "CHECKS": values.checks,
    "DURATION": values.duration_s,
    "ID": values.session,
    "KEY": values.key,
    "N": values.limit,
    "NAME": values.name,
    "NODE": values.node,
    "PATH": Path,
    "TEXT": values.note,
    "--every DURATION": values.every_s,
    "--lock-delay DURATION": values.lock_delay_s,
    "--lock-index N": values.index,
    "--node NAME": values.node,
    "--port N": values.port,
    "--probe-interval DURATION": values.probe_interval_s,
    "--socket PATH": values.socket,
    "--speed N": values.speed,
    "--suspicion-mult N": values.suspicion_mult,
    "--timeout DURATION": values.timeout_s,
    "--ttl DURATION": values.ttl_s,
    "--wait DURATION": values.wait_s,
}

_PATH = "configuration: a file or a directory"
_CONFIG = {f"--config PATH={DEFAULT_CONFIG}": "configuration (default: %(default)s)"}
_CONFIG_OR_NONE = {
    "--config PATH": f"configuration (default: {DEFAULT_CONFIG}; with --key none, and the CONSUL_ variables "
    "say how to reach Consul)"
}
_KEY = {"--key KEY": "a key in Consul, without any configuration"}
_JSON = {"--json": "print one JSON document"}
_ITEM = "an election or semaphore of the daemon"
_CONFIGURED = "an election or semaphore of the configuration"
_NAME_OR_ALL = OneOf({"[NAME]": _ITEM, "--all": "all elections and semaphores of the daemon"})
_SOCKET: Arguments = {
    "--socket PATH": "the daemon's control socket (default: CONSUL_SUPERVISOR_SOCKET, else control.sock in "
    "RUNTIME_DIRECTORY, else /run/consul-supervisor/control.sock)",
    "--config PATH": "configuration: without --socket its control_socket is asked, and what goes to Consul "
    f"goes by it (default: for the latter {DEFAULT_CONFIG})",
}
_QUIET = {"--quiet": "print nothing when the command is done, for scripts"}
_ORDER: Arguments = {
    "--reason TEXT=": {
        "help": "why: one line of at most 200 characters, for the log, status, events and the hooks of a "
        "step-down",
        "dest": "note",
    },
    **_QUIET,
    **_SOCKET,
}

_DRY_RUN = {"--dry-run": "change nothing, and end as it would where that is known beforehand"}

ARGV = "argv"

_ASKS_CONSUL = {
    "unreachable": "Consul is unreachable or did not answer",
    "configuration": "the configuration, a CONSUL_ variable or the token file cannot be used",
}
_NO_PLACE = "the configuration that is given cannot be read"
_ASKS_DAEMON = {
    "unreachable": "the daemon is unreachable or did not answer: nothing is known",
    "configuration": _NO_PLACE,
}
_PAUSE_FOR = {
    "--for DURATION": {
        "help": "end the pause by itself after this long, 720h at most (default: until an operator ends it)",
        "type": values.pause_s,
        "dest": "pause_s",
    }
}
_EVERYWHERE = {
    "--everywhere": "on all nodes, by an order in Consul: needs the section fleet and the right to write "
    "below its prefix"
}
_ORDERED = {
    "unreachable": "the daemon, or with --everywhere Consul, is unreachable or did not answer, or refuses it",
    "configuration": f"{_NO_PLACE}; with --everywhere: it cannot be used, or has no section fleet",
    "negative": "this node only observes, the item has ended, or the change cannot be recorded; with "
    "--everywhere: another operator has changed it at the same time, or a node did not follow within 5 s",
}

COMMANDS = {
    "run": CommandSpec(
        "take part in elections and semaphores until stopped",
        "run /etc/consul-supervisor",
        "running:run",
        {"PATH": _PATH},
        done="stopped in order",
        negative="on_lose failed, a second signal came, or another process uses state_dir",
        configuration="the configuration, token file, state_dir or control socket cannot be used",
    ),
    "check": CommandSpec(
        "check a configuration and print its figures",
        "check /etc/consul-supervisor",
        "checking:check",
        {
            "paths PATH": {
                "help": f"{_PATH}. Several PATHs are checked one by one, without figures, and only --here "
                "and --quiet may be given with them. To check files that belong together, give their "
                "directory",
                "nargs": "+",
            },
            "--connect": "also ask Consul about its leader, its agent and the token's rights; this changes "
            "nothing",
            "--here": "check for this machine and the user who runs this: a hook that cannot start "
            "here, or a secret that cannot be read, is an error, not a warning",
            "--quiet": "print only the faults and the verdict, which is the last line",
            "--json": "print one JSON document, also for errors",
        },
        done="the configuration is valid; there may be warnings",
        unreachable="with --connect: Consul is unreachable or has no leader",
        configuration="the configuration is invalid; with --here: a hook cannot start here, or a file "
        "cannot be read; with --connect: Consul's answers show a fault, such as a missing right",
    ),
    "policy": CommandSpec(
        "print the policy with exactly the rights in Consul that a configuration needs",
        "policy /etc/consul-supervisor --for operator",
        "checking:policy",
        {
            "PATH": _PATH,
            "--node NAME": "the agent's node, as Consul names it (default: the agent is asked, which needs "
            "the right to read it)",
            "--for PURPOSE=daemon": {
                "help": "daemon: run; observer: members, leader, wait, sessions, status --cluster and "
                "verify; drain: drain; operator: all these, sessions destroy, limit (default: %(default)s)",
                "dest": "purpose",
                "choices": ["daemon", "operator", "observer", "drain"],
            },
        },
        unreachable="the agent does not tell the name of its node, which the rules need: give --node",
        configuration="the configuration is invalid",
    ),
    "plan": CommandSpec(
        "print the session block that meets your wishes, with its sums",
        "plan --failover 60s --on-lose 5s",
        "local_commands:plan",
        {
            "--failover DURATION": "how long after a crash of the holder's machine another node holds at the "
            "latest, while Consul keeps its leader: the figure failover of check. This wish, the next one or "
            "both must be given",
            "--failover-usually DURATION": "the same as it usually is, because Consul's gossip notices "
            "the crash. The block then has the check "
            "serfHealth",
            "--on-lose DURATION": {
                "help": "how long everything may take that ends after a loss: the figure lose_time of check, "
                "which is timeout + kill_after of each hook of on_lose and on_lose_failure, stop_timeout of "
                "run, and the longest kill_after of on_acquire",
                "required": True,
            },
            "--silence DURATION": "how long Consul may be silent, or this node be cut off from it, without a "
            "loss: the figures silence and cut off of check (default: half a second more than "
            "--leader-change of silence, below which check warns; any cut off)",
            "--leader-change DURATION=14s": "consul.leader_change of the file (default: %(default)s, which "
            "is right for the default raft_multiplier)",
            "--probe-interval DURATION=1s": "gossip_lan.probe_interval of every agent and server of Consul "
            "(default: %(default)s)",
            "--suspicion-mult N=4": "gossip_lan.suspicion_mult of every agent and server of Consul "
            "(default: %(default)s)",
            "--watchdog DURATION": "watchdog.timeout of the file (default: there is none)",
            "--fence DURATION": "how long the command of fence takes to switch a machine off. The block then "
            "counts on fence: {exclusive: true} (default: there is no fence)",
            "--checks CHECKS": "node_checks of the session, such as serfHealth; several are separated by "
            "commas",
        },
        done="the block was printed as YAML, with its sums and the warnings of check as comments",
        negative="no session block meets all these wishes",
    ),
    "test-hook": CommandSpec(
        "run one hook as the daemon would, and print its output, result and duration",
        "test-hook namenode on_lose[0] --reason step-down",
        "hook_commands:test_hook",
        {
            "NAME": _CONFIGURED,
            "HOOK": "the hook's place, such as on_lose[0], candidate_check or fence, or its name. It "
            "really acts, with the environment, folder, limits and sandbox of this command and not of the "
            "unit. Consul is not asked. Not covered: run, and retries",
            "--reason REASON": "the reason that the hook is given (default: acquired, shutdown, lose-failed, "
            "leader-changed or scheduled)",
            "--target TARGET": "the machine that fence switches off, as fence.target of its file names it, "
            "or else as its node in Consul is named. fence does not run without it; on_acquire then follows "
            "such a fence",
            "--yes": "with fence: do not ask on the terminal whether to switch off this machine itself",
            **_CONFIG,
        },
        done="the hook succeeded",
        negative="the hook failed or could not be started, or you did not confirm the command",
        configuration="the configuration cannot be used",
    ),
    "lock": CommandSpec(
        "hold a lock while a command runs, without a daemon: for cron, CI and containers",
        "lock --wait 0 cron/backup -- /usr/local/bin/backup --full",
        "locking:lock",
        {
            "-n N": {
                "help": "a semaphore: at most N may hold a slot below the prefix KEY; 1: the lock KEY/.lock",
                "dest": "limit",
            },
            "--wait DURATION": "how long to wait for the lock, a day at most; 0: try once (default: no "
            "limit)",
            "--every DURATION": "run COMMAND at most once in this time on all machines together, unless two "
            "of their clocks differ by more than a day; --wait is then at least 1s",
            "--ttl DURATION": "the TTL of the session (default: 10s)",
            "--lock-delay DURATION": "how long the lock stays closed to others after a loss; the command "
            "must end in that time (default: 30s)",
            "--on-lost SIGNAL=TERM": {
                "help": "TERM: a loss of the lock ends the command by TERM, and by KILL after 5 s; KILL: by "
                "KILL at once (default: %(default)s)",
                "choices": ["TERM", "KILL"],
            },
            "--verbose": "print to standard error what happens to the lock",
            "KEY": "a key in Consul; `consul lock P` has the key P/.lock. With -n: a prefix",
            "argv COMMAND": {
                "help": "the command and its arguments, behind --; it has our standard streams, terminal and "
                "environment",
                "nargs": "+",
            },
        },
        done="the command was run and ended with 0. Any other code of the command is passed on, and a "
        "command that signal N ended gives 128 + N",
        negative="others hold the lock, the command is not due by --every, or the lock was lost and the "
        "command was ended; or the command ended with 1",
        unreachable="at the end of --wait Consul did not answer, or made no session yet",
        configuration="a CONSUL_ variable or the token file cannot be used, the token lacks a right, "
        "the key belongs to another program or has a value and was never locked, or the lock-delay is "
        "too short",
        not_executable="the command cannot be started",
        not_found="there is no such program",
    ),
    "leader": CommandSpec(
        "print the current leader's value",
        "leader namenode",
        "consul_commands:leader",
        OneOf({"[NAME]": "an election of the configuration", **_KEY}),
        {
            "--json": "print one JSON document with value, session, node, TTL, lock-delay and fencing token",
            **_CONFIG_OR_NONE,
        },
        negative="nobody holds the key",
        **_ASKS_CONSUL,
    ),
    "members": CommandSpec(
        "list the nodes that take part in an election or semaphore now",
        "members namenode",
        "cluster_commands:members",
        {"NAME": _CONFIGURED, **_JSON, **_CONFIG},
        done="at least one node takes part",
        negative="nobody takes part, as far as the token may read",
        **_ASKS_CONSUL,
    ),
    "history": CommandSpec(
        "list who led an election, and why that changed, the newest tenure first",
        "history namenode",
        "cluster_commands:history",
        {
            "NAME": "an election of the configuration",
            "--limit N": "print only the newest N tenures",
            **_JSON,
            **_CONFIG,
        },
        negative="no tenure is known yet, or the key in Consul holds something else",
        unreachable=f"{_ASKS_CONSUL['unreachable']}, or the token may not read the key",
        configuration=f"{_ASKS_CONSUL['configuration']}, or the configuration has no section fleet",
    ),
    "sessions": CommandSpec(
        "list the sessions of supervisors and what each holds, or destroy one",
        "sessions --orphans",
        "cluster_commands:sessions",
        {
            "[destroy]": {
                "help": "end the session ID; first print what it holds, and when a rival may take it",
                "choices": ["destroy"],
            },
            "[session ID]": "the session to destroy",
            "--orphans": "only sessions without a part in any item, whose node has another session of this "
            "name: one with a part, or a newer one",
            **_JSON,
            "--yes": "with destroy: do not ask on the terminal whether to do it",
            **_CONFIG,
        },
        done="the sessions were printed, even if there are none; or the session was destroyed",
        negative="destroy: there is no such session of a supervisor, or you did not confirm the command",
        **_ASKS_CONSUL,
    ),
    "wait": CommandSpec(
        "wait until an election or semaphore is held or free",
        "wait namenode --for holding --timeout 2m",
        "daemon_commands:wait",
        {
            "NAME": f"{_CONFIGURED}; with --for holding, of the daemon",
            "--for STATE": {
                "help": "holding: this node holds it, and on_acquire has finished; leader: a node holds the "
                "key of the election; candidate: a node waits for it; free: nobody holds the key, or a slot "
                "of the semaphore is not taken",
                "dest": "state",
                "choices": ["holding", "leader", "candidate", "free"],
                "required": True,
            },
            "--timeout DURATION=60s": "how long to wait, a day at most; 0s: look once (default: %(default)s)",
            "--socket PATH": "with --for holding: the daemon's control socket",
            "--config PATH": f"configuration (default: {DEFAULT_CONFIG})",
        },
        done="the election or semaphore is in this state",
        negative="it did not come to this state within the time",
        unreachable="Consul, or with --for holding the daemon, did not answer at the end of the time",
        configuration=_ASKS_CONSUL["configuration"],
    ),
    "verify": CommandSpec(
        "ask Consul whether a session still holds a key or a slot",
        "verify --key service/hdfs/leader --session $SESSION --lock-index $LOCK_INDEX",
        "consul_commands:verify",
        OneOf({"[NAME]": _CONFIGURED, **_KEY}),
        {
            "--session ID": {"help": "CONSUL_SUPERVISOR_SESSION of a hook", "required": True},
            "--lock-index N": "CONSUL_SUPERVISOR_LOCK_INDEX of a hook: the answer is also no if the session "
            "has locked the key again. A plain PUT on the key sets the index to 0 in Consul; then the "
            "session alone decides",
            **_CONFIG_OR_NONE,
        },
        done="the session still holds the lock",
        negative="the session does not hold it any more",
        unreachable=f"cannot tell: {_ASKS_CONSUL['unreachable']}",
        configuration=_ASKS_CONSUL["configuration"],
    ),
    "limit": CommandSpec(
        "change in Consul how many nodes may hold a semaphore",
        "limit rebuild 5",
        "consul_commands:limit",
        {
            "NAME": "a semaphore of the configuration",
            "limit N": "how many nodes may hold a slot; a lower limit evicts nobody",
            "--quiet": "print nothing when the limit is written, for scripts",
            **_CONFIG,
        },
        done="the record in Consul has this limit",
        negative="Consul has no record that can be changed",
        **_ASKS_CONSUL,
    ),
    "status": CommandSpec(
        "show this node's part in each election and semaphore",
        "status --exit-code",
        "daemon_commands:status",
        {
            "[NAME]": "show only this election or semaphore",
            "--cluster": "show the members of each election and semaphore of the configuration, by Consul "
            "and without the daemon",
            "--json": "print the daemon's JSON unchanged",
            "--exit-code": "end with 1 if the daemon is not healthy",
            **_SOCKET,
        },
        done="the status was printed, healthy or not",
        negative="with --exit-code: the status was printed, and the daemon is not healthy",
        unreachable="the daemon, or with --cluster Consul, is unreachable or did not answer",
        configuration=f"{_NO_PLACE}; with --cluster: {_ASKS_CONSUL['configuration']}",
    ),
    "events": CommandSpec(
        "list the tenures and commands of this node, also from before a restart",
        "events namenode --since 1h",
        "event_commands:events",
        {
            "[NAME]": "only events of this election or semaphore",
            "--since DURATION": "only events of the last DURATION, such as 1h30m",
            "--json": "print one JSON document",
            **_SOCKET,
        },
        **_ASKS_DAEMON,
        done="the events were printed; those of a daemon that does not run come from its state_dir",
    ),
    "holds": CommandSpec(
        "report by the exit code whether this node holds an item now",
        "holds backup && /usr/local/bin/backup",
        "daemon_commands:holds",
        {"NAME": _ITEM, **_SOCKET},
        done="this node holds it now: on_acquire has finished, the lease is valid",
        negative="this node does not hold it",
        **_ASKS_DAEMON,
    ),
    "recover": CommandSpec(
        "release a stuck item, or end its tenure record, once nothing of it acts here",
        "recover namenode",
        "daemon_commands:operate",
        {"NAME": "an election or semaphore that is stuck, or that `status` says it of", **_ORDER},
        done="the item is released or its record ended, and this node contends again",
        negative="the item is not stuck",
        **_ASKS_DAEMON,
    ),
    "confirm-off": CommandSpec(
        "confirm that the machine for which an item waits is off, so that this node acts",
        "confirm-off db --reason 'unplugged by hand'",
        "daemon_commands:operate",
        {"NAME": "an election that waits, by the words of `status`", **_ORDER},
        done="this node goes on, and acts once Consul has confirmed its lock",
        negative="the item waits for no machine to be off",
        **_ASKS_DAEMON,
    ),
    "pause": CommandSpec(
        "stop contending until resume or for a time, even over restarts",
        "pause namenode --for 2h",
        "daemon_commands:pause_or_resume",
        _NAME_OR_ALL,
        {**_PAUSE_FOR, **_EVERYWHERE, **_ORDER},
        done="this node does not contend until resume or the end of --for",
        **_ORDERED,
    ),
    "resume": CommandSpec(
        "contend again at once: end a pause, or the rest after step-down",
        "resume namenode",
        "daemon_commands:pause_or_resume",
        _NAME_OR_ALL,
        {**_EVERYWHERE, **_ORDER},
        done="the pause or the rest is over, if there was one",
        **_ORDERED,
    ),
    "step-down": CommandSpec(
        "hand over the lock, and return when another node holds it; with fleet also on any other node",
        "step-down namenode --for 5m",
        "daemon_commands:step_down",
        OneOf(
            {
                "[NAME]": _ITEM,
                "--all": "all elections and semaphores that this node holds, at the same time",
            },
        ),
        {
            "--for DURATION=60s": {
                "help": "do not contend for this long afterwards, a day at most (default: %(default)s)",
                "type": values.rest_s,
                "dest": "rest_s",
            },
            "--to NODE": "hand over to this waiting node: a name that members shows, or its session's id. "
            "The others leave the key to it for 10 s. For elections only, and not with --all; the token "
            "needs the right to read sessions",
            **_ORDER,
        },
        done="the holder has released it, and another node holds it; with --to, the node that was named",
        negative="no other node took over in time, or this node does not hold it, or cannot release it; "
        "with fleet: the holder did not follow the order in time; with --to: NODE is not exactly one "
        "waiting node, or another node took over; with --all: of one at least",
        **_ASKS_DAEMON,
    ),
    "drain": CommandSpec(
        "take this node out of all elections and semaphores: pause all, hand over what it holds",
        "drain --reason 'kernel update'",
        "draining:drain",
        {
            **_PAUSE_FOR,
            "--force": "do not ask Consul whether another node takes part in what this node holds",
            **_DRY_RUN,
            **_ORDER,
        },
        done="this node holds nothing, each election that it held has another leader, and it does not "
        "contend until undrain",
        negative="as far as Consul shows, no other node would take over, and nothing was done; or the "
        "pause cannot be recorded; or nobody took over, and this node contends again (not with --force)",
        unreachable="the daemon, or Consul, is unreachable or did not answer",
        configuration="the configuration, which names Consul, cannot be used; not with --force",
    ),
    "undrain": CommandSpec(
        "end what drain has paused on this node, and no other pause",
        "undrain --wait 1m",
        "draining:undrain",
        {
            "--wait DURATION": "return once this node is healthy and waits or holds everywhere, a day at "
            "most; also wait for a daemon that is not up yet",
            **_DRY_RUN,
            **_ORDER,
        },
        done="this node contends again, but for what others have paused; with --wait it also has a session "
        "there, and is healthy",
        negative="with --wait: not within the time; or it cannot be recorded",
        **_ASKS_DAEMON,
    ),
    "reload": CommandSpec(
        "apply the configuration as it is now, and print what changed",
        "reload",
        "daemon_commands:operate",
        {**_QUIET, **_SOCKET},
        unreachable=_ASKS_DAEMON["unreachable"],
        done="the daemon follows the configuration as it is now",
        configuration="nothing has changed: the configuration has faults, or needs a restart; or "
        f"{_NO_PLACE}",
    ),
    "drill": CommandSpec(
        "rehearse a configuration on this machine",
        "drill /etc/consul-supervisor",
        "local_commands:drill",
        {
            "PATH": _PATH,
            "names NAME": {
                "help": f"{_CONFIGURED} (default: all of them, but of each for_each only one)",
                "nargs": "*",
            },
            "--all": "every item of each for_each, one after the other",
            "--hooks KIND=recorders": {
                "help": "recorders: hooks only record that they ran; real: the commands of the file run on "
                "this machine, with their users, folders and times (default: %(default)s)",
                "choices": ["recorders", "real"],
            },
            "--speed N=10": "divide ttl, lock_delay or prune_delay, acquire_delay and rejoin_delay by N, and "
            "with recorders the times of hooks, but leave the lease 3 s of room; 1: divide nothing (default: "
            "%(default)s)",
            **_JSON,
        },
        done="every promise held",
        negative="a promise was broken, or the drill could not be finished",
        configuration="the configuration is invalid",
    ),
    "demo": CommandSpec(
        "watch an election, a failover and a semaphore, in about ten seconds",
        "demo",
        "local_commands:demo",
        negative="something that the demo waited for did not happen",
    ),
    "dev-agent": CommandSpec(
        "run an in-memory Consul agent, for trying out only",
        "dev-agent --port 8500",
        "local_commands:dev_agent",
        {
            "--port N=8500": "the port on 127.0.0.1; 0: any free one (default: %(default)s)",
            "--session-ttl-min DURATION=1s": "the shortest TTL that the agent allows (default: %(default)s; "
            "a real Consul's is 10s)",
            "--client-agent": "answer as a client agent does, which most machines run: an error of its "
            "servers begins with 'rpc error making call: '",
        },
        done="stopped by a signal",
        negative="it cannot listen on this port",
    ),
    "schema": CommandSpec(
        "print the JSON Schema of the configuration",
        "schema > config.schema.json",
        "local_commands:schema",
    ),
    "complete": CommandSpec(
        "print the names that can follow in a command line, for the completion of shells",
        "complete 'consul-supervisor step-down '",
        "completing:complete",
        {"LINE": "a command line up to the cursor"},
        done="the names or choices were printed, as far as they are found within a second",
    ),
    "help": CommandSpec(
        "print this help, or the help of one command",
        "help step-down",
        "local_commands:help",
        {"[topic COMMAND]": "the command (default: all commands)"},
    ),
    "version": CommandSpec("print the version", "version", "local_commands:version"),
}


def codes_of(command: str) -> dict[int, str]:
    return dict(sorted({**exit_codes.OF_ALL, **COMMANDS[command].codes}.items()))
