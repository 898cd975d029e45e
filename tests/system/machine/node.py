"""A node: a booted machine with the product as the documentation installs it, a Consul, and its hooks.

Tests use it as an operator does: files, systemctl, journalctl, the consul command.
"""

import json
import re
import shutil
import signal
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.consul import BINARY
from tests.support.supervisor import until
from tests.system.machine.machine import Machine
from tests.system.machine.wheels import make_wheels

ROOT = Path(__file__).resolve().parents[3]
UNIT = "consul-supervisor"
CONFIG = "/etc/consul-supervisor/app.yaml"
DROP_INS = f"/etc/systemd/system/{UNIT}.service.d"
EVENTS = "/srv/events"
# A restart keeps a tenure for as long as this, also on a machine that is slow.
SESSION = {"ttl": "30s", "lock_delay": "60s"}
FIELD = re.compile("^CONSUL_SUPERVISOR_")
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
    """Return a shell command that records a line, with the hook's own variables."""
    return f'echo "{what} $CONSUL_SUPERVISOR_REASON" >>{EVENTS}'


def install_product(machine: Machine, wheels: Path) -> None:
    """Install the product by the steps of the README, from a folder of wheels, and start nothing."""
    shutil.copytree(wheels, machine.root / "srv" / "wheels")
    shutil.copy(ROOT / "systemd" / f"{UNIT}.service", machine.root / "etc" / "systemd" / "system")
    machine.did(
        "python3 -m venv /opt/consul-supervisor;"
        "/opt/consul-supervisor/bin/pip install -q --no-index --find-links /srv/wheels consul-supervisor;"
        "ln -sf /opt/consul-supervisor/bin/consul-supervisor /usr/local/bin/;"
        "systemctl daemon-reload"
    )


