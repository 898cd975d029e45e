"""The embedded agent: Consul's sessions, keys and locks in memory, to try, rehearse and simulate.

The map, one line a module; each imports only those above it.

    messages.py   what goes in and comes out: AgentRequest, Answer, Waiting
    durations.py  durations as Go's programs write them
    kv.py         the table of keys: write, check-and-set, lock, delete, tombstones
    delays.py     lock-delay, and what a restart makes of it
    sessions.py   the table of sessions, and when each ends
    store.py      all tables and every write to them: one raft index a write
    txn.py        transactions on keys
    queries.py    the reads that a client can wait for, what wakes them, and how JSON shows the tables
    api/          Consul's HTTP API over the store
    model.py      requests, events and time in; answers out. Pure
    agent.py      the model on a real clock, behind an HTTP server

``agent`` does I/O; the rest is a pure model: time is an argument, ids come from a seed, and the same calls
give the same answers. The model behaves like Consul 1.8.7: the tests send both the same requests and compare
the answers. NOT_CONSUL lists the differences on purpose. Nothing may rely on this package to keep data,
because it is no production store.
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
    (
        "errors",
        "have Consul's status. They have Consul's words where a client learns from them that a lock is held "
        "or delayed, that a session is gone, or why none was made; else they have words of their own",
    ),
    (
        "checks",
        "only serfHealth: no check can be registered alone, `Checks` of a session is ignored, and there is "
        "no maintenance mode",
    ),
    (
        "services",
        "are kept and shown as they were registered; their checks never end, and nothing names them",
    ),
    ("session bodies", "LockDelay must be text, such as `15s`; null counts as an absent field"),
    ("session ids", "only in lower case; in Consul any case will do, and whatever is no UUID gets 500"),
    (
        "transactions",
        "only operations on keys, by the verbs of Consul 1.8; any other operation gets 400",
    ),
    ("keys", "only UTF-8 without an empty segment, `.` and `..`; other paths get 400, Consul redirects some"),
    ("parameters", "`stale`, `consistent` and `pretty` change nothing; only & separates parameters"),
    ("agent/self", "names, datacenter and version; no DebugConfig"),
    ("absent session", "a query on a session that does not exist wakes when any session begins or ends"),
    ("abandoned query", "is forgotten at once; Consul counts its connection until the wait is over"),
    ("chunked body", "has the limit of any other body; Consul 1.8 also stores larger ones"),
    ("idle time", "a connection without requests is closed after five minutes; Consul keeps it open"),
    ("compression", "none, whatever the client accepts; Consul's Vary header is not sent"),
)
