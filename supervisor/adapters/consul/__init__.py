"""Consul's HTTP API: requests of the core as HTTP messages, responses as outcomes.

    client.py            sends the core's requests and hands their outcomes back
    codec.py             a request as an HTTP message, a response as an outcome; knows no sockets
    endpoints.py         a table with one row for each class of request
    sessions.py          the API of sessions: requests and the meaning of answers
    keys.py              the API of an election's key
    services.py          one instance of a service at the local agent
    presence.py          each daemon as an instance of one service in Consul's catalog
    maintenance.py       the API of the maintenance mode
    semaphore.py         the API of a semaphore: transactions, lists, its .lock
    shown_session.py     a session as answers show it, compared with the one that was requested
    calls.py             a request without address, scope and token
    responses.py         typed access to a response, and errors without the prefixes of agents
    permissions.py       the remedy of a 403: a rule of a policy, or the agent's own configuration
    token.py             the ACL token, read again when its file changes
    limiter.py           a bounded number of requests at a time, in the order of their arrival
    rate.py              a limit on how often a blocking query is repeated
    shared/              one query for many keys, for more elections than connections
    wanted.py            the items of a configuration, each with its pace
    fleet_requests.py    the keys of a fleet: the tenures of an election, and orders
    query.py             requests of commands that run without the daemon
    members.py           which nodes take part in each item, and which sessions are supervisors'
    candidates.py        the session of the node that a step-down names
    wait.py              waits until an item is in some state
    versions.py          versions of Consul that were tested, and those with known faults

The package imports nothing here, because every command pays for what its package imports.
"""
