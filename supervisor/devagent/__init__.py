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
    ("memory", "nothing is written to disk; `restart` of the model plays a server that kept its data"),
    ("no ACLs", "every token is as good as none: nothing is ever denied"),
    ("no cluster", "one server, one datacenter; nodes join and leave only as events of the model"),
    ("endpoints", "only those of ROUTES; others are 404 with a sentence, in Consul they may exist"),
    ("checks", "TTL checks only, and at once: a real agent's checks reach the servers some ms later"),
    ("transactions", "on keys only; operations on nodes, services and checks are 400"),
    (
        "delete-tree",
        "wakes whoever waits for one of the keys; Consul 1.8.7 forgets them when the same transaction has "
        "written beside those keys before",
    ),
    ("agent/self", "names, datacenter and version; no DebugConfig"),
    ("JSON errors", "type errors are in Go's words; of a syntax error only the first words are"),
    ("absent session", "a query on a session that does not exist wakes at any session's begin or end"),
    ("node's queries", "on a node's sessions or checks they wake at any session's or check's change"),
    ("abandoned query", "is forgotten at once; Consul counts its connection until its wait is over"),
    ("chunked body", "has the same limit as any other; Consul 1.8 stores what is larger"),
    ("idle time", "a connection without requests is closed after five minutes; Consul keeps it"),
    ("compression", "none, whatever is accepted; Consul's Vary header is not sent"),
)
