"""The embedded agent: Consul's sessions, keys and locks in memory, to try, rehearse and simulate.

The map, one line a module; each imports only those above it.

    messages.py   what goes in and comes out: Request, Answer, Waiting
    gotext.py     Go's ways with numbers, durations, UUIDs and JSON
    radix.py      whom a write wakes who waits for a key that does not exist
    kv.py         the table of keys: write, check-and-set, lock, delete, tombstones
    delays.py     lock-delay, and what a restart makes of it
    sessions.py   the table of sessions, and when each ends
    catalog.py    nodes and their checks, as far as sessions are bound to them
    store.py      all tables and every write to them: one raft index a write
    txn.py        transactions on keys
    shapes.py     the tables' values as JSON
    queries.py    what can be read and waited for, and what wakes who waits
    api/          Consul's HTTP API over the store
    model.py      requests, events and time in; answers out. Pure
    agent.py      the model on a real clock, behind an HTTP server

What is in ``agent`` does I/O; the rest is a pure model: time is an
argument, ids come from a seed, the same calls give the same answers. Its behaviour is that of Consul
1.8.7: the tests ask both the same and compare. Where the two differ on purpose is said in NOT_CONSUL.
This package must never be asked to keep anything: it is no production store.
"""

BANNER = """\
This is the embedded agent of consul-supervisor, for trying out and rehearsing. It is not Consul:
one process, no cluster, no access control, no TLS; all data are in memory and end with it.
Sessions may be as short as {ttl_min}; a real Consul refuses a TTL below 10s unless its
session_ttl_min says otherwise."""

NOT_CONSUL = (
    ("memory", "nothing is written to disk; `restart` of the model imitates a server that kept its data"),
    ("no ACLs", "tokens are ignored, and nothing is ever denied"),
    ("no cluster", "one server, one datacenter; nodes join and leave only as events of the model"),
    ("endpoints", "only those of ROUTES; others get 404 with a sentence, although Consul may have them"),
    ("checks", "only TTL checks, effective at once; a real agent's checks reach the servers some ms later"),
    ("transactions", "only on keys; operations on nodes, services and checks get 400"),
    (
        "delete-tree",
        "wakes the queries on each of the keys; Consul 1.8.7 forgets them if the same transaction has "
        "written beside those keys before",
    ),
    ("agent/self", "names, datacenter and version; no DebugConfig"),
    ("JSON errors", "type errors have Go's words; syntax errors have only the first words"),
    ("absent session", "a query on a session that does not exist wakes when any session begins or ends"),
    ("node's queries", "queries on a node's sessions or checks wake when any session or check changes"),
    ("abandoned query", "is forgotten at once; Consul counts its connection until the wait is over"),
    ("chunked body", "has the limit of any other body; Consul 1.8 also stores larger ones"),
    ("idle time", "a connection without requests is closed after five minutes; Consul keeps it open"),
    ("compression", "none, whatever the client accepts; Consul's Vary header is not sent"),
)
