"""What may be read of the daemon over HTTP. The map, one line a module:

    routes.py    what a GET asks for, and its answer; knows nothing of sockets
    page.py      the page at / (page.html), and the headers that guard it
    listener.py  ``http.listen``: the same over TCP, and nothing else

Nothing that is asked here changes anything or asks Consul anything: a load balancer may ask as often
as it likes. Commands are of the control socket alone.
"""

from supervisor.web.listener import Listener
from supervisor.web.routes import Routes

__all__ = ["Listener", "Routes"]
