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
    agent_log.py   when requests reached Consul and sessions expired, by Consul's log
    contender.py   a process that contends for a lock
    contenders.py  such processes: ours, `consul lock`, the floor
    timed.py       a supervisor whose times are noted from within
    floor.py       the least program that takes a lock: raw blocking sockets and posix_spawn
    handover.py    row: end of the old on_lose to start of the next on_acquire
    segments.py    part of that row: where the time of a hand-over goes
    lock.py        row: one lock around one command, beside `consul lock`
    resources.py   row: memory, threads and idle CPU
    loss.py        row: the holder's machine is lost; the next leader acts, and the old one acts on
    machines.py    the machines of that row, on a real cluster
    lives.py       when these children lived
    load.py        row: requests to Consul at rest
    fleet.py       part of that row: how far the requests of a fleet are apart
    start.py       row: --help, holds, status, check; run to its first on_acquire, lock to its command
    many.py        row: a thousand elections in one process
    pacemaker.py   python -m bench pacemaker [--tries N]: a lost machine and a fence, beside Pacemaker
    trios.py       the machines of that target, booted for it
"""
