"""Whole supervisors on a virtual clock, a seeded network and the embedded agent's model.

The seed decides whether they contest an election or the slots of a semaphore. The supervisors are real: the
driver, the core, the encoder and decoder of Consul's API, the bytes of the journal, and the restore at a
start. Their surroundings are simulated. The map, one line a module; each imports only those above it:

    schedule.py    virtual time: the next event
    files.py       the content of a node's file: an election or a semaphore
    scenario.py    a seed -> nodes, files, clocks and the plan of faults
    trace.py       the events, as a table
    holders.py     a witness of Consul's store: who holds, and which holders Consul did not guard
    cluster.py     Consul: the model on virtual time
    disk.py        a disk with the journal's bytes: full for a while, left in a write by a crash
    application.py the application that hooks start and end: whether this node acts as holder
    children.py    processes of hooks: how long they take, how they end, which outlive a crash
    network.py     the way of a request to Consul and back
    machine.py     one node: its clock, disk, processes, and its conditions
    supervisor.py  one run of the supervisor: the world on which the driver's steps act
    judges.py      promises of every state
    slot_judges.py promises of every state of a semaphore
    lasting.py     promises of the end
    figures.py     counts of what occurred
    hands.py       acts of operators on Consul by hand
    faults.py      the faults
    simulation.py  one seed
    totals.py      many seeds in two processes

A seed replays exactly: no module here may read a real clock, draw from an unseeded source or walk over a set.
All times are seconds of the simulation unless a name contains ``local``.
"""
