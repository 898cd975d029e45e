"""Whole supervisors on a virtual clock, a seeded network and the embedded agent's model.

The seed decides whether they contest an election or the slots of a semaphore. The supervisors are
real: the driver, the core, the encoder and decoder of Consul's API, the bytes of the journal and what a
start makes of them. What they stand on is played. The map, one line a module; each imports only those
above it.

    schedule.py    virtual time: what happens next
    files.py       what a node's file says: an election or a semaphore
    scenario.py    a seed -> nodes, files, clocks and the plan of faults
    trace.py       what happened, as a table
    holders.py     a witness of Consul's word: who holds, and whom it did not guard
    cluster.py     Consul: the model on virtual time
    disk.py        a disk with the journal's bytes: full for a while, left in a write by a crash
    application.py what hooks start and end: whether this node acts as holder
    children.py    processes of hooks: how long they take, how they end, who outlives a crash
    network.py     the way of a request to Consul and back
    machine.py     one node: its clock, disk, processes, and what it suffers from
    supervisor.py  one run of the supervisor: the world that the driver's turns act upon
    judges.py      what must hold in every state
    slot_judges.py what must hold of a semaphore beside that
    lasting.py     what must hold at the end
    figures.py     what was seen, counted
    hands.py       what operators do to Consul by hand
    faults.py      what goes wrong
    simulation.py  all of it, for one seed
    totals.py      many seeds in two processes

A seed replays exactly: nothing here may ask a real clock, draw from an unseeded source or walk over a
set. All times are seconds of the simulation unless a name says ``local``.
"""
