"""The control socket, which all commands find in one way."""

import inspect
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest

from supervisor.commands.cli import main
from supervisor.config import files
from tests.support.unix_peer import UnixPeer, answer_of

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
def test_each_command_without_options_reads_no_file(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(path: Path, report: object) -> NoReturn:
        raise AssertionError(f"{path} is read")

    monkeypatch.setattr(files, "read", read)
    for name, value in {"RUNTIME_DIRECTORY": f"{tmp_path}", "STATE_DIRECTORY": f"{tmp_path}"}.items():
        monkeypatch.setenv(name, value)
    assert main(words[:1]) == 69
    assert f"cannot reach {tmp_path}/control.sock: " in capsys.readouterr().err
    monkeypatch.setenv("CONSUL_SUPERVISOR_SOCKET", f"{tmp_path}/named.sock")
    assert main(words[:1]) == 69
    assert f"cannot reach {tmp_path}/named.sock: " in capsys.readouterr().err


def test_a_command_walks_through_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten files hold what such a command runs, so that a reader sees all of it in one sitting."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", f"{tmp_path}")
    walked: set[str] = set()

    def on_call(frame: FrameType, event: str, of: object) -> None:
        code = frame.f_code
        if event == "call" and "/supervisor/" in code.co_filename and code.co_flags & inspect.CO_OPTIMIZED:
            walked.add(code.co_filename)

    with UnixPeer(tmp_path / "control.sock", lambda: answer_of(b'{"done": true, "lines": ["done"]}')):
        sys.setprofile(on_call)
        try:
            assert main(["pause", "app"]) == 0
        finally:
            sys.setprofile(None)
    assert len(walked) <= 10, sorted(walked)


def test_a_half_saved_configuration_that_is_given_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names_socket(tmp_path, "/nonexistent").write_text("elections: {app: [")
    assert main(["reload", "--config", str(tmp_path)]) == 78
    assert f"{tmp_path}/c.yaml:2:1: cannot be read as YAML" in capsys.readouterr().err
