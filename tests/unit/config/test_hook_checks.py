"""Texts of hooks that are valid, and for which `check` warns because they probably mean something else."""

from pathlib import Path

import pytest
import yaml

from tests.support.captured import captured
from tests.support.configured import loaded
from tests.support.patience import PATIENCE_S

NONE = ""
COMMENT = "YAML takes this for a comment"
WORD = "is a word like any other, because no shell reads it"
LITERAL = "is passed on as it is, because no shell reads it"
LEFT = "{{ or {% is left of a template"
CUT = "YAML makes one command of its lines"
ONE = "only the word behind -c is run"
PIPE = "the exit code is that of the pipe's end"
BASH = "sh may misread &>, {A,B} and [[ of bash"
LETTER = "is a letter to it: type it anew"
BEHIND = "what runs on behind the last & is killed"
CURL = "curl ends with 0 also where the server says no"


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
        ("shell: >\n          set -e\n          systemctl stop app", CUT),
        ("shell: >-\n\n          cd /srv/app\n\n          ./stop\n          rm -f pid", CUT),
        ("shell: set -e\n          systemctl stop app", CUT),
        ("shell: 'set -e\n          systemctl stop app'", CUT),
        ('shell: "set -e\n          systemctl stop app"', CUT),
        ("shell: >\n          # why\n          systemctl stop app;\n          true", CUT),
        ("shell: >\n          a;  # why;\n          b", CUT),
        ("shell: >\n          if a; then\n            b\n          fi\n          c", CUT),
        ('shell: >\n          systemctl stop "$APP"\n          rm -f /run/app.pid', CUT),
        ("shell: >\n          rm -f \\\n          /run/app.pid", CUT),
        (
            "exec:\n          - bash\n          - -ec\n          - >\n            cd /\n            ./stop",
            CUT,
        ),
        (
            "exec:\n          - sh\n          - -c\n          - |\n            cd /\n            ./stop",
            NONE,
        ),
        ("exec:\n          - logger\n          - >\n            this node\n            leads", NONE),
        ("shell: |\n          set -e\n          systemctl stop app", NONE),
        ("shell: >\n          systemctl stop app", NONE),
        (
            "shell: >\n          a &&\n          b;\n          c |\n          grep -q x ||\n          exit 1",
            NONE,
        ),
        ("shell: >\n          a\n          && b\n          | grep -q x\n          2>/dev/null", NONE),
        ("shell: >\n          curl -fsS\n          -d '{}'\n          https://h/\n          \"$A\"", NONE),
        ("shell: >\n          if a; then\n          b; else\n          c; fi", NONE),
        ("shell: >\n          psql -c 'select 1\n          from a'", NONE),
        ("shell: >\n          a\n\n          b", NONE),
        ('shell: "systemctl stop \\\n          app"', NONE),
        ("exec: [bash, -c, 'true', stop, app]", ONE),
        ("exec: [sudo, -u, a, /bin/sh, -e, -o, nounset, -c, systemctl stop, app]", ONE),
        ("exec: [sh, -c, 'systemctl stop \"$1\"', sh, app]", NONE),
        ("exec: [sh, -c, 'for unit; do systemctl stop \"$unit\"; done', stop, app, web]", NONE),
        ("exec: [bash, -c, systemctl stop app, bash]", NONE),
        ("exec: [bash, /usr/local/bin/stop, -c, /etc/app, app]", NONE),
        ("exec: [python3, -c, print(1), stop, app]", NONE),
        ("exec: [rm, -f, '/run/app/*.pid']", LITERAL),
        ("exec: [sudo, /bin/rm, -f, '/run/app.{pid,sock}']", LITERAL),
        ("exec: [rm, -f, ~/app.pid]", LITERAL),
        ("exec: [rm, -f, $(cat /run/app.pidfile)]", LITERAL),
        ("exec: [sh, -c, 'rm -f ~/app/*.pid']", NONE),
        ("exec: [find, /run/app, -name, '*.pid', -exec, rm, '{}', +]", NONE),
        ("exec: [systemctl, stop, 'app-*']", NONE),
        ("exec: [gsutil, rm, 'gs://a/*.pid']", NONE),
        ("shell: >\n          exec\n          /usr/bin/app", NONE),
        ("shell: >\n          awk '\n            {a}\n          b\n          # c' d", NONE),
        ("shell: >\n          a;\n          # don't;\n          b", CUT),
        ("exec: [ssh, b, rm, -f, '/run/*.pid', '&&', stop]", NONE),
        ("shell: false 2>&1 | tee -a /var/log/a", PIPE),
        ("shell: '{ a; b; } 2>&1 | sudo /usr/bin/tee -a \"$LOG\" || exit 1'", PIPE),
        ("shell: |\n          set -e\n          a |\n            logger -t app", PIPE),
        ("exec: [bash, -c, 'a |& systemd-cat']", PIPE),
        ("exec: [bash, -o, pipefail, -c, 'a | tee b']", NONE),
        ("exec: [bash, -c, 'set -eo pipefail; a | tee b']", NONE),
        ("shell: |\n          set -eu\n          a 2>&1 | tee -a b\n          echo done", PIPE),
        ("exec: [sh, -ec, 'a | logger; b']", PIPE),
        ("shell: |\n          a | tee b\n          c", NONE),
        ("shell: |\n          set -e\n          a=$(b | sed c)\n          test $(b | sed c) = $a", NONE),
        ("shell: a | tee b | grep -q c", NONE),
        ("shell: a | grep -q b", NONE),
        ("shell: echo a | tee /proc/sys/b", NONE),
        ("shell: echo $(hostname) ${A} | tee -a log", NONE),
        ("shell: date | tee -a log; exec a", NONE),
        ("shell: a || logger failed", NONE),
        ("shell: systemctl stop app &> /dev/null", BASH),
        ("shell: rm -f /run/app.{pid,sock}", BASH),
        ("shell: if [[ -e /run/a ]]; then systemctl stop app; fi", BASH),
        ("exec: [bash, -c, 'if [[ -e /run/a ]]; then a &> b; fi']", NONE),
        ('shell: curl -sf -d \'{"a":1,"b":2}\' -H "{a,b}" h', NONE),
        ("shell: echo ${A} ${B:-a,b}", NONE),
        ("{shell: a, env: {H: $CONSUL_SUPERVISOR_NODE}}", "$NAME and ~ stay as they are in env"),
        ("{shell: a, env: {H: ~/app}}", "$NAME and ~ stay as they are in env"),
        ("{shell: a, env: {H: 'costs 5$', I: /srv/~a}}", NONE),
        ("shell: systemctl stop app \u2013\u2013now", LETTER),
        ("exec: [systemctl, stop, \u2013now, app]", LETTER),
        ('exec: [systemctl, stop, "app\u200b"]', LETTER),
        ('exec: [systemctl, stop, "app\u00a0"]', LETTER),
        ("exec: [systemctl, stop, \u201capp\u201d]", LETTER),
        ("exec: [curl, -sS, -X, POST, 'http://switch/off']", CURL),
        ("exec: [sh, -c, 'sleep 1; /usr/bin/curl http://switch/off']", CURL),
        ("exec: [curl, -sSf, 'http://switch/off']", NONE),
        ("exec: [curl, --fail-with-body, 'http://switch/off']", NONE),
        ("shell: test $(curl -so /dev/null -w '%{http_code}' http://switch/off) = 200", NONE),
        ("shell: curl -s http://switch/off | grep -q '^off'", NONE),
        ("shell: curl -s --fail-early http://switch/off || exit 1", CURL),
        ("shell: command -v curl && systemctl stop app", NONE),
        ("shell: '# systemctl stop app'", "all of it is a comment"),
        ("shell: |\n          # why\n          systemctl stop app", NONE),
        ("exec: [systemctl, reload, --no-block, proxy]", NONE),
        ('exec: [logger, "it leads \u2013 since\u00a0now"]', NONE),
    ],
)
def test_check_warns_of_what_no_shell_and_no_hook_understands(
    tmp_path: Path, hook: str, warning: str
) -> None:
    warnings = loaded(tmp_path, f"elections:\n  app:\n    on_change:\n      - {hook}\n").warnings
    assert (warnings == ()) is (warning == NONE), warnings
    assert all(warning in str(each) and each.remedy for each in warnings) and len(warnings) <= 1


