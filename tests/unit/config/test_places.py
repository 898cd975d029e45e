"""The control socket and the folder of the records: the daemon and the commands find the same ones."""

from pathlib import Path

import pytest

from supervisor.config import ConfigError, ControlSettings, load, schema
from supervisor.config.places import DEFAULT, STATE_DIR, control_socket

USUAL = str(DEFAULT)
A = "/run/a/control.sock"
IN_A = {"RUNTIME_DIRECTORY": "/run/a"}


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ("", {}, ControlSettings(USUAL, link=USUAL)),
        ("", {"RUNTIME_DIRECTORY": ""}, ControlSettings(USUAL, link=USUAL)),
        ("", IN_A, ControlSettings(A, link=A)),
        ("", {"RUNTIME_DIRECTORY": "/run/a:/run/b"}, ControlSettings(A, link=A)),
        ("control_group: adm", {}, ControlSettings(USUAL, "adm", link=USUAL)),
        ("control_socket: /x/y", IN_A, ControlSettings("/x/y", configured=True, link=A)),
    ],
)
def test_the_file_comes_first_then_the_folder_of_systemd_then_the_default(
    given: str, environ: dict[str, str], expected: ControlSettings, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"{given}\nelections: {{app: {{}}}}\n")
    assert load(file, environ, "node1").control == expected
    assert control_socket(file, environ) == expected.path
    assert control_socket(None, environ) == expected.link


def test_without_a_file_the_variable_comes_before_the_folder_of_systemd() -> None:
    environ = {"CONSUL_SUPERVISOR_SOCKET": "/x/y", **IN_A}
    assert control_socket(None, environ) == "/x/y"
    assert control_socket(None, {**environ, "CONSUL_SUPERVISOR_SOCKET": ""}) == A
    assert schema()["properties"]["control_socket"]["default"] == USUAL
    assert schema()["properties"]["state_dir"]["default"] == STATE_DIR


def test_commands_find_the_socket_in_a_file_with_other_faults(tmp_path: Path) -> None:
    """A daemon goes on with the file that it was started with, and the file may have been changed since."""
    file = tmp_path / "c.yaml"
    file.write_text("control_socket: /x/y\nfoo: 1\nelections: {app: {key: '${UNSET}'}}\n")
    assert control_socket(file, {"CONSUL_SUPERVISOR_SOCKET": "/none"}) == "/x/y"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("control_socket: 7", "control_socket: cannot be used"),
        ("control_socket: /x/y\nelections: {app: [\n", "cannot be read as YAML"),
        ("", "cannot be used: it is empty"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_is_given_and_cannot_be_read_is_refused(
    text: str | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        control_socket(file, {})
