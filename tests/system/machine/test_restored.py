"""An old snapshot of Consul is restored on three booted machines: nobody who lives is shot."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.supervisor import until
from tests.system.machine.node import CONFIG, DROP_INS, UNIT
from tests.system.machine.trio import ROLES_S, SESSION, Trio, stamp

SHOTS = "/srv/shots"
# The hardware that this machine's supervisor sees: what all machines here share has no UUID.
DMI = "[Service]\nTemporaryFileSystem=/sys/class\nBindReadOnlyPaths=/srv/dmi:/sys/class/dmi\n"


class Fenced(Trio):
    """Three machines, and a device that ends the one whose name a fence gives it."""

    def _build(self) -> None:
        super()._build()
        for name, machine in self.machines.items():
            machine.write("/srv/dmi/id/product_uuid", f"{name}\n")
            machine.write(f"{DROP_INS}/dmi.conf", DMI)
            machine.write(CONFIG, yaml.safe_dump({"elections": {"app": self.election(name)}}))
            machine.did(f"systemctl daemon-reload; systemctl restart {UNIT}")
        self.wait_candidates()

    @staticmethod
    def election(name: str) -> dict[str, Any]:
        end = stamp("$CONSUL_SUPERVISOR_EVENT ${CONSUL_SUPERVISOR_PREVIOUS_END:-none}")
        return {
            "key": "service/app/leader",
            "session": SESSION | {"node_checks": ["serfHealth"]},
            "on_acquire": [{"shell": end, "timeout": "2s"}],
            "on_lose": [{"shell": stamp("lose $CONSUL_SUPERVISOR_REASON"), "timeout": "2s"}],
            "fence": {
                "shell": f'echo "$CONSUL_SUPERVISOR_PREVIOUS_TARGET" >>{SHOTS}',
                "timeout": "2s",
                "target": name,
                "exclusive": True,
            },
        }

    @contextmanager
    def device(self) -> Iterator[list[str]]:
        """Kill each machine that a fence names, within the block; yield the names."""
        shots, over = list[str](), threading.Event()

        def watch() -> None:
            while not over.wait(0.05):
                told = [line for each in self.machines.values() for line in each.read(SHOTS).split()]
                for name in told[len(shots) :]:
                    shots.append(name)
                    self.machines[name].kill()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield shots
        finally:
            over.set()
            watcher.join()

    def last_end(self, node: str) -> str:
        """Return how the tenure before ended, as the newest on_acquire of this node was told."""
        return next(
            each.reason for each in reversed(self.stamps()) if (each.node, each.event) == (node, "acquire")
        )


@pytest.fixture(scope="module")
def fenced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fenced]:
    with Fenced(tmp_path_factory.mktemp("fenced")) as machines:
        yield machines


def test_a_restored_snapshot_shoots_nobody_who_lives(fenced: Fenced, tmp_path: Path) -> None:
    """The node that the snapshot names is paused, so that another one acquires over its record."""
    led = fenced.wait_candidates()
    with fenced.device() as shots:
        fenced.machines[led].did("consul snapshot save /srv/old.snap")
        fenced.did(led, "pause app")
        fenced.did(led, "step-down app")
        until(lambda: "holder" in {part for node, part in fenced.members(led).items() if node != led}, "next")
        for machine in fenced.machines.values():
            machine.did(f"systemctl stop {UNIT}")
        fenced.machines[led].did("consul snapshot restore /srv/old.snap")
        for machine in fenced.machines.values():
            machine.did(f"systemctl start {UNIT}")
        others = [node for node in fenced.machines if node != led]
        until(lambda: "holding" in map(fenced.role, others), "another node leads", ROLES_S)
        holder = next(node for node in others if fenced.role(node) == "holding")
        assert fenced.last_end(holder) == "said" and shots == []
        assert all(machine.is_up for machine in fenced.machines.values())

        # The device does what it is told: a machine that is lost is shot, and the next one acts.
        fenced.did(led, "resume app")
        fenced.wait_candidates()
        fenced.lose_machine(holder)
        until(lambda: shots == [holder], "the lost machine is shot", ROLES_S)