class Node:
    """The operations of a test on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.key = ""  # a key that no other test's lock-delay affects

    def install(self, folder: Path) -> None:
        """Install Consul and the product, from wheels instead of a network."""
        make_wheels(folder / "wheels")
        self.install_consul()
        install_product(self.machine, folder / "wheels")
        self.machine.did(f"systemctl enable -q {UNIT}")

    def install_consul(self) -> None:
        """Install Consul, and return when it accepts writes."""
        shutil.copy(BINARY, self.machine.root / "usr" / "local" / "bin" / "consul")
        self.machine.write("/etc/systemd/system/consul.service", CONSUL_UNIT)
        self.machine.write("/etc/consul.d/consul.json", json.dumps(CONSUL_CONFIG))
        self.machine.did("systemctl daemon-reload; systemctl enable -q --now consul")
        self.wait_consul()

    def election(self, **settings: Any) -> dict[str, Any]:
        """Return an election whose hooks record lines."""
        hooks = {name: [{"shell": record(name.removeprefix("on_"))}] for name in ("on_acquire", "on_lose")}
        return {"key": self.key, "session": SESSION, **hooks, **settings}

    # --- the supervisor --------------------------------------------------------------------------

    def configure(self, *, consul: Mapping[str, Any] | None = None, **elections: Mapping[str, Any]) -> None:
        content = {"consul": dict(consul or {}), "elections": elections}
        unshared = json.loads(json.dumps(content))  # a value that occurs twice would become a YAML alias
        self.machine.write(CONFIG, yaml.safe_dump(unshared, sort_keys=False))

    @contextmanager
    def changed(self, path: str, text: str | None) -> Iterator[None]:
        """Have this content in a file, or no file, and then again what was there, whatever happens."""
        file = self.machine.root / path.lstrip("/")
        former = file.with_name(f"{file.name}.former")
        if file.exists():
            file.rename(former)
        try:
            if text is not None:
                self.machine.write(path, text)
            yield
        finally:
            file.unlink(missing_ok=True)
            if former.exists():
                former.rename(file)

    def drop_in(self, text: str) -> None:
        self.machine.write(f"{DROP_INS}/test.conf", text)
        self.machine.did("systemctl daemon-reload")

    def start(self) -> None:
        """Start the unit; return when systemd reports that it is up, and fail with its log otherwise."""
        ran = self.machine.run("systemctl", "start", UNIT)
        assert ran.returncode == 0, ran.stderr + self.log_text()

    def start_holding(self, **elections: Mapping[str, Any]) -> str:
        """Start with these elections, or one named app; return the session of the first when it holds."""
        self.configure(**(elections or {"app": self.election()}))
        self.start()
        return self.wait_holds()

    def stop(self) -> None:
        self.machine.did(f"systemctl stop {UNIT}", within_s=180.0)

    def wait_holds(self) -> str:
        """Return the session that holds the first election, as soon as its on_acquire is recorded as done."""
        return until(
            lambda: self.holder() if self.status.startswith("holds 1") else "", "it holds", log=self.log_text
        )

    def wait_new_process(self, old: int) -> int:
        """Return the pid of the process that systemd has started after this one."""

        def fresh() -> int:
            pid = self.pid
            return pid if pid not in (0, old) and self.show("ActiveState") == ["active"] else 0

        return until(fresh, f"another process than {old} is up", log=self.log_text)

    def kill(self, number: signal.Signals) -> None:
        self.machine.did(f"kill -{number.value} {self.pid}")

    def show(self, *names: str) -> list[str]:
        """Return these properties of the unit, in this order, as systemd has them now."""
        text = self.machine.did(f"systemctl show -p {','.join(names)} {UNIT}")
        found = dict(line.split("=", 1) for line in text.splitlines())
        return [found[name] for name in names]

    @property
    def pid(self) -> int:
        """The supervisor's process id in the machine; 0 when it does not run."""
        return int(self.show("MainPID")[0])

    @property
    def status(self) -> str:
        return self.show("StatusText")[0]

    def events(self) -> list[str]:
        """Return the lines that hooks have recorded, oldest first."""
        return self.machine.read(EVENTS).splitlines()

    def wait_event(self, event: str) -> None:
        until(lambda: event in self.events(), event, log=lambda: f"{self.events()}\n{self.log_text()}")

    def log(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """Return the lines of the log with this event and these fields, oldest first. Values are text."""
        lines = self.journal(f"CONSUL_SUPERVISOR_EVENT={event}")
        named = [{FIELD.sub("", name).lower(): value for name, value in line.items()} for line in lines]
        return [line for line in named if fields.items() <= line.items()]

    def journal(self, *matches: str) -> list[dict[str, Any]]:
        """Return the unit's lines in the journal that match, with all of their fields."""
        told = self.machine.sh(f"journalctl -o json --all --no-pager -u {UNIT} {' '.join(matches)}").stdout
        return [json.loads(line) for line in told.splitlines()]

    def log_text(self) -> str:
        """Return the unit's output since the test began, with systemd's own lines about it."""
        return self.machine.sh(f"journalctl -o cat --no-pager -u {UNIT}").stdout

    # --- Consul ----------------------------------------------------------------------------------

    def consul(self, *arguments: str, token: str = "") -> str:
        """Return the output of the consul command; blank when it failed."""
        environ = {"CONSUL_HTTP_TOKEN": token} if token else {}
        return self.machine.run("consul", *arguments, environ=environ).stdout

    def wait_consul(self) -> None:
        until(lambda: "Success" in self.consul("kv", "put", "test/ready"), "Consul takes writes")

    def holder(self, token: str = "") -> str:
        """Return the session that holds the key; blank for none."""
        shown = self.consul("kv", "get", "-detailed", self.key, token=token).splitlines()
        found = (line.split()[1] for line in shown if line.startswith("Session") and len(line.split()) == 2)
        return next((session for session in found if session != "-"), "")

    def destroy(self, session: str) -> None:
        """Destroy a session as an operator does to free a key."""
        url = f"http://127.0.0.1:8500/v1/session/destroy/{session}"
        code = f"import urllib.request as r; r.urlopen(r.Request('{url}', method='PUT'))"
        self.machine.did(f'python3 -c "{code}"')

    # --- between two tests -----------------------------------------------------------------------

    def clean(self) -> None:
        """Remove every process, record and file of the last test, and choose another key."""
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
