"""Consul's HTTP API over the model's store. The map; each module imports only those above it.

    call.py      one request on its way: parameters, options, the kinds of answers
    bodies.py    JSON bodies as Go reads them
    kv.py        /v1/kv/
    sessions.py  /v1/session/
    txn.py       /v1/txn
    agent.py     /v1/agent/, /v1/health/, /v1/catalog/, /v1/status/
    routes.py    which path and method goes where; what is answered before that

A handler takes a Call and gives an Answer, or an Ask for a read that may have to wait. It raises
Refused, Answered or NoLeader. This package knows no sockets, and who waits is not its concern.
"""

from supervisor.devagent.api.call import Ask, NoLeader, Settings
from supervisor.devagent.api.routes import respond

__all__ = ["Ask", "NoLeader", "Settings", "respond"]
