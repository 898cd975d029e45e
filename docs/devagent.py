"""The lists of the embedded agent in ``drill.md``, made from the agent itself.

    python -m docs.devagent            prints them
    python -m docs.devagent --write    puts them into drill.md

The agent is the only source: correct mistakes there. A test runs this and compares.
"""

import sys
from pathlib import Path

from supervisor.rehearsal.devagent import NOT_CONSUL
from supervisor.rehearsal.devagent.api.routes import ROUTES

PAGE = Path(__file__).resolve().parent / "drill.md"
BEGIN = "<!-- from here on `python -m docs.devagent` writes -->\n"
END = "<!-- to here -->\n"


def lists() -> str:
    """Return the differences from Consul, then the endpoints (ROUTES in the code), as Markdown."""
    differences = "".join(f"- {what}: {how}\n" for what, how in NOT_CONSUL)
    endpoints = ", ".join(f"`{path}` ({', '.join(methods)})" for path, methods in ROUTES.items())
    return (
        f"{differences}\n"
        f"These are the ROUTES. A path that ends in `/` is followed by a key, a name or an id: {endpoints}.\n"
    )


def page(text: str) -> str:
    """Return the text of ``drill.md`` with the present lists."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{lists()}\n{END}{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(lists())
