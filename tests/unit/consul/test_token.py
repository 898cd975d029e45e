"""The token for the next request: its file may be replaced, vanish, or be no regular file."""

import os
from pathlib import Path

import pytest

from supervisor.adapters.consul.token import TOKEN_BYTES_MAX, Token, TokenError, TokenHangs
from supervisor.config import ConsulSettings
from tests.support.hung import hung, needs_root
from tests.support.patience import PATIENCE_S
from tests.support.supervisor import until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def token(path: Path, warned: list[str] | None = None) -> Token:
    warn = list[str]() if warned is None else warned
    return Token(ConsulSettings("http://h", token_file=str(path)), warn.append)


def replaced(path: Path, content: str) -> None:
    """Replace the file as a careful tool does: whole or not at all."""
    new = path.with_suffix(".new")
    new.write_text(content)
    new.rename(path)


def test_without_a_token_file_the_token_is_that_of_the_settings() -> None:
    assert Token(ConsulSettings("http://h")).value() is None
    assert Token(ConsulSettings("http://h", token="t")).value() == "t"


def test_blanks_around_a_token_are_no_part_of_it(file: Path) -> None:
    file.write_text("\n  s3cret \r\n")
    assert token(file).value() == "s3cret"


def test_a_token_file_that_was_written_over_and_whose_time_was_set_back_is_read_again(file: Path) -> None:
    """``cp -p`` and ``rsync -t --inplace`` set the time back, and the size may be the same."""
    current = token(file)
    before = file.stat()
    file.write_text("other\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns and file.stat().st_size == before.st_size
    assert current.value() == "other"


def test_a_new_token_and_the_end_of_a_fault_are_logged_once(file: Path) -> None:
    renewed = list[str]()
    current = Token(ConsulSettings("http://h", token_file=str(file)), renewed=renewed.append)
    assert current.value() == "first" and not renewed
    replaced(file, "second")
    assert [current.value(), current.value()] == ["second"] * 2
    assert renewed == [f"the token in {file} is in use from now on"]
    replaced(file, "second")
    assert current.value() == "second" and len(renewed) == 1
    file.write_text("")
    assert current.value() == "second" and len(renewed) == 1
    file.write_text("second")
    assert current.value() == "second" and len(renewed) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        b"two tokens",
        b"two\ntokens\n",
        b"a\x00b",
        b"a\x7fb",
        b"\xff\xfe",
        "\u00e9".encode(),
        b"x" * (TOKEN_BYTES_MAX + 1),
    ],
)
def test_a_file_that_is_no_token_is_an_error_that_does_not_show_it(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(TokenError, match="must hold one token") as error:
        token(file)
    assert str(file) in str(error.value) and "tokens" not in str(error.value)


def test_a_token_file_that_is_missing_or_a_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(TokenError, match=f"cannot read the token file {tmp_path}/none: No such file"):
        token(tmp_path / "none")
    with pytest.raises(TokenError, match="it is no regular file"):
        token(tmp_path)


def test_a_later_fault_of_the_token_file_is_logged_once_and_the_last_token_stays(file: Path) -> None:
    warned = list[str]()
    current = token(file, warned)
    file.unlink()
    assert [current.value() for _ in range(3)] == ["first"] * 3
    assert len(warned) == 1 and str(file) in warned[0] and "stays in use" in warned[0]
    file.write_text("")
    assert [current.value() for _ in range(3)] == ["first"] * 3
    assert len(warned) == 2
    file.write_text("second")
    assert current.value() == "second"
    file.unlink()
    assert current.value() == "second" and len(warned) == 3


# --- on a file system that does not answer ---------------------------------------------------------


@needs_root
def test_the_last_token_stays_while_its_file_system_does_not_answer(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's loop goes on: that there is no answer is found later, and not waited for."""
    warned = list[str]()
    current = token(file, warned)
    with hung(file.parent):
        with monkeypatch.context() as patched:
            patched.setattr("supervisor.adapters.consul.token.WITHIN_S", PATIENCE_S)
            assert [current.value() for _ in range(10)] == ["first"] * 10
            assert not warned
        until(lambda: current.value() == "first" and warned, "there is a warning")
        assert len(warned) == 1 and "did not answer within" in warned[0]
    replaced(file, "second")
    until(lambda: current.value() == "second", "the file is read again")
    current.close()


@pytest.mark.long
@needs_root
def test_a_patient_start_goes_on_without_a_token_until_its_file_system_answers(file: Path) -> None:
    warned, renewed = list[str](), list[str]()
    settings = ConsulSettings("http://h", token_file=str(file))
    with hung(file.parent):
        current = Token(settings, warned.append, renewed.append, forgiven=TokenHangs)
        assert current.value() is None and "until the file is good" in warned[0]
        with pytest.raises(TokenError, match="did not answer within 1 s"):
            Token(settings)
        with pytest.raises(TokenError, match="did not answer within 1 s"):
            current.change(settings)
    until(lambda: current.value() == "first", "the file is read")
    assert len(renewed) == 1
    current.close()
