"""Tasks of the role, played by the real Ansible on this host, in folders of the test's own."""

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from tests.support.captured import captured
from tests.support.programs import script
from tests.support.supervisor import ENVIRON, ROOT
from tests.system.machine.fleet import ANSIBLE, EXAMPLE

ROLE = EXAMPLE / "roles" / "consul_supervisor"
PLAY_S = 300.0
SYSTEMD_S = 30.0
NOBODY = 65534


def play(folder: Path, tasks: list[dict[str, Any]], **variables: Any) -> tuple[int, str]:
    """Play the tasks with the role's own variables and these; return the exit code and what was printed."""
    (folder / "variables.json").write_text(json.dumps(variables))
    defined = [str(ROLE / part / "main.yml") for part in ("defaults", "vars")]
    plays = [{"hosts": "localhost", "gather_facts": False, "vars_files": defined, "tasks": tasks}]
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    environ = {"ANSIBLE_HOME": str(folder), "ANSIBLE_ROLES_PATH": str(ROLE.parent), "LC_ALL": "C.UTF-8"}
    argv = [str(ANSIBLE / "ansible-playbook"), "play.yml", "-e", "@variables.json"]
    ran = captured(argv, cwd=folder, env={**ENVIRON, **environ, "HOME": str(folder)}, timeout=PLAY_S)
    return ran.returncode, ran.stdout + ran.stderr


def of_role(tasks: str) -> dict[str, Any]:
    return {"include_role": {"name": ROLE.name, "tasks_from": tasks}}


def configure(folder: Path, absent: tuple[str, ...] = (), **files: str) -> tuple[int, str]:
    """Play the role's tasks of the configuration: files with an election each, in the folder ``etc``."""
    command = script(folder / "command", f'cd {ROOT} && exec "{sys.executable}" -m supervisor "$@"')
    places = {"folder": str(folder / "etc"), "command": str(command), "active": {"rc": 3}}  # no daemon runs
    variables: dict[str, Any] = {f"consul_supervisor__{name}": value for name, value in places.items()}
    variables |= {"consul_supervisor_drop_ins_absent": absent}
    variables |= {"consul_supervisor_drop_ins": {name: {"elections": {of: {}}} for name, of in files.items()}}
    return play(folder, [of_role("configure")], **variables)


def test_the_check_before_a_write_sees_what_the_daemon_reads(tmp_path: Path) -> None:
    etc, elsewhere = tmp_path / "real", tmp_path / "elsewhere.yaml"
    etc.mkdir()
    (tmp_path / "etc").symlink_to("real")
    (etc / "linked.yaml").symlink_to("../elsewhere.yaml")
    for name in ("main", "old"):
        (etc / f"{name}.yaml").write_text(f"elections: {{{name}: {{}}}}")
    for linked, why in (("elections: {app: {}}", "cannot be set twice"), (None, "cannot be read")):
        elsewhere.unlink(missing_ok=True) if linked is None else elsewhere.write_text(linked)
        code, text = configure(tmp_path, ("old",), main="app")
        assert code != 0 and why in text, text
        assert sorted(each.name for each in etc.iterdir()) == ["linked.yaml", "main.yaml", "old.yaml"]
        assert "main: {}" in (etc / "main.yaml").read_text()
    elsewhere.write_text("elections: {app: {}}")
    code, text = configure(tmp_path, ("old",), main="app", linked="third", new="old")
    assert code == 0 and not (etc / "linked.yaml").is_symlink() and not (etc / "old.yaml").exists(), text
    assert "app" in elsewhere.read_text(), "a link is replaced, and what it led to stays"


def environment_by_systemd(drop_in: str) -> str:
    """Return the variables of a unit as the real systemd reads them; in its test mode it starts nothing.

    Root may not use that mode, and nobody else may enter the folders of a test.
    """
    unit = f"[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/true\n{drop_in}"
    with TemporaryDirectory() as folder:
        for name, content in (("basic.target", ""), ("shutdown.target", ""), ("t.service", unit)):
            Path(folder, name).write_text(content)
        os.chown(folder, NOBODY, NOBODY)
        argv = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "/lib/systemd/systemd"]
        argv += ["--test", "--user", "--no-pager", "--unit=t.service"]
        environ = {"HOME": folder, "SYSTEMD_UNIT_PATH": folder, "XDG_RUNTIME_DIR": folder}
        return captured(argv, env=environ, timeout=SYSTEMD_S).stdout


def test_a_variable_of_the_role_reaches_the_daemon_as_it_is(tmp_path: Path) -> None:
    values = {
        "SECRET": "ends with newlines\r\n\n",
        "CERTIFICATE": "-----BEGIN\nline two\r\n\tthree\n-----END\n",
        "QUOTED": "\"double\" 'single' \\ \\n %n %% $HOME ${HOME} #;",
        "ENDS": "with a backslash\\",
        "WORDS": " é = b\x01 ",
        **{"_N1": 15, "YES": True, "NONE": ""},
    }
    drop_in, printed = tmp_path / "ansible.conf", tmp_path / "printed"
    render = {"src": str(ROLE / "templates" / "environment.conf.j2"), "dest": str(drop_in)}
    see = {"shell": f"env -0 >{printed}", "environment": "{{ consul_supervisor__environment }}"}
    tasks = [of_role("environment"), {"template": render}, see]
    code, text = play(tmp_path, tasks, consul_supervisor_environment=values)
    assert code == 0, text
    said = [name for name in values if f"without the newline at its end: {name}" in text]
    assert said == ["SECRET", "CERTIFICATE"]
    shown = environment_by_systemd(drop_in.read_text())
    checked = dict(each.split("=", 1) for each in printed.read_bytes().decode().split("\0") if each)
    for name, value in values.items():
        arrives = str(value).rstrip("\r\n")
        line = f"\t\tEnvironment: {name}={arrives}\n\t\t".replace("\r\n", "\n")  # as Python reads text
        assert line in shown and checked[name] == arrives, (name, shown)


def test_a_variable_that_systemd_would_drop_is_refused(tmp_path: Path) -> None:
    bad: dict[str, Any] = {"my-var": "x", "1ST": "x", "NEWLINE\n": "x", "NUL": "a\0b"}
    bad |= {"EMPTY": None, "LIST": [1], "MAP": {}}
    code, text = play(tmp_path, [of_role("environment")], consul_supervisor_environment={**bad, "GOOD": "x"})
    assert code != 0 and "GOOD" not in text and all(name.strip() in text for name in bad), text
