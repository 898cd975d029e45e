"""A node: in a booted machine the product as the documentation installs it, a Consul, and its hooks.

It is spoken to as an operator does: files, systemctl, journalctl, the consul command.
"""

import json
import shutil
import signal
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.consul import BINARY
from tests.support.supervisor import PATIENCE_S, until
from tests.system.machine.machine import Machine
from tests.system.machine.wheels import make_wheels

ROOT = Path(__file__).resolve().parents[3]
UNIT = "consul-supervisor"
CONFIG = "/etc/consul-supervisor/app.yaml"
DROP_INS = f"/etc/systemd/system/{UNIT}.service.d"
EVENTS = "/srv/events"
CONSUL_CONFIG: dict[str, Any] = {
    "server": True,
    "bootstrap_expect": 1,
    "bind_addr": "127.0.0.1",
    "data_dir": "/var/lib/consul",
    "performance": {"raft_multiplier": 1},
    "session_ttl_min": "1s",
    "disable_update_check": True,
    "log_level": "warn",
}
CONSUL_UNIT = """[Unit]
Description=Consul
[Service]
ExecStart=/usr/local/bin/consul agent -config-dir=/etc/consul.d
KillMode=process
[Install]
WantedBy=multi-user.target
"""


def record(what: str) -> str:
    """A shell command that puts a line on record, with what the hook was told."""
    return f'echo "{what} $CONSUL_SUPERVISOR_REASON" >>{EVENTS}'


def install_product(machine: Machine, wheels: Path) -> None:
    """By the steps of the README, from a folder of wheels in place of a network; nothing is started."""
    shutil.copytree(wheels, machine.root / "srv" / "wheels")
    shutil.copy(ROOT / "systemd" / f"{UNIT}.service", machine.root / "etc" / "systemd" / "system")
    machine.did(
        "python3 -m venv /opt/consul-supervisor;"
        "/opt/consul-supervisor/bin/pip install -q --no-index --find-links /srv/wheels consul-supervisor;"
        "ln -sf /opt/consul-supervisor/bin/consul-supervisor /usr/local/bin/;"
        "systemctl daemon-reload"
    )


