"""A tiny HTTP application behind a balancer, which answers every request with the name of its node.

python -m tests.system.programs.application NODE PORT
"""

import sys

from tests.support.background import Handler, Server


def server(node: str, port: int) -> Server:
    """Return a server that does not serve yet.

    ``/long`` is answered with a head and the node's name, and then stays open.
    """

    class Answers(Handler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{node}\n".encode())
            if self.path == "/long":
                self.rfile.read(1)  # stays open until the connection ends

    return Server(Answers, port=port)


if __name__ == "__main__":
    server(sys.argv[1], int(sys.argv[2])).serve_forever()
