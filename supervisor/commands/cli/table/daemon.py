"""The commands to the daemon of this machine, or by an order in Consul to all."""

from supervisor.commands.cli import values
from supervisor.commands.cli.table.spec import (
    ASKS_CONSUL,
    DEFAULT_CONFIG,
    Arguments,
    CommandSpec,
    OneOf,
)

_ITEM = "an election or semaphore of the daemon"
_SOCKET: Arguments = {
    "--socket PATH": "the daemon's control socket (default: CONSUL_SUPERVISOR_SOCKET, else control.sock in "
    "RUNTIME_DIRECTORY, else /run/consul-supervisor/control.sock)",
    "--config PATH": "configuration: without --socket its control_socket is asked, and what goes to Consul "
    f"goes by it (default: for the latter {DEFAULT_CONFIG})",
}
_QUIET = {"--quiet": "print nothing when the command is done, for scripts"}
_NO_PLACE = "the configuration that is given cannot be read"
_ASKS_DAEMON = {
    "unreachable": "the daemon is unreachable or did not answer: nothing is known",
    "configuration": _NO_PLACE,
}
_NAME_OR_ALL = OneOf({"[NAME]": _ITEM, "--all": "all elections and semaphores of the daemon"})
_ORDER: Arguments = {
    "--reason TEXT=": {
        "help": "why: one line of at most 200 characters, for the log, status, events and the hooks of a "
        "step-down",
        "dest": "note",
    },
    **_QUIET,
    **_SOCKET,
}
_FORCE = {
    "--force": "also while this node rides out a silence of Consul by `outage`, in which nobody takes over"
}
_DRY_RUN = {"--dry-run": "change nothing, and end as it would where that is known beforehand"}
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

DAEMON = {
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
        configuration=f"{_NO_PLACE}; with --cluster: {ASKS_CONSUL['configuration']}",
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
        "daemon_commands:confirm_off",
        OneOf(
            {
                "[NAME]": "an election that waits, by the words of `status`",
                "--all MACHINE": {
                    "help": "all elections that wait for this machine, as `status` names it",
                    "dest": "all_behind",
                    "type": values.node,
                },
            }
        ),
        {
            "--machine NAME": "the machine that is off, as `status` names it. It must be given where that "
            "machine may act for more than a minute, and not with --all",
            **_ORDER,
        },
        done="this node goes on, and acts once Consul has confirmed its lock",
        negative="the item waits for no machine to be off or for another one than --machine names, or none "
        "waits for that of --all",
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
            **_FORCE,
            **_ORDER,
        },
        done="the holder has released it, and another node holds it; with --to, the node that was named",
        negative="no other node took over in time, or could while Consul is silent; or this node does not "
        "hold it, or cannot release it; with fleet: the holder did not follow the order in time; with --to: "
        "NODE is not exactly one waiting node, or another node took over; with --all: of one at least",
        **_ASKS_DAEMON,
    ),
    "drain": CommandSpec(
        "take this node out of all elections and semaphores: pause all, hand over what it holds",
        "drain --reason 'kernel update'",
        "draining:drain",
        {
            **_PAUSE_FOR,
            "--force": "do not ask Consul whether another node takes part in what this node holds, and drain "
            "it also in a silence of Consul",
            **_DRY_RUN,
            **_ORDER,
        },
        done="this node holds nothing, each election that it held has another leader, and it does not "
        "contend until undrain",
        negative="no other node would take over, as Consul shows or because it is silent: nothing was done; "
        "or the pause cannot be recorded; or nobody took over, and this node contends again (not with "
        "--force)",
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
        {**_FORCE, **_QUIET, **_SOCKET},
        unreachable=_ASKS_DAEMON["unreachable"],
        done="the daemon follows the configuration as it is now",
        negative="nothing has changed, because nobody could take over now what it would stop, or the file "
        "system did not answer; or the change is accepted, and a new `outage` does not count yet",
        configuration="nothing has changed: the configuration has faults, or needs a restart; "
        f"or {_NO_PLACE}",
    ),
}
