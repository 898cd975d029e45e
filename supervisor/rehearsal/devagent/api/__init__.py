"""Consul's HTTP API over the model's store. The map; each module imports only those above it.

    bodies.py    the fields of JSON bodies
    call.py      one request on its way: its parameters, the kinds of answers
    kv.py        /v1/kv/
    sessions.py  /v1/session/
    txn.py       /v1/txn
    agent.py     /v1/agent/, /v1/status/leader
    routes.py    which path and method goes where; what is answered before that

A handler takes an ApiRequest and returns an HttpAnswer, or an Ask for a read that may have to wait. It raises
Rejected or ApiReply. This package knows no sockets and no request that waits.
"""

from supervisor.rehearsal.devagent.api.call import Settings

__all__ = ["Settings"]
