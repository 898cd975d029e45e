"""Consul's HTTP API over the model's store. The map; each module imports only those above it.

    call.py      one request on its way: its parameters, its body, the kinds of answers
    handlers.py  what each path and method does
    routes.py    which path and method goes where; what is answered before that

A handler raises Rejected or ApiReply where it refuses. This package knows no sockets and no request that
waits.
"""
