"""The commands of this machine: for its configuration, its hooks and its locks, and to try things out."""

from supervisor.commands.cli.table.spec import CONFIG, CONFIGURED, JSON, CommandSpec

_PATH = "configuration: a file or a directory"

LOCAL = {
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
            "--outage DURATION": "fence.outage of the file, 1m to 24h, with --fence. It lengthens --failover "
            "and not --failover-usually, because others wait for it only where the fence fails",
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
            "NAME": CONFIGURED,
            "HOOK": "the hook's place, such as on_lose[0], candidate_check or fence, or its name. It "
            "really acts, with the environment, folder, limits and sandbox of this command and not of the "
            "unit. Consul is not asked. Not covered: run, and retries",
            "--reason REASON": "the reason that the hook is given (default: acquired, shutdown, lose-failed, "
            "leader-changed or scheduled)",
            "--target TARGET": "the machine that fence switches off, as fence.target of its file names it, "
            "or else as its node in Consul is named. fence does not run without it; on_acquire then follows "
            "such a fence",
            "--yes": "with fence: do not ask on the terminal whether to switch off this machine itself",
            **CONFIG,
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
}
TOOLS = {
    "drill": CommandSpec(
        "rehearse a configuration on this machine",
        "drill /etc/consul-supervisor",
        "local_commands:drill",
        {
            "PATH": _PATH,
            "names NAME": {
                "help": f"{CONFIGURED} (default: all of them, but of each for_each only one)",
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
            **JSON,
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
