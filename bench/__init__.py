"""Measurements of consul-supervisor on this machine, beside `consul lock` and the floor, in one table.

All figures can be measured again: real processes, a real Consul, and a compiled stamp program as hook and
child, whose first instruction ends a measurement. The bench must never measure from inside the product, and
never leave a process or a file behind. A new row is a function in a module of its own, named in ROWS of
__main__.py.

    __main__.py    python -m bench [NAME ...] [--quick] [--markdown] [--page]
    figures.py     a figure, its limit and its verdict; the table
    page.py        bench/measured.md
    lab.py         the parts of all rows: folder, stamp program, agents, clean-up
    stamp.c        the hook and the child: writes the time at its first instruction and at its end
    stamps.py      reads the stamps
    ask.c          clients that send HTTP requests at a steady rate, for little CPU time
    asker.py       runs these clients
    agent_log.py   when requests reached Consul and sessions expired, by Consul's log
    contender.py   a process that contends for a lock: ours, `consul lock`, the floor
    floor.py       the least program that takes a lock: raw blocking sockets and posix_spawn
    reaction.py    row: a session is destroyed; on_lose here, on_acquire there
    handover.py    row: end of the old on_lose to start of the next on_acquire
    segments.py    part of that row: where the time of a hand-over goes
    lock.py        row: one lock around one command, beside `consul lock`
    slots.py       row: a slot of a semaphore gets free while fifty wait: writes, and time
    herd.py        row: two hundred wait for one key: writes, time, and Consul's warnings
    crowd.py       a process that is several supervisors
    writes.py      the number of writes to Consul, as the agent counts them
    resources.py   row: memory, threads and idle CPU
    streak.py      row: five hundred hand-overs in a row, and whether one of them stalls
    takeover.py    row: after a loss, the next leader against the end of the lock-delay
    loss.py        row: the holder's machine is lost; the next leader acts, and the old one acts on
    machines.py    the machines of that row, on a real cluster
    versus.py      `python -m bench cluster`: our supervisor and `consul lock` on a cluster that is broken
    beside.py      `python -m bench.beside`: for how long we and `consul lock -n` act on one slot
    stamper.py     the child of both tools there
    lives.py       when these children lived: double holding, needless loss
    load.py        row: requests to Consul at rest
    fleet.py       part of that row: how far the requests of a fleet are apart
    start.py       row: --help, holds, status, check; run to its first on_acquire, lock to its command
    exchange.py    row: CPU time of one HTTP exchange
    journal.py     row: the cost of a record
    status.py      row: hand-overs and renewals while clients request the status all the time
    reload.py      row: one of a hundred elections changes in the file
    many.py        row: a thousand elections in one process
    slow.py        row: hand-overs and renewals beside slow hooks, an unread log and a full disk
    troubles.py    makes these troubles
"""
