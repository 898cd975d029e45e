"""A start whose former state_dir, which a file in systemd's folder names, does not answer."""

from pathlib import Path

from supervisor.commands.cli.exit_codes import NEGATIVE
from tests.support.hung import hung, needs_root
from tests.support.supervisor import command


@needs_root
def test_a_start_ends_in_time_if_the_former_state_dir_does_not_answer(tmp_path: Path) -> None:
    """systemd starts the daemon again, and the file system may be back by then."""
    far, file = tmp_path / "far", tmp_path / "supervisor.yaml"
    far.mkdir()
    (tmp_path / "state_dir").write_text(str(far))
    file.write_text(f"state_dir: {tmp_path / 'state'}\nelections: {{app: {{}}}}\n")
    with hung(far):
        done = command("run", str(file), environ={"RUNTIME_DIRECTORY": str(tmp_path)})
    assert done.returncode == NEGATIVE, done.stderr
    assert f"cannot use state_dir {far}: its file system did not answer within 3 s" in done.stderr
