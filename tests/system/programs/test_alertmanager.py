"""Alertmanager with the alerts of the example: it accepts them, and shows the leader of now and no other."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.consul.webhook_forms import example
from tests.support.consul import HOST, Agent, free_ports
from tests.support.patience import PATIENCE_S
from tests.support.program import Program
from tests.support.supervisor import Supervisor, command, until

ROUTE = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"
NASTY = 'b "c" \\ é\n<!channel>'


class Alertmanager(Program):
    """A real Alertmanager at ``url``, without a cluster."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://{HOST}:{port}/"
        argv = ["prometheus-alertmanager", f"--config.file={folder}/alertmanager.yml"]
        argv += [f"--storage.path={folder}/data", f"--web.listen-address={HOST}:{port}"]
        super().__init__([*argv, "--cluster.listen-address="], folder / "alertmanager.log")
        (folder / "alertmanager.yml").write_text(ROUTE)

    def _is_ready(self) -> bool:
        return "Listening" in self.log

    def alerts(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}api/v2/alerts", timeout=PATIENCE_S) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def labels(self) -> list[dict[str, str]]:
        return [alert["labels"] for alert in self.alerts()]


def test_alertmanager_shows_the_leader_of_now_and_no_other(
    tmp_path: Path, shared_agent: Agent, unique: str
) -> None:
    labels = {"alertname": "Leader", "election": "billing"}
    with Alertmanager(tmp_path) as receiver:
        nodes = [
            Supervisor(
                tmp_path / name,
                example("alertmanager", receiver.url, shared_agent, f"{unique}/leader", value=value),
            )
            for name, value in (("a", "a"), ("b", NASTY))
        ]
        try:
            nodes[0].start()
            until(lambda: receiver.labels() == [{**labels, "leader": "a"}], "the first leader is shown")
            nodes[1].start()
            nodes[1].wait_line("hook-succeeded", reason="initial")
            assert nodes[0].stop() == 0
            until(lambda: receiver.labels() == [{**labels, "leader": NASTY}], "the next leader is shown")
            (alert,) = receiver.alerts()
            assert alert["annotations"]["summary"] == f'billing is led by "{NASTY}"'
            socket = str(nodes[1].folder / "control.sock")
            command("step-down", "billing", "--for", "1h", "--socket", socket)  # nobody takes over
            until(lambda: receiver.labels() == [labels], "nobody leads")
            assert not nodes[1].lines("hook-failed")
        finally:
            for node in nodes:
                node.close()
