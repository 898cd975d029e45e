"""Reading the daemon's state over HTTP.

    routes.py    the answer to each request, also the page at / (page.html); knows no sockets
    listener.py  ``http.listen``: serves the routes over TCP

A request changes nothing and causes no request to Consul, so that a load balancer may send any number of
them. Commands are accepted on the control socket only.
"""