class Node:
    """Everything that is done to one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.key = ""  # of the test's election: no other test's lock-delay is on it

    def install(self, folder: Path) -> None:
        """Consul, and the product by the steps of the README, from wheels in place of a network."""
        make_wheels(folder / "wheels")
        shutil.copy(BINARY, self.machine.root / "usr" / "local" / "bin" / "consul")
        self.machine.write("/etc/systemd/system/consul.service", CONSUL_UNIT)
        self.machine.write("/etc/consul.d/consul.json", json.dumps(CONSUL_CONFIG))
        install_product(self.machine, folder / "wheels")
        self.machine.did(f"systemctl enable -q --now consul; systemctl enable -q {UNIT}")
        self.wait_consul()

    def election(self, **settings: Any) -> dict[str, Any]:
        """An election whose hooks are put on record."""
        hooks = {name: [{"shell": record(name.removeprefix("on_"))}] for name in ("on_acquire", "on_lose")}
        return {"key": self.key, "session": {"ttl": "10s", "lock_delay": "30s"}, **hooks, **settings}

    # --- the supervisor --------------------------------------------------------------------------

    def configure(self, *, consul: Mapping[str, Any] | None = None, **elections: Mapping[str, Any]) -> None:
        """The file of this node."""
        content = {"consul": dict(consul or {}), "elections": elections}
        unshared = json.loads(json.dumps(content))  # what is there twice would become a YAML alias
        self.machine.write(CONFIG, yaml.safe_dump(unshared, sort_keys=False))

    def drop_in(self, text: str, name: str = "test.conf") -> None:
        """Change the unit as an operator does."""
        self.machine.write(f"{DROP_INS}/{name}", text)
        self.machine.did("systemctl daemon-reload")

    def start(self) -> None:
        """Returns when systemd says that it is up; AssertionError with its log when it says no."""
        ran = self.machine.run("systemctl", "start", UNIT)
        assert ran.returncode == 0, ran.stderr + self.log_text()

    def start_holding(self, **elections: Mapping[str, Any]) -> str:
        """Start with these elections, by default one named app, and wait for the first; its session."""
        self.configure(**(elections or {"app": self.election()}))
        self.start()
        return self.wait_holds()

    def stop(self) -> None:
        """Returns when it has ended."""
        self.machine.did(f"systemctl stop {UNIT}", within_s=180.0)

    def wait_holds(self) -> str:
        """The session that holds the first election, once it is put on record that on_acquire is done."""
        return until(
            lambda: self.holder() if self.status.startswith("holds 1") else "",
            f"it holds\n{self.log_text()}",
        )

    def wait_new_process(self, old: int) -> int:
        """The pid of the process that systemd started after this one."""

        def fresh() -> int:
            pid = self.pid
            return pid if pid not in (0, old) and self.show("ActiveState") == ["active"] else 0

        return until(fresh, f"another process than {old} is up\n{self.log_text()}")

    def kill(self, number: signal.Signals) -> None:
        """A signal to the supervisor's own process."""
        self.machine.did(f"kill -{number.value} {self.pid}")

    def show(self, *names: str) -> list[str]:
        """These properties of the unit, in this order, as systemd has them now."""
        text = self.machine.did(f"systemctl show -p {','.join(names)} {UNIT}")
        found = dict(line.split("=", 1) for line in text.splitlines())
        return [found[name] for name in names]

    @property
    def pid(self) -> int:
        """The process id in the machine; 0 when none runs."""
        return int(self.show("MainPID")[0])

    @property
    def status(self) -> str:
        """The line that it gives systemd."""
        return self.show("StatusText")[0]

    @property
    def restarts(self) -> int:
        """How often systemd has started it by itself."""
        return int(self.show("NRestarts")[0])

    def events(self) -> list[str]:
        """What hooks put on record, oldest first."""
        return self.machine.read(EVENTS).splitlines()

    def wait_event(self, event: str, within_s: float = PATIENCE_S) -> None:
        """Return when a hook has put this on record."""
        until(lambda: event in self.events(), f"{event}: {self.events()}\n{self.log_text()}", within_s)

    def log(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """The lines of its log with this event and these fields, oldest first."""
        texts = self.log_text().splitlines()
        decoded = [json.loads(text) for text in texts if text.startswith("{")]
        return [line for line in decoded if line["event"] == event and fields.items() <= line.items()]

    def log_text(self) -> str:
        """All that the unit has written since the test began, with what systemd says of it."""
        return self.machine.sh(f"journalctl -o cat --no-pager -u {UNIT}").stdout

    # --- Consul ----------------------------------------------------------------------------------

    def consul(self, *arguments: str, token: str = "") -> str:
        """What the consul command wrote; blank when it failed."""
        environ = {"CONSUL_HTTP_TOKEN": token} if token else {}
        return self.machine.run("consul", *arguments, environ=environ).stdout

    def wait_consul(self) -> None:
        """Return when it takes writes."""
        until(lambda: "Success" in self.consul("kv", "put", "test/ready"), "Consul takes writes")

    def holder(self, token: str = "") -> str:
        """The session that holds the key; blank for none."""
        shown = self.consul("kv", "get", "-detailed", self.key, token=token).splitlines()
        found = (line.split()[1] for line in shown if line.startswith("Session") and len(line.split()) == 2)
        return next((session for session in found if session != "-"), "")

    def destroy(self, session: str) -> None:
        """As an operator would who frees a key."""
        url = f"http://127.0.0.1:8500/v1/session/destroy/{session}"
        code = f"import urllib.request as r; r.urlopen(r.Request('{url}', method='PUT'))"
        self.machine.did(f'python3 -c "{code}"')

    # --- between two tests -----------------------------------------------------------------------

    def clean(self) -> None:
        """Nothing of the last test is left: no process, record or file of it, and another key."""
        self.machine.sh("systemctl unfreeze consul; systemctl kill -s CONT consul; systemctl start consul")
        self.machine.sh(
            f"systemctl kill -s KILL {UNIT}; systemctl stop {UNIT}; systemctl reset-failed {UNIT}"
        )
        self.machine.did(
            f"umount -q /var/lib/{UNIT} || true;"
            f"rm -rf /etc/consul-supervisor/* {DROP_INS} /var/lib/{UNIT} /run/{UNIT} /srv/events /srv/test-*;"
            "rm -f /etc/systemd/system/test-*; systemctl daemon-reload;"
            "journalctl -q --rotate; journalctl -q --vacuum-time=1ms"
        )
        self.wait_consul()
        self.key = f"test/{uuid.uuid4().hex}"
