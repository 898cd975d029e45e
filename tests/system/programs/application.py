"""A tiny HTTP application for a balancer: says which node it is, to anybody who asks.

python -m tests.system.programs.application NODE PORT
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.consul import HOST


def server(node: str, port: int) -> ThreadingHTTPServer:
    """Not serving yet. One long answer at ``/long``: its head and the node's name, then nothing more."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{node}\n".encode())
            if self.path == "/long":
                self.rfile.read(1)  # to the end of the connection

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    made = ThreadingHTTPServer((HOST, port), Answers)
    made.daemon_threads = True
    return made


if __name__ == "__main__":
    server(sys.argv[1], int(sys.argv[2])).serve_forever()
