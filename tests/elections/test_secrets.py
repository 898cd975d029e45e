"""What must not get out does not, and what a whole life logs is whole."""

import json
from pathlib import Path

from tests.elections.scene import Scene
from tests.web.reader import Reader

TOKEN = "t0ken-7b0f0e2c-3f5b"
HEADER = "h3ader-4d3a-9a51"
SIGNING = "whsec_c2lnbmluZy1zZWNyZXQtZm9yLXRoaXMtdGVzdA=="
SECRETS = (TOKEN, HEADER, SIGNING)


def of_process(pid: int, what: str) -> str:
    return Path(f"/proc/{pid}/{what}").read_bytes().decode(errors="replace")


def test_secrets_are_in_no_log_no_status_no_environment_of_a_hook_and_no_command_line(
    scene: Scene, tmp_path: Path
) -> None:
    """The webhook fails, the token's file turns bad, and the hook prints its whole environment."""
    signing, token = tmp_path / "hook.key", tmp_path / "token"
    signing.write_text(SIGNING)
    token.write_text(TOKEN)
    webhook = {
        "webhook": f"http://127.0.0.1:1/{HEADER}?key={HEADER}",
        "headers": {"Authorization": HEADER},
        "body": HEADER,
        "secret_file": str(signing),
    }
    a = scene.node(
        "a",
        consul={"token_file": str(token)},
        environ={"CONSUL_HTTP_TOKEN": TOKEN, "NOTIFY_SOCKET": "/none", "WATCHDOG_USEC": "1"},
        on_acquire=[scene.hook("a", "acquire", "env; sleep 60")],
        on_change=[webhook],
    )
    a.wait_line("hook-failed", hook="on_change[0]")
    a.wait_line("hook-output", hook="on_acquire[0]")
    token.write_text(f"{TOKEN} {TOKEN}")
    a.wait_line("token-file")
    status = Reader(a).ask_socket("/v1/status").body
    assert '"hook":"on_change[0]"' in status
    texts = {
        "log": a.log_text,
        "status": status,
        "command line of the supervisor": of_process(a.pid, "cmdline"),
    }
    for process in scene.processes():
        if process.pid != a.pid:
            texts[f"environment of {process.name()}"] = of_process(process.pid, "environ")
            texts[f"command line of {process.name()}"] = of_process(process.pid, "cmdline")
    assert "environment of sleep" in texts
    for where, text in texts.items():
        found = [secret for secret in SECRETS if secret in text]
        assert not found, f"{found} in the {where}"
    assert "NOTIFY_SOCKET" not in texts["environment of sleep"]
    assert "WATCHDOG" not in texts["environment of sleep"]


def test_every_line_of_a_life_is_one_json_object(scene: Scene) -> None:
    """Whatever a hook writes."""
    body = "echo out; echo '{\"event\": \"x\"}' >&2; printf '\\033[31m\\377 no newline'"
    a = scene.leader("a", on_acquire=[scene.hook("a", "acquire", body)])
    assert a.stop() == 0
    lines = [json.loads(text) for text in a.log_text.splitlines()]
    events = {line["event"] for line in lines}
    assert {"started", "role", "hook-started", "hook-output", "hook-succeeded", "stopping"} < events
    assert lines[-1]["event"] == "stopped"
    outputs = [(line["stream"], line["text"]) for line in a.lines("hook-output")]
    assert ("stdout", "out") in outputs and ("stderr", '{"event": "x"}') in outputs
    assert ("stdout", "\\x1b[31m\ufffd no newline") in outputs, outputs
