"""The commands of consul-supervisor on a node, whose exit codes and JSON the modules pass on."""

from __future__ import annotations

import json

DONE = 0
NEGATIVE = 1
UNREACHABLE = 69
OPTIONS = {
    "executable": {"type": "str", "default": "consul-supervisor"},
    "config": {"type": "path"},
    "socket": {"type": "path"},
}
HOLDS = ("acquiring", "holding", "losing", "stuck")
ENDED = ("observer", "stopped")  # in these roles no command changes anything


class Daemon:
    """The daemon of a node."""

    def __init__(self, module):
        self._module = module

    def run(self, command, *arguments, socket=True, allowed=(DONE,)):
        """Run a command, and return its exit code and output. Fail the module on another code than these."""
        given = self._module.params
        places = ("config", "socket") if socket else ("config",)
        named = [f"--{place}={given[place]}" for place in places if given[place]]
        argv = [given["executable"], command, *arguments, *named]
        code, out, error = self._module.run_command(argv)
        if code not in allowed:
            self._module.fail_json(msg=(error or out).strip(), rc=code, cmd=argv, stdout=out, stderr=error)
        return code, out, error.strip()

    def status(self, down=False):
        """Return the status of the daemon. ``down``: return None where no daemon answers, do not fail."""
        code, out, _error = self.run("status", "--json", allowed=(DONE, UNREACHABLE) if down else (DONE,))
        return json.loads(out) if code == DONE else None


def contenders(status):
    """Return the items of this status for which this node contends, or has contended, by their names."""
    return {item["name"]: item for item in status["items"] if item["role"] not in ENDED}
