"""The commands that ask Consul."""

from supervisor.commands.cli.table.spec import (
    ASKS_CONSUL,
    CONFIG,
    CONFIGURED,
    DEFAULT_CONFIG,
    JSON,
    CommandSpec,
    OneOf,
)

_CONFIG_OR_NONE = {
    "--config PATH": f"configuration (default: {DEFAULT_CONFIG}; with --key none, and the CONSUL_ variables "
    "say how to reach Consul)"
}
_KEY = {"--key KEY": "a key in Consul, without any configuration"}

CONSUL = {
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
        **ASKS_CONSUL,
    ),
    "members": CommandSpec(
        "list the nodes that take part in an election or semaphore now",
        "members namenode",
        "cluster_commands:members",
        {"NAME": CONFIGURED, **JSON, **CONFIG},
        done="at least one node takes part",
        negative="nobody takes part, as far as the token may read",
        **ASKS_CONSUL,
    ),
    "history": CommandSpec(
        "list who led an election, and why that changed, the newest tenure first",
        "history namenode",
        "cluster_commands:history",
        {
            "NAME": "an election of the configuration",
            "--limit N": "print only the newest N tenures",
            **JSON,
            **CONFIG,
        },
        negative="no tenure is known yet, or the key in Consul holds something else",
        unreachable=f"{ASKS_CONSUL['unreachable']}, or the token may not read the key",
        configuration=f"{ASKS_CONSUL['configuration']}, or the configuration has no section fleet",
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
            **JSON,
            "--yes": "with destroy: do not ask on the terminal whether to do it",
            **CONFIG,
        },
        done="the sessions were printed, even if there are none; or the session was destroyed",
        negative="destroy: there is no such session of a supervisor, or you did not confirm the command",
        **ASKS_CONSUL,
    ),
    "wait": CommandSpec(
        "wait until an election or semaphore is held or free",
        "wait namenode --for holding --timeout 2m",
        "daemon_commands:wait",
        {
            "NAME": f"{CONFIGURED}; with --for holding, of the daemon",
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
        configuration=ASKS_CONSUL["configuration"],
    ),
    "verify": CommandSpec(
        "ask Consul whether a session still holds a key or a slot",
        "verify --key service/hdfs/leader --session $SESSION --lock-index $LOCK_INDEX",
        "consul_commands:verify",
        OneOf({"[NAME]": CONFIGURED, **_KEY}),
        {
            "--session ID": {"help": "CONSUL_SUPERVISOR_SESSION of a hook", "required": True},
            "--lock-index N": "CONSUL_SUPERVISOR_LOCK_INDEX of a hook: the answer is also no if the session "
            "has locked the key again. A plain PUT on the key sets the index to 0 in Consul; then the "
            "session alone decides",
            **_CONFIG_OR_NONE,
        },
        done="the session still holds the lock",
        negative="the session does not hold it any more",
        unreachable=f"cannot tell: {ASKS_CONSUL['unreachable']}",
        configuration=ASKS_CONSUL["configuration"],
    ),
    "limit": CommandSpec(
        "change in Consul how many nodes may hold a semaphore",
        "limit rebuild 5",
        "consul_commands:limit",
        {
            "NAME": "a semaphore of the configuration",
            "limit N": "how many nodes may hold a slot; a lower limit evicts nobody",
            "--quiet": "print nothing when the limit is written, for scripts",
            **CONFIG,
        },
        done="the record in Consul has this limit",
        negative="Consul has no record that can be changed",
        **ASKS_CONSUL,
    ),
}
