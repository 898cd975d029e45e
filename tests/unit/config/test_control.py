"""Where commands reach the daemon: the daemon and the commands come to the same answer."""

from pathlib import Path

import pytest

from supervisor.config import ConfigError, ControlSettings, control_settings, load

DEFAULT = "/run/consul-supervisor/control.sock"


def both(file: Path, environ: dict[str, str]) -> ControlSettings:
    """What the daemon makes of the file, which is what the commands make of it."""
    found = load(file, environ, "node1").control
    assert found is not None and found == control_settings(file, environ)
    return found


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ("", {}, ControlSettings(DEFAULT)),
        ("", {"RUNTIME_DIRECTORY": ""}, ControlSettings(DEFAULT)),
        ("", {"RUNTIME_DIRECTORY": "/run/a"}, ControlSettings("/run/a/control.sock")),
        ("", {"RUNTIME_DIRECTORY": "/run/a:/run/b"}, ControlSettings("/run/a/control.sock")),
        ("control_group: adm", {}, ControlSettings(DEFAULT, "adm")),
        (
            "control_socket: /x/y",
            {"RUNTIME_DIRECTORY": "/run/a"},
            ControlSettings("/x/y", configured=True),
        ),
    ],
)
def test_the_file_comes_first_then_systemds_folder_then_the_default(
    given: str, environ: dict[str, str], expected: ControlSettings, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"{given}\nelections: {{app: {{}}}}\n")
    assert both(file, environ) == expected


def test_a_drop_in_may_say_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("elections: {app: {}}\n")
    (tmp_path / "b.yaml").write_text("control_socket: /x/y\n")
    assert both(tmp_path, {}).path == "/x/y"


def test_without_a_file_it_is_the_default() -> None:
    assert control_settings(None, {}) == ControlSettings(DEFAULT)
    assert control_settings(None, {"RUNTIME_DIRECTORY": "/run/a"}).path == "/run/a/control.sock"


def test_commands_do_not_mind_what_else_is_wrong_in_the_file(tmp_path: Path) -> None:
    """A daemon runs on with the file it was started with, whatever was saved since."""
    file = tmp_path / "c.yaml"
    file.write_text(
        "control_socket: /x/y\ncontrol_socket: /x/z\nfoo: 1\nelections: {app: {key: '${UNSET}'}}\n"
    )
    assert control_settings(file, {}).path == "/x/y"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("control_socket: x", "control_socket: cannot be this text"),
        ("control_socket: [", "cannot be read as YAML"),
        ("- a", "cannot be used: it is not a mapping"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_does_not_tell_is_refused(text: str | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        control_settings(file, {})
