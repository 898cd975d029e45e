"""The drill: a file is rehearsed on this machine, and its figures are compared with what happened.

Everything is real except Consul, the hooks and some durations. The embedded agent serves in this process,
with an address for each node. Three supervisors are processes of their own. Recorders stand in the place of
the hooks, or around them. A play does one thing to the supervisors, such as a crash, and compares the
promises of ``check`` with what Consul and the recorders have shown.

    backstage.py  the folder and the child processes, of which nothing is left behind
    demo.py       `demo`: an election and a semaphore to watch, of which this page says nothing more
    shortened.py  an item with shorter durations, and what was changed
    recorders.py  hooks that record when they begin and end, and that fail or hang when the drill wants it
    node.py       the process of one supervisor
    agents.py     the embedded agent, with an address for each node that can stop answering
    tenures.py    which node acts, by what Consul and the recorders show
    stage.py      the agent, the supervisors and their tenures
    promises.py   a promise beside what was measured
    losses.py     the promises that each way to lose a lock has in common
    plays.py      the plays: what is done, and which promises must hold
    failovers.py  of these, the ones in which a holder is lost
    bounds.py     how long each play takes at most
    rehearsal.py  all plays of all items, one after the other
    report.py     the result as text and as JSON
"""

NODES = ("node-a", "node-b", "node-c")
