"""consul-supervisor: hooks for this node's part in Consul elections and semaphores.

The map, one line a module. ``core`` imports only the standard library and itself;
nothing but ``cli`` prints; nothing but ``daemon`` knows both the core and the world.

    cli/           commands and exit codes: the only package that prints
    arguments.py   what an operator may type: commands, options, their values
    exit_codes.py  what a command's end says to whoever ran it
    preflight/     can the hooks start on this machine? looked at by a process of its own
    precautions.py who else may read our secrets or change what we run: modes and owners
    check.py       what check prints: figures and findings, as text and as JSON
    connect.py     check --connect: questions to the real Consul that change nothing
    findings.py    what the answers to those mean
    versions.py    versions of Consul that were tried, and those with known faults
    lookup.py      one question to Consul, for commands without the daemon
    config/        YAML -> schema -> relations -> frozen settings; every refusal with its place
    core/          decides: step(state, event, now) -> (state, actions); no I/O, no clock
      settings.py    what the file asks for, as values
      lease.py       the safety arithmetic: how long belief may outlive the last news
      events.py      everything that can happen
      values.py      replace, for frozen values: quick, and no copy of what is the same
      actions.py     everything that can be decided, and the order that binds it
      asked.py       whether Consul has the session that was asked for
      lane.py        exchanges of one kind, one at a time
      throttle.py    how long what does not hurry waits while Consul takes no more requests
      pace.py        when what is asked regularly is asked next, so that a fleet drifts apart
      session.py     one Consul session: create, renew, acquire, release, destroy; forward only
      sequence.py    a list of hooks, one attempt at a time
      tenure.py      acquire -> on_acquire -> holding -> on_lose -> ended
      change.py      the lane of on_change
      health.py      the lane of candidate_check
      claim.py       what is contended for, as far as this node knows it: which answer to believe
      herd.py          of many that wait for one key: how soon one of them tries
      key.py           of an election: one key
      slots.py         of a semaphore: the slots below a prefix
      memory.py      what is on record of an item, and what a start makes of it
      contender.py   one item of the file: claim, session, tenure; how a tenure begins and ends
      meaning.py     what an event means
      due.py         what is due, and in which order
      step.py        the one way in: lease, then meaning, then what is due
      reload.py      what becomes of each item when the file is read again
      node.py        all machines of this process: routes events, one earliest deadline
    driver.py      a turn: event -> step -> actions -> records, on whatever world it is given
    daemon.py      that world: the loop, exchanges, children, files; signals and stop
    exchanges.py   exchanges with Consul: a request of the core in, what was answered out
    sharing/       one question for many keys, where each cannot have a connection of its own
    spacing.py     a question that is asked at each change: not more often than so many times a second
    turns.py       so many at a time, the others in the order in which they came
    doors.py       the control socket and http.listen: opened, moved, closed, and what is told there
    journal/       what survives a crash of ours: a file of records per item
    records.py     the journal in the daemon's hands: read at the start, written, complained about
    signals.py     the signals that the daemon hears, and the time in which they wait
    hearing.py     signals in turns of the loop: however many come, none is lost
    operations.py  an operator's commands -> events, and what is replied
    reload.py      the file, read again: checked whole before anything changes
    recovery.py    the file and the records -> the contenders to begin with
    mounts.py      which paths lie on disks of this machine, so that asking them never hangs
    reading.py     a file is read by a child, because its file system may not answer
    leftovers.py   ends the hooks that a crashed process left running
    demo/          three supervisors and the embedded agent: a failover and a semaphore to watch
    devagent/      the embedded agent: a pure model of Consul and a server around it
    token.py       Consul's token, read again when its file changes
    consul.py      a request of the core as an HTTP message, a response as an outcome; knows no sockets
    endpoints.py   all that is known of each class of request, one row a class
    consul_sessions.py  Consul's API for sessions: how they are asked for, what is answered
    shown_session.py    a session as answers show it, compared with what was asked for
    consul_keys.py      the same, for the key of an election
    consul_slots.py     the same, for semaphores
    calls.py       a request without address, scope and token
    rights.py      what would mend a 403: a rule of a policy, or the agent's own configuration
    answers.py     what a response says, piece by piece; an error without what agents put before it
    roster.py      the value of a semaphore's .lock
    transport/     requests' messages over asyncio: knows sockets, not Consul
    http_server/   the other side: a bounded HTTP/1.1 server, knows no request's meaning
    cells.py       text in columns of a terminal: escaped, measured, cut
    table.py       the daemon's status as a table
    follow.py      the same for --watch, also while the daemon is silent
    watch.py       a page on the terminal, drawn each second; leaves it as it was
    control/       commands to the running daemon, over a unix socket
    hooks/         runs commands and webhooks: deadline, kill, outcome, output
    history.py     what has happened to each item since this process began, bounded
    status.py      what is told of all items: whether this node holds, whether all is well
    metrics/       what Prometheus is told of items, hooks, Consul and the daemon
    web/           what may be read over HTTP: the routes, the TCP listener
    stuck.py       what is told of a stuck item: which hook failed, and the command to give
    log/           one structured line for each event and action; what repeats is told once
    notify.py      what systemd is told: ready, a status line, signs of life, stopping
    outlet.py      text to a descriptor whose reader may be stuck: never waits, never raises
"""

__version__ = "0.1.0"
