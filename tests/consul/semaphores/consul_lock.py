"""``consul lock -n`` beside us: real processes on the same prefix, with children that write records."""

import os
import subprocess
from collections import Counter

from tests.consul.semaphores.scene import SlotScene
from tests.support.consul import BINARY
from tests.support.supervisor import PATIENCE_S
from tests.support.tenures import FOR_EVER, SCRIPT, Record, Tenure, tenures

HOOK = "consul lock"  # the label in its children's records, where those of hooks have the name of a hook


class Locker:
    """One ``consul lock -n`` after the other, each for as long as its child runs, until ``stop``.

    There is a pause between two of them, because its waiters try at each change at once and in no order. With
    such a waiter always there, contenders that keep an order would get few slots.
    """

    def __init__(self, scene: SlotScene, node: str, child: str, *, again: bool = True) -> None:
        folder = scene.folder / node
        folder.mkdir(parents=True)
        self.node = node
        self.log_path = folder / "log"
        limit = f"-n={scene.limit}"
        address = f"-http-addr={scene.agent.host}:{scene.agent.port}"
        lock = [str(BINARY), "lock", address, limit, f"-name={scene.name}-{node}", scene.name]
        script = folder / "locker.sh"
        script.write_text(_SCRIPT)
        self._stopped = folder / "stopped"
        environ = {
            "PATH": os.environ["PATH"], "SHELL": "/bin/sh", "RECORDS": str(scene.folder / "records"),
            "NODE": node, "HOOK": HOOK, "SCRIPT": str(SCRIPT), "CHILD": child,
            "STOPPED": str(self._stopped), "AGAIN": "1" if again else "",
        }  # fmt: skip
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "/bin/sh", str(script), *lock],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
            )

    def stop(self) -> None:
        """Return when the last of them has ended."""
        self._stopped.touch()
        self._process.wait(PATIENCE_S)

    def close(self) -> None:
        """End all of them, found by the scene's folder in their environments."""
        self._process.kill()
        self._process.wait()

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


_SCRIPT = """\
# The child is our recording hook, quoted for the shell to which consul lock gives it.
while :; do
    "$@" 'exec /bin/sh "$SCRIPT" "$CHILD"'
    if [ -e "$STOPPED" ] || [ -z "$AGAIN" ]; then exit 0; fi
    sleep 1
done
"""


def tenures_of_all(records: list[Record], name: str) -> list[Tenure]:
    """Find the tenures of our nodes, and those of the children, which act from begin to end."""
    children: dict[tuple[str, int], Tenure] = {}
    count: Counter[str] = Counter()  # of each node, because its children have no other name
    for record in records:
        if record.hook == HOOK:
            count[record.node] += record.stage == "begin"
            which = record.node, count[record.node]
            begin = record.when if record.stage == "begin" else children[which].begin
            end = record.when if record.stage == "end" else FOR_EVER
            children[which] = Tenure(record.node, "", (0,), begin, end, lost=record.stage == "end")
    return [*tenures(records, name, room_s=0.0), *children.values()]
