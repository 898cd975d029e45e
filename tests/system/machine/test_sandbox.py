"""The actions that the unit's sandbox allows to hooks, those that it forbids, and how it is loosened."""

import json
import shutil
import signal
from pathlib import Path

from tests.support.supervisor import until
from tests.system.machine.node import DROP_INS, EVENTS, SESSION, UNIT, Node, record

ROOT = Path(__file__).resolve().parents[3]
SERVICE = "[Service]\nExecStart=/bin/sleep infinity\n"
MASTER = "7f1b2c64-0f5e-4b41-9d6c-0d2a8f5b9a11"
ACL = {"acl": {"enabled": True, "default_policy": "deny", "tokens": {"master": MASTER}}}


def result_of(node: Node, hook: object) -> str:
    """Return ok or failed, as the log reports the hook of on_acquire."""
    node.start_holding(app=node.election(on_acquire=[hook], acquire_failure="keep"))
    return "ok" if node.log("hook-succeeded") else f"failed: {node.log_text()}"


def test_hooks_start_and_stop_other_services(node: Node) -> None:
    node.machine.write("/etc/systemd/system/test-app.service", SERVICE)
    node.machine.did("systemctl daemon-reload")
    on_lose = [{"exec": ["systemctl", "stop", "test-app"]}, {"shell": record("lose")}]
    on_acquire = [{"exec": ["systemctl", "start", "test-app"]}]
    node.start_holding(app=node.election(on_acquire=on_acquire, on_lose=on_lose))
    assert node.machine.did("systemctl is-active test-app") == "active\n"
    before = node.pid
    node.kill(signal.SIGKILL)
    node.wait_new_process(before)
    assert node.machine.did("systemctl is-active test-app") == "active\n"
    node.stop()
    assert node.machine.sh("systemctl is-active test-app").stdout == "inactive\n"
    assert node.events() == ["lose shutdown"]


MAY = {
    "address": "ip address add 192.0.2.9/32 dev lo && ip address del 192.0.2.9/32 dev lo",
    "mount-by-systemd": "systemd-run --quiet --wait --pipe mount -t tmpfs tmpfs /mnt && mountpoint -q /mnt",
    "tmp": "echo x >/tmp/test-hook && rm /proc/1/root/tmp/test-hook",
    "folders": "for folder in /var /run /srv /opt; do touch $folder/test-x && rm $folder/test-x; done",
    "setpriv": "setpriv --reuid=nobody --regid=nogroup --clear-groups true",
    "sudo": "sudo -n true",
    "others-processes": "setpriv --reuid=nobody --regid=nogroup --clear-groups sleep 99 & sleep 1; kill $!",
    "no-notify-socket": 'test -z "$NOTIFY_SOCKET$WATCHDOG_USEC$WATCHDOG_PID"',
    "own-code": "python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)'",
    "low-port": "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 99))'",
}
MAY_NOT = {
    "usr": "touch /usr/x",
    "etc": "touch /etc/x",
    "root": "touch /root/x",
    "mount": "mount -t tmpfs tmpfs /mnt",
    "namespace": "unshare --net true",
    "sysctl": "echo 1 >/proc/sys/vm/overcommit_memory",
    "clock": "date -s 12:00",
    "disk": "mknod /srv/test-disk b 8 0",
}


def test_a_hook_may_do_only_what_the_sandbox_allows(node: Node) -> None:
    """The table of docs/systemd.md is tried row by row, each row in an election of its own."""
    hooks: dict[str, dict[str, object]] = {name: {"shell": text} for name, text in (MAY | MAY_NOT).items()}
    hooks["user"] = {"shell": "test $(id -un) = nobody", "user": "nobody"}
    settings = {"acquire_failure": "keep", "session": SESSION}
    elections = {
        name: {**settings, "key": f"{node.key}/{name}", "on_acquire": [hook]} for name, hook in hooks.items()
    }
    node.configure(**elections)
    node.start()

    def ended() -> dict[str, str]:
        both = [*node.log("hook-succeeded"), *node.log("hook-failed")]
        return {line["item"]: line["event"] for line in both}

    until(lambda: len(ended()) == len(hooks), "all have ended", 60.0, node.log_text)
    output = [(line["item"], line["text"]) for line in node.log("hook-output")]
    failed = {name for name, event in ended().items() if event == "hook-failed"}
    assert failed == set(MAY_NOT), output
    node.machine.did("umount /mnt")


def test_a_line_of_a_drop_in_opens_a_folder(node: Node) -> None:
    node.drop_in("[Service]\nReadWritePaths=/etc/default\n")
    assert result_of(node, {"shell": "touch /etc/default/x && rm /etc/default/x"}) == "ok"


def test_a_hook_that_wants_sudo_has_the_drop_in(node: Node) -> None:
    node.machine.write("/etc/sudoers.d/nobody", "nobody ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    use(node, "loosen-sudo.conf")
    assert result_of(node, {"exec": ["sudo", "-n", "true"], "user": "nobody"}) == "ok"


def test_a_hook_that_mounts_has_the_drop_in(node: Node) -> None:
    """The mount is visible to all processes of the machine."""
    use(node, "loosen-storage.conf")
    assert result_of(node, {"shell": "mount -t tmpfs tmpfs /mnt"}) == "ok"
    node.machine.did("mountpoint -q /mnt; umount /mnt")


def test_a_token_comes_as_a_credential(node: Node) -> None:
    """Consul denies everything without the token, and no hook gets the token."""
    use(node, "credentials.conf")
    node.machine.write("/etc/consul-supervisor/token", f"{MASTER}\n", 0o600)
    node.machine.write("/etc/consul.d/acl.json", json.dumps(ACL))
    try:
        node.machine.did("systemctl restart consul")
        consul = {"token_file": "${CREDENTIALS_DIRECTORY}/token"}
        hook = {"shell": f"env | grep -c {MASTER} >>{EVENTS} || true"}
        node.configure(consul=consul, app=node.election(on_acquire=[hook]))
        node.start()
        node.wait_event("0")
        assert node.holder(MASTER) and not node.holder()
        assert MASTER not in node.log_text()
    finally:
        node.stop()
        (node.machine.root / "etc/consul.d/acl.json").unlink()
        node.machine.did("systemctl stop consul; rm -rf /var/lib/consul; systemctl start consul")


def use(node: Node, name: str) -> None:
    """Install one of the drop-ins as its first lines describe."""
    folder = node.machine.root / DROP_INS.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "systemd" / name, folder)
    node.machine.did(f"systemctl daemon-reload; systemctl cat {UNIT} >/dev/null")
