"""The reports of a running daemon, and the ways on which they leave it.

    web/          reading over HTTP: status, health, metrics, the page
    telemetry/    what is reported: log, metrics, history, status, systemd
    control/      commands to the running daemon over a unix socket, both ends
    http_server/  a bounded HTTP/1.1 server; knows no request's meaning

A package imports only from those after it, and none of the promise imports these.
"""
