"""Texts of hooks that are valid, and for which `check` warns because they probably mean something else."""

from pathlib import Path

import pytest

from tests.support.configured import loaded

NONE = ""
COMMENT = "YAML takes this for a comment"
WORD = "is a word like any other, because no shell reads it"
LITERAL = "is passed on as it is, because no shell reads it"
LEFT = "{{ or {% is left of a template"
BEHIND = "what runs on behind the last & is killed"


@pytest.mark.parametrize(
    ("hook", "warning"),
    [
        ("shell: /bin/echo --channel #ops", COMMENT),
        ("shell: /bin/echo --channel '#ops'", NONE),
        ("shell: '/bin/echo --channel #ops'", NONE),
        ("shell: systemctl start app  # the database", NONE),
        ("shell: systemctl start app  ##########", NONE),
        ("exec:\n          - /bin/echo\n          - --channel #ops", COMMENT),
        ("exec: [ps, aux, '|', grep, app]", f"| {WORD}"),
        ("exec: [echo, a, '2>&1']", f"2>&1 {WORD}"),
        ("exec: [echo, a, '>>', /var/log/a]", f">> {WORD}"),
        ("exec: [stop, '&&', start]", f"&& {WORD}"),
        ("exec: [stop, ';', start]", f"; {WORD}"),
        ("exec: [sh, -c, 'ps aux | grep app && stop']", NONE),
        ("exec: [find, /run/app, -exec, rm, '{}', ;]", NONE),
        ("exec: [grep, '^a|b>c$', /etc/a]", NONE),
        ('exec: [/bin/echo, "${NODE}"]', f"${{NODE}} {LITERAL}"),
        ("exec: [/bin/echo, --token=$CONSUL_SUPERVISOR_FENCING_TOKEN]", LITERAL),
        ("exec: [bash, -ec, 'echo ${NODE}']", NONE),
        ("exec: [awk, '{print $1}', /etc/a]", NONE),
        ("shell: echo ${NODE}", NONE),
        ("shell: fence --plug $CONSUL_SUPERVISOR_PREVIOUS_TARGET", NONE),
        ("shell: 'systemctl start {{ app }}'", LEFT),
        ("exec: [systemctl, start, \"{{ app['name'] | default('x') }}\"]", LEFT),
        ("shell: '{% if x %}true{% endif %}'", LEFT),
        ("webhook: 'http://h/{{app}}'", LEFT),
        ("{webhook: http://h/, headers: {X-App: '{{app}}'}}", LEFT),
        ("{webhook: http://h/, body: {text: '{{ app }}'}}", LEFT),
        ("shell: \"docker inspect --format '{{.State.Running}}{{end}}{{json .Config}}' app\"", NONE),
        ("shell: echo $CONSUL_SUPERVISOR_LEEDER", "did you mean CONSUL_SUPERVISOR_LEADER?"),
        ("exec: [python3, -c, 'os.environ[\"CONSUL_SUPERVISOR_NODES\"]']", "CONSUL_SUPERVISOR_NODE?"),
        ("shell: 'echo ${CONSUL_SUPERVISOR_ROLE:-none}; CONSUL_SUPERVISOR_X=1 env'", NONE),
        ("shell: /opt/app/start &", BEHIND),
        ("shell: a && b 2>&1", NONE),
        ("shell: (a & b) && wait", NONE),
    ],
)
def test_check_warns_of_what_no_shell_and_no_hook_understands(
    tmp_path: Path, hook: str, warning: str
) -> None:
    warnings = loaded(tmp_path, f"elections:\n  app:\n    on_change:\n      - {hook}\n").warnings
    assert (warnings == ()) is (warning == NONE), warnings
    assert all(warning in str(each) and each.remedy for each in warnings) and len(warnings) <= 1


def test_a_warning_of_a_comment_names_its_place(tmp_path: Path) -> None:
    text = "elections:\n  app:\n    run: {exec: [a]}\n    on_change:\n      - shell: é a #b\n"
    (warning,) = loaded(tmp_path, text).warnings
    assert str(warning).startswith(f"{tmp_path}/c.yaml:5:20: elections.app.on_change[0].shell: {COMMENT}")