@pytest.mark.parametrize(
    "argv",
    [
        ("/bin/sh", "-c", yaml.safe_load(">\n set -e\n rm FILE")),
        ("/bin/sh", "-c", yaml.safe_load(">\n rm -f \\\n FILE")),
        ("/bin/sh", "-c", "rm FILE/ 2>&1 | tee -a /dev/null"),
        ("bash", "-c", "true", "rm", "FILE"),
        ("rm", "-f", "FI*E"),
    ],
)
def test_a_hook_of_which_check_warns_says_0_and_has_done_nothing(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "FILE").touch()
    assert captured(argv, cwd=tmp_path, timeout=PATIENCE_S).returncode == 0
    assert (tmp_path / "FILE").exists()


def test_a_hook_that_is_to_stop_an_application_waits_for_its_end(tmp_path: Path) -> None:
    text = "elections:\n  app:\n    on_lose:\n      - exec: [systemctl, --no-block, stop, app]\n"
    (warning,) = loaded(tmp_path, text).warnings
    assert "--no-block ends before what it is to stop has: leave it out" in str(warning)


def test_a_warning_of_joined_lines_names_each_copy_and_its_place(tmp_path: Path) -> None:
    text = "elections:\n  app-${EACH}:\n    for_each: [a, b]\n"
    text += "    run:\n      shell: >\n        cd /${EACH}\n        ./serve\n"
    (warning,) = loaded(tmp_path, text).warnings
    place = f'{tmp_path}/c.yaml:5:14: elections["app-${{EACH}}"].run.shell: {CUT}'
    assert str(warning).startswith(place) and "(in app-a and 1 more)" in str(warning)


def test_a_warning_of_a_comment_names_its_place(tmp_path: Path) -> None:
    text = "elections:\n  app:\n    run: {exec: [a]}\n    on_change:\n      - shell: é a #b\n"
    (warning,) = loaded(tmp_path, text).warnings
    assert str(warning).startswith(f"{tmp_path}/c.yaml:5:20: elections.app.on_change[0].shell: {COMMENT}")
