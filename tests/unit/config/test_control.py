"""The address of the control socket: the daemon and the commands find the same one."""

from pathlib import Path

import pytest

from supervisor.config import ConfigError, ControlSettings, load
from supervisor.config.control import control_socket

DEFAULT = "/run/consul-supervisor/control.sock"


def both(file: Path, environ: dict[str, str]) -> ControlSettings:
    """Return the daemon's control settings, after a check that commands find the same socket."""
    found = load(file, environ, "node1").control
    assert found is not None and control_socket(file, environ) == (found.path, "")
    return found


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ("", {}, ControlSettings(DEFAULT)),
        ("", {"RUNTIME_DIRECTORY": ""}, ControlSettings(DEFAULT)),
        ("", {"RUNTIME_DIRECTORY": "/run/a"}, ControlSettings("/run/a/control.sock")),
        ("", {"RUNTIME_DIRECTORY": "/run/a:/run/b"}, ControlSettings("/run/a/control.sock")),
        ("control_group: adm", {}, ControlSettings(DEFAULT, "adm")),
        ("control_socket: /x/y", {"RUNTIME_DIRECTORY": "/run/a"}, ControlSettings("/x/y", configured=True)),
    ],
)
def test_the_file_comes_first_then_the_folder_of_systemd_then_the_default(
    given: str, environ: dict[str, str], expected: ControlSettings, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"{given}\nelections: {{app: {{}}}}\n")
    assert both(file, environ) == expected


def test_without_a_file_commands_use_the_default_socket() -> None:
    assert control_socket(None, {}) == (DEFAULT, "")
    assert control_socket(None, {"RUNTIME_DIRECTORY": "/run/a"}) == ("/run/a/control.sock", "")


def test_commands_find_the_socket_in_a_file_with_other_faults(tmp_path: Path) -> None:
    """A daemon goes on with the file that it was started with, and the file may have been changed since."""
    file = tmp_path / "c.yaml"
    file.write_text(
        "control_socket: /x/y\ncontrol_socket: /x/z\nfoo: 1\nelections: {app: {key: '${UNSET}'}}\n"
    )
    assert control_socket(file, {}) == ("/x/y", "")


@pytest.mark.parametrize("half", ["elections: {app: [\n", "\x00", ""])
def test_a_half_saved_drop_in_hides_no_socket_of_another_file(half: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("control_socket: /x/y\n")
    (tmp_path / "b.yaml").write_text(half)
    assert control_socket(tmp_path, {}) == ("/x/y", "")


@pytest.mark.parametrize(
    "text",
    [
        "elections: {app: [\ncontrol_socket: /x/y\n",
        "elections: {app: [\ncontrol_socket: '/x/y'  # of app\n",
        '{"elections": {"app": [}, "control_socket": "/x/y"}',
    ],
)
def test_a_socket_is_found_behind_an_error_of_syntax(text: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert control_socket(file, {}) == ("/x/y", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("control_socket: x", "control_socket: cannot be used"),
        (f"control_socket: /{'x' * 107}", "control_socket: cannot be used"),
        ("control_socket: [", "cannot be read as YAML"),
        ("- a", "cannot be used: it is not a mapping"),
        ("", "cannot be used: it is empty"),
    ],
)
def test_a_file_that_may_hide_its_socket_leaves_the_usual_one_with_a_doubt(
    text: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    path, doubt = control_socket(file, {"RUNTIME_DIRECTORY": "/run/a"})
    assert path == "/run/a/control.sock" and words in doubt and str(file) in doubt


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        control_socket(tmp_path / "c.yaml", {})
