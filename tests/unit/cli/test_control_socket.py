"""The control socket, which all commands find in one way."""

from pathlib import Path

import pytest

from supervisor.commands.cli import main, without_daemon
from supervisor.commands.cli.daemon_commands import socket_path
from supervisor.errors import OperatorError

COMMANDS = {
    "status": ["status", "--config"],
    "events": ["events", "--config"],
    "reload": ["reload", "--config"],
}


def names_socket(folder: Path, socket: str) -> Path:
    """Return a configuration with one election and this control socket."""
    file = folder / "c.yaml"
    file.write_text(f"{{control_socket: {socket}, state_dir: {folder}, elections: {{app: {{}}}}}}")
    return file


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_each_command_finds_the_socket_that_the_configuration_names(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = names_socket(tmp_path, f"{tmp_path}/c.sock")
    assert main([*words, str(file)]) == 69
    assert f"cannot reach {tmp_path}/c.sock: " in capsys.readouterr().err


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_each_command_prefers_the_socket_that_is_given(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = names_socket(tmp_path, "/nonexistent")
    assert main([*words, str(file), "--socket", f"{tmp_path}/given.sock"]) == 69
    assert f"cannot reach {tmp_path}/given.sock: " in capsys.readouterr().err


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_each_command_asks_the_usual_socket_while_a_drop_in_is_half_saved(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    names_socket(tmp_path, "/nonexistent").write_text("elections: {app: [")
    assert main([*words, str(tmp_path)]) == 69
    error = capsys.readouterr().err
    assert f"warning: {tmp_path}/c.yaml:2:1: cannot be read as YAML" in error
    assert f"so {tmp_path}/control.sock is asked" in error
    assert f"cannot reach {tmp_path}/control.sock: " in error


def test_a_missing_default_configuration_leaves_the_folder_of_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator who may use the socket need not be able to read the file."""
    monkeypatch.setattr(without_daemon, "DEFAULT_CONFIG", tmp_path / "none.yaml")
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/run/elsewhere")
    assert socket_path(None, None) == "/run/elsewhere/control.sock"


def test_a_missing_configuration_that_is_given_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"none\.yaml"):
        socket_path(None, tmp_path / "none.yaml")
