"""A real Prometheus with the example's configuration, and supervisors that it scrapes."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from tests.consul.web.reader import Reader
from tests.support.consul import HOST, Agent, free_ports
from tests.support.pages import ROOT
from tests.support.program import Program
from tests.support.supervisor import PATIENCE_S, Supervisor, until

EXAMPLES = ROOT / "examples" / "prometheus"
ALERTS = EXAMPLES / "alerts.yml"
SCRAPE = EXAMPLES / "prometheus.yml"
TTL, LOCK_DELAY = "3s", "6s"


class ScrapedSupervisor(Supervisor):
    """One of several supervisors that contend for ``name``.

    on_lose: the program of its hook.
    settings: further settings of the election.
    slots: the limit of a semaphore in which it takes part. 0: there is none.
    """

    def __init__(
        self,
        folder: Path,
        agent: Agent,
        name: str,
        on_lose: str = "true",
        *,
        settings: Mapping[str, object] | None = None,
        slots: int = 0,
    ) -> None:
        hooks = {"on_acquire": [{"exec": ["true"]}], "on_lose": [{"exec": [on_lose], "timeout": "500ms"}]}
        election = {"key": f"{name}/leader", "session": {"ttl": TTL, "lock_delay": LOCK_DELAY}, **hooks}
        election |= settings or {}
        config: dict[str, Any] = {
            "consul": {"address": agent.url},
            "http": {"listen": f"{HOST}:0"},
            "elections": {name: election},
        }
        if slots:
            config["semaphores"] = {f"{name}-slots": {"prefix": f"{name}/slots", "limit": slots}}
        self.names = [name, f"{name}-slots"] if slots else [name]
        super().__init__(folder, config)

    @property
    def target(self) -> str:
        return f"{HOST}:{Reader(self).port}"


@contextmanager
def running(*nodes: ScrapedSupervisor) -> Iterator[None]:
    """Start the supervisors one after the other; the first holds."""
    try:
        nodes[0].start()
        for name in nodes[0].names:
            nodes[0].wait_line("role", item=name, role="holding")
        for node in nodes[1:]:
            node.start()
            until(lambda node=node: node.target, "it listens")  # type: ignore[misc]
        yield
        for node in nodes:
            node.assert_no_fault()
    finally:
        for node in nodes:
            node.close()


class Prometheus(Program):
    """A server of this test alone, with the example's configuration except for its targets.

    hurries: it scrapes once a second, and not as the example does.
    """

    def __init__(self, folder: Path, targets: list[str], *, hurries: bool = True) -> None:
        config = yaml.safe_load(SCRAPE.read_text())
        if hurries:
            config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(ALERTS)]
        (job,) = config["scrape_configs"]
        job["static_configs"] = [{"targets": targets}]
        (self._port,) = free_ports(1)
        argv = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        argv += [f"--web.listen-address={HOST}:{self._port}", "--log.level=warn"]
        super().__init__(argv, folder / "log", cwd=folder)
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))

    def _is_ready(self) -> bool:
        assert self.running, self.log
        try:
            return self._get("/-/ready").startswith("Prometheus")
        except OSError:
            return False

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{HOST}:{self._port}{path}", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def _asked(self, query: str) -> list[dict[str, Any]]:
        answer = json.loads(self._get(f"/api/v1/query?{urlencode({'query': query})}"))
        assert answer["status"] == "success", answer
        return list(answer["data"]["result"])

    def series(self, query: str) -> list[str]:
        """Return the value of each series that it computes now, as text."""
        return [each["value"][1] for each in self._asked(query)]

    def value(self, query: str) -> dict[str, float]:
        """Return the value that it computes now, by the instance of each series."""
        found = self._asked(query)
        return {each["metric"].get("instance", ""): float(each["value"][1]) for each in found}

    def firing(self) -> dict[str, dict[str, Any]]:
        """Return the alerts that fire, by their name."""
        alerts = json.loads(self._get("/api/v1/alerts"))["data"]["alerts"]
        return {each["labels"]["alertname"]: each for each in alerts if each["state"] == "firing"}
