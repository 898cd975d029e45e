"""The embedded agent: Consul's sessions, keys and locks in memory, to try, rehearse and simulate.

The map, one line a module; each imports only those above it.

    kv.py         the table of keys: write, check-and-set, lock, delete, tombstones
    sessions.py   the table of sessions, and when each ends
    store.py      all tables and every write to them: one raft index a write
    txn.py        operations on keys, alone or in transactions
    queries.py    the reads that a client can wait for, and how JSON shows the tables
    api/          Consul's HTTP API over the store
    model.py      requests and time in; answers out. Pure
    agent.py      the model on a real clock, behind an HTTP server

``agent`` does I/O; the rest is a pure model: time is an argument, ids come from a seed, and the same calls
give the same answers. The model behaves like Consul 1.8.7: the tests send both the same requests and compare
the answers. docs/drill.md lists the differences on purpose. Nothing may rely on this package to keep data,
because it is no production store.
"""

BANNER = """\
This is the embedded agent of consul-supervisor, for trying out and rehearsing. It is not Consul:
one process, no cluster, no access control, no TLS; all data are in memory and end with it.
Sessions may be as short as {ttl_min}; a real Consul refuses a TTL below 10s unless its
session_ttl_min says otherwise."""
