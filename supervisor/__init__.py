"""consul-supervisor: hooks for this node's part in Consul elections and semaphores.

The map has one line for each package, the highest floor first. A package imports only from lower floors.
Each package's own docstring has a line for each of its modules.

    cli/          commands, options, exit codes: the only package that prints
    drill/        three supervisors and the embedded agent: `drill` rehearses a file, `demo` shows a failover
    lock_command/ one lock around one command, without a configuration, a daemon or a record
    daemon/       wires the core to the world: the loop, records, listeners, reloads
    preflight/    whether a configuration fits this machine: hooks that can start, modes of files
    check/        what `check` reports: figures, findings about the real Consul
    web/          reading over HTTP: status, health, metrics, the page
    telemetry/    what is reported of a running daemon: log, metrics, history, status, systemd
    consul/       Consul's HTTP API: requests of the core as messages, responses as outcomes
    journal/      what survives a crash of this process: a file of records for each item
    control/      commands to the running daemon over a unix socket, both ends
    config/       YAML -> schema -> cross-checks -> frozen settings; each refusal with its place
    hooks/        runs commands and webhooks: deadline, kill, outcome, output
    transport/    an HTTP client over asyncio, with deadlines; knows no Consul
    devagent/     the embedded agent: a pure model of Consul and a server around it
    runtime/      carries out the steps of the core; the clock and the signals of a process
    formats/      text formats that several packages share
    errors.py     the three kinds of errors, by whose fault they are
    http_server/  a bounded HTTP/1.1 server; knows no request's meaning
    filesystem/   files whose file system may not answer
    core/         decides: step(state, event, now) -> (state, actions); no I/O, no clock
"""

__version__ = "0.2.0"
