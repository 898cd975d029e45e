"""A tiny HTTP application behind a balancer, which answers every request with the name of its node.

python -m tests.system.programs.application NODE PORT
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.consul import HOST


def server(node: str, port: int) -> ThreadingHTTPServer:
    """Return a server that does not serve yet.

    ``/long`` is answered with a head and the node's name, and then stays open.
    """

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{node}\n".encode())
            if self.path == "/long":
                self.rfile.read(1)  # stays open until the connection ends

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    made = ThreadingHTTPServer((HOST, port), Answers)
    made.daemon_threads = True
    return made


if __name__ == "__main__":
    server(sys.argv[1], int(sys.argv[2])).serve_forever()
