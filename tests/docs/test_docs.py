"""docs/ is true: references are generated, tables and figures are the program's, snippets run, links work."""

import configparser
import json
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import commands, guarantees, reference
from supervisor.adapters.consul import services, versions
from supervisor.adapters.hooks import output
from supervisor.adapters.hooks.command import KILL_GRACE_S
from supervisor.adapters.hooks.context import ENV_STRING_BYTES_MAX, as_environment, facts
from supervisor.adapters.journal.event_file import FILE_BYTES_MAX, NEWER, OLDER
from supervisor.adapters.runtime import watchdogs
from supervisor.commands.check.findings import Finding, Level
from supervisor.commands.check.report import as_text, refused_verdict, verdict
from supervisor.commands.cli.arguments import parser
from supervisor.config import Problem, load
from supervisor.config import files as config_source
from supervisor.config.formats.templates import BODY_CHARS_MAX, FACTS, HEADER_CHARS_MAX, PREFIX, URL_CHARS_MAX
from supervisor.config.yaml_reader import NODES_MAX
from supervisor.core.actions import HookContext, Previous, Reason, Role
from supervisor.core.lease import (
    EXCHANGE_MAX_S,
    INTERVAL_MIN_S,
    LOCK_DELAY_MAX_S,
    MARGIN_MIN_S,
    MARGIN_SHARE,
    ROOM_MIN_S,
    lease_of,
)
from supervisor.core.lock import backoff
from supervisor.core.lock.election import LAG_S_MAX
from supervisor.core.lock.queue import QUEUE_DELAY_MAX_S, RANK_S, READ_LAG_PER_RANK_S
from supervisor.core.settings import Command, FenceLimit, ServiceSettings, Watchdog, Webhook
from supervisor.core.watchdog import TOO_LONG
from supervisor.daemon.events import RETRY_S
from supervisor.reporting.control.protocol import NOTE_CHARS_MAX
from supervisor.reporting.telemetry.event_log import EVENTS_MAX
from supervisor.reporting.telemetry.log.journald import VALUE_BYTES_MAX
from supervisor.reporting.telemetry.names import sentence
from tests.support.captured import captured
from tests.support.configured import loaded
from tests.support.consul import Agent
from tests.support.log_lines import promises, undocumented
from tests.support.pages import (
    DOCS,
    DRILL,
    FIRST_PAGES,
    HOOKS,
    HTTP,
    INSTALL,
    LEASE,
    OPERATIONS,
    PAGES,
    ROOT,
    SAFETY,
    SECURITY,
    START,
    TOOLS,
    Shown,
    anchors,
    bars_of,
    fenced,
    first_codes,
    name,
    rows,
)
from tests.support.programs import script
from tests.support.shell import Shell
from tests.support.supervisor import ENVIRON, PATIENCE_S, command
from tests.support.unix_peer import UnixPeer, answer_of

CONFIGURATION = ROOT / "docs" / "configuration.md"
COMMANDS = ROOT / "docs" / "commands.md"
LOGS = ROOT / "docs" / "logs.md"
SEMAPHORES = ROOT / "docs" / "semaphores.md"
# Other tests of docs, tests/consul/test_rights.py and tests/system/packaging have these pages.
ELSEWHERE = (DRILL, INSTALL, SECURITY, OPERATIONS, START, TOOLS, *FIRST_PAGES)
SHOWN = Shown(*(page for page in DOCS if page not in ELSEWHERE))
LOAD_BALANCERS = ROOT / "docs" / "load-balancers.md"
LIMITS = ROOT / "docs" / "limits.md"
FENCE = ROOT / "docs" / "fence.md"
SYSTEMD = ROOT / "docs" / "systemd.md"


def test_every_block_of_the_docs_has_a_test() -> None:
    assert SHOWN.untested() == []


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (reference, reference.reference),
        (commands, commands.reference),
        (guarantees, guarantees.reference),
    ],
)
def test_a_generated_page_is_up_to_date(made: Any, part: Callable[[], str]) -> None:
    """Otherwise: python -m docs.… --write"""
    page = made.PAGE.read_text()
    assert made.page(page) == page
    assert f"\n{part()}\n" in page


# --- configuration.md ---------------------------------------------------------------------------------


@SHOWN.by(CONFIGURATION, "", "yaml")
def test_the_line_for_editors_is_a_comment_that_names_the_schema(shown: str) -> None:
    assert yaml.safe_load(shown) is None
    assert shown == "# yaml-language-server: $schema=config.schema.json\n"
    assert "`consul-supervisor schema > config.schema.json`" in CONFIGURATION.read_text()


@SHOWN.by(CONFIGURATION, "Rules", "yaml")
def test_the_shown_for_each_makes_an_election_for_each_value(shown: str, tmp_path: Path) -> None:
    items = loaded(tmp_path, shown).items
    assert [item.name for item in items] == ["db-acme", "db-globex", "db-initech"]
    assert items[0].key == "service/customers/acme/leader"
    assert [hook.call for hook in items[0].hooks] == [
        Command(("/bin/sh", "-c", f"systemctl {what} db@acme")) for what in ("start", "stop")
    ]


def test_the_page_has_the_bounds_of_for_each() -> None:
    said = f"may consist of {NODES_MAX:,} values and {config_source.FILES_BYTES_MAX >> 20} MiB"
    assert said in " ".join(CONFIGURATION.read_text().split())


def test_the_reference_has_every_key_of_the_schema() -> None:
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text())
    for rule in [schema, *schema["$defs"].values()]:
        for key in rule.get("properties", {}):
            assert re.search(rf"`(elections\.NAME\.)?{key}`", reference.reference()), key


def test_the_documented_variables_of_consul_are_read() -> None:
    read = set(re.findall(r'"(CONSUL_[A-Z_]+)"', (ROOT / "supervisor/config/consul.py").read_text()))
    documented = {
        variable
        for _, cell in rows(reference.PAGE, "key | variable")
        for variable in re.findall(r"`(CONSUL_[A-Z_]+)`", cell)
    }
    assert documented == read


# --- safety.md ----------------------------------------------------------------------------------------


PLANS = SHOWN.of(SAFETY, "From wishes to a session block")


def test_the_shown_plan_is_printed_so() -> None:
    shown, printed = (block.text for block in PLANS)
    assert command(*shown.split()[1:]).stdout == printed


QUICK_FILES = SHOWN.of(SAFETY, "Quicker")


def test_the_quick_files_have_the_figures_of_their_page(tmp_path: Path) -> None:
    """The first is what the command of the page plans, and both rely on a WatchdogSec of 4 s."""
    quick, quickest = (yaml.safe_load(block.text)["elections"]["app"]["session"] for block in QUICK_FILES)
    (shown,) = re.findall(r"`consul-supervisor (plan --failover-usually .*?)`", SAFETY.read_text())
    assert yaml.safe_load(command(*shown.split()).stdout)["session"] == {"ttl": "10s", **quick}
    assert quickest == {"ttl": "3s", "lock_delay": "7s", "confirm_every": "1s"}
    found = []
    for block in QUICK_FILES:
        (tmp_path / "c.yaml").write_text(block.text)
        config = load(tmp_path / "c.yaml", {"WATCHDOG_USEC": "4000000"}, "node1")
        lease = lease_of(config.items[0])
        found.append((lease.failover_s, lease.silence_s, lease.cut_off_s, len(config.warnings)))
    assert found == [(27, 4, 4, 0), (13, 4, pytest.approx(3), 1)]


# --- commands.md ----------------------------------------------------------------------------------------


@SHOWN.by(COMMANDS, "The verdict", "text")
def test_the_shown_verdicts_are_printed_so(shown: str, tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        f'elections: {{"e-${{EACH}}": {{for_each: {[f"n{number}" for number in range(40)]}}}}}\n'
        "semaphores: {s: {limit: 1}}\n",
    )
    folder = Path("/etc/consul-supervisor")
    warnings, faults = ([Problem(f"{n % 2}", 0, 0, "", "why") for n in range(count)] for count in (2, 17))
    found = [Finding("version", Level.WARNING, "not covered")]
    assert shown.splitlines() == [
        verdict(folder, replace(config, warnings=tuple(warnings))),
        verdict(folder, replace(config, items=config.items[:1]), found=found),
        refused_verdict(folder, faults),
    ]


@SHOWN.by(COMMANDS, "Only where this node holds it", "sh")
def test_the_shown_crontab_runs_the_job_where_this_node_holds_it(shown: str, tmp_path: Path) -> None:
    *_, line = shown.strip().split(maxsplit=6)
    line = line.replace("/usr/local/bin/backup", "echo ran")
    ours = f'exec "{sys.executable}" -m supervisor "$@" --socket {tmp_path}/s'
    script(tmp_path / "consul-supervisor", ours)
    environ = {**ENVIRON, "PATH": f"{tmp_path}:{ENVIRON['PATH']}"}
    for status, role, ran in ((200, "holding", "ran\n"), (503, "waiting", "")):
        answer = answer_of(f"backup: {role}\n".encode(), status)
        with UnixPeer(tmp_path / "s", lambda answer=answer: answer):  # type: ignore[misc]
            done = captured(["/bin/sh", "-c", line], cwd=ROOT, env=environ, timeout=PATIENCE_S)
        assert (done.stdout, done.stderr) == (ran, "")


@SHOWN.by(COMMANDS, "A lock around one command", "sh")
def test_the_shown_crontab_runs_the_job_while_nobody_else_does(
    shown: str, shared_agent: Agent, unique: str
) -> None:
    *_, line = shown.strip().split(maxsplit=6)
    _, *arguments = line.replace("cron/backup", unique).replace("/usr/local/bin/backup", "echo").split()
    environ = {"CONSUL_HTTP_ADDR": shared_agent.url}
    done = command(*arguments, "ran", environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")
    assert shared_agent.acquire(unique, shared_agent.session_create(TTL="60s"))
    done = command(*arguments, "ran", environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@SHOWN.by(COMMANDS, "What happened on this node", "sh", "shown")
@SHOWN.by(COMMANDS, "What happened on this node", "text", "printed")
def test_the_shown_events_are_printed_so(shown: str, printed: str, tmp_path: Path) -> None:
    """By the command, from events as a daemon keeps them."""
    time, token = "2026-11-22T15:01:0", 48213
    note: dict[str, object] = {"note": "kernel update"}
    events: list[dict[str, object]] = [
        {"event": "command-received", "verb": "step-down", "uid": 0, "user": "root", **note},
        {
            "event": "role",
            "former_role": "holding",
            "role": "losing",
            "reason": "step-down",
            "token": token,
            **note,
        },
        {
            "event": "hook-succeeded",
            "hook": "on_lose[0]",
            "attempt": 1,
            "duration_s": 0.405,
            "detail": "exit 0",
        },
        {"event": "role", "former_role": "losing", "role": "resting"},
    ]
    times = ("7.612Z", "7.614Z", "8.020Z", "8.020Z")
    body = [{"time": time + at, "item": "app", **event} for at, event in zip(times, events, strict=True)]
    answer = answer_of(json.dumps({"version": 1, "events": body}).encode())
    program, *arguments = shown.split()
    assert (program, arguments[-2:]) == ("consul-supervisor", ["--since", "1h"])
    with UnixPeer(tmp_path / "s", lambda: answer):
        done = command(*arguments[:-2], "--since", "1000000h", "--socket", str(tmp_path / "s"))
    assert (done.stdout, done.stderr) == (printed, "")


def test_the_figures_of_the_events_are_kept() -> None:
    text = " ".join(COMMANDS.read_text().split())
    assert f"of {FILE_BYTES_MAX // 1024} KiB each, which is some {EVENTS_MAX:,} events" in text
    assert f"(`{NEWER}`, and the older `{OLDER}`)" in text
    assert f"tried again every {RETRY_S:g} seconds" in LOGS.read_text()
    assert f"at most {NOTE_CHARS_MAX} characters" in text


@pytest.mark.long
@SHOWN.by(COMMANDS, "Checking a drop-in before it is installed", "sh")
def test_the_shown_commands_refuse_a_bad_drop_in_and_install_a_good_one(shown: str, tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "other.yaml").write_text("elections: {other: {}}")
    lines = shown.replace("/etc/consul-supervisor", str(folder))
    with closing(Shell(tmp_path, tmp_path, {"PYTHONPATH": str(ROOT)})) as shell:
        shell.provide("consul-supervisor", f'"{sys.executable}" -m supervisor "$@"')
        for text in ("namenode: {}", "namenode: {contend: false}", "namenode: {keey: 1}", "other: {}"):
            (tmp_path / "namenode.yaml").write_text(f"elections: {{{text}}}")
            shell.run(lines)
    assert (folder / "namenode.yaml").read_text() == "elections: {namenode: {contend: false}}"


def test_all_findings_of_check_are_explained() -> None:
    modules = (ROOT / "supervisor" / "commands" / "check").glob("*.py")
    code = "".join(module.read_text() for module in modules)
    made = set(re.findall(r'(?:Finding\(\s*|what=|_of_writes\()"(\w+)"', code)) - {"agent", "rest"}
    assert set(first_codes(COMMANDS, "finding")) == made


def test_the_json_of_check_has_the_documented_fields() -> None:
    listed = [field for cell, _ in rows(COMMANDS, "field") for field in re.findall(r"`(\w+)`", cell)]
    done = command("check", str(ROOT / "examples" / "configs" / "minimal.yaml"), "--json")
    assert listed == list(json.loads(done.stdout))


# --- fence.md -----------------------------------------------------------------------------------------


@SHOWN.by(FENCE, "", "yaml", "shown")
@SHOWN.by(FENCE, "An outage that lasts", "text", "figures")
@SHOWN.by(FENCE, "When nothing may act without the fence", "sh", "confirms")
def test_the_shown_fence_loads_and_its_command_exists(
    shown: str, figures: str, confirms: str, tmp_path: Path
) -> None:
    assert figures in as_text(
        loaded(tmp_path, shown.replace("exclusive: true", "exclusive: true\n      outage: 15m"))
    )
    (item,) = loaded(tmp_path, shown).items
    assert item.fence is not None and item.fence.target == "db1-ipmi.example.org"
    options = parser().parse_args(shlex.split(confirms)[1:])
    assert (options.command, options.name, options.note) == ("confirm-off", "db", "unplugged by hand")


@SHOWN.by(FENCE, "Several methods", "yaml", "methods")
@SHOWN.by(FENCE, "A limit for a bad day", "yaml", "limit")
def test_the_shown_methods_and_the_shown_limit_load(methods: str, limit: str, tmp_path: Path) -> None:
    (item,) = loaded(tmp_path, f"{limit}elections: {{db: {{}}}}\ndefaults:\n{methods}").items
    assert item.fence is not None and item.fence.limit == FenceLimit(2, 600.0)
    assert [each.name for each in item.fence.methods] == ["bmc", "outlet"]


def test_the_webhook_of_a_power_switch_loads(tmp_path: Path) -> None:
    (line,) = re.findall(r"\| `(fence: .*?)`;", FENCE.read_text())
    (item,) = loaded(tmp_path, yaml.safe_dump({"elections": {"db": yaml.safe_load(line)}})).items
    assert item.fence is not None and isinstance(item.fence.hook.call, Webhook)


# --- hooks.md ------------------------------------------------------------------------------------------


@SHOWN.by(HOOKS, "run", "yaml", "run")
@SHOWN.by(HOOKS, "Facts in a webhook", "yaml", "webhook")
def test_the_shown_parts_of_an_election_load(run: str, webhook: str, tmp_path: Path) -> None:
    for shown in (run, webhook):
        assert loaded(tmp_path, yaml.safe_dump({"elections": {"app": yaml.safe_load(shown)}})).warnings == ()


def all_facts() -> dict[str, Any]:
    """Return all variables that a hook of either kind can get."""
    context = HookContext("lose", "app", "service/app/leader", Reason.SHUTDOWN, "id", rival_at=1.0)
    context = replace(context, role=Role.LOSING, previous=Previous("fenced"))
    of_slot = facts(replace(context, kind="semaphore"), attempt=1, node="node1", now=0.0, at=0.0)
    of_leader = facts(context, attempt=1, node="node1", now=0.0, at=0.0)
    of_slots_alone = [(name, fact) for name, fact in of_slot.items() if name not in of_leader]
    told = list(of_leader.items())
    after = list(of_leader).index("previous_leader") + 1
    return dict([*told[:after], *of_slots_alone, *told[after:]])


def test_hooks_get_the_variables_of_the_table() -> None:
    assert list(all_facts()) == list(FACTS)
    assert first_codes(HOOKS, "variable") == list(as_environment(all_facts()))


def test_the_names_in_json_are_those_of_the_variables() -> None:
    assert "`CONSUL_SUPERVISOR_LOCK_INDEX` is `lock_index`" in HOOKS.read_text()
    assert [PREFIX + name.upper() for name in all_facts()] == list(as_environment(all_facts()))


def test_the_limits_of_facts_in_a_webhook_are_those_of_the_code() -> None:
    assert URL_CHARS_MAX == HEADER_CHARS_MAX
    assert f"have more than {URL_CHARS_MAX:,} characters" in HOOKS.read_text()
    assert f"body more than {BODY_CHARS_MAX:,}" in HOOKS.read_text()


def test_every_reason_of_a_hook_is_explained() -> None:
    assert sorted(first_codes(HOOKS, "reason")) == sorted(Reason)


@SHOWN.by(HOOKS, "A disk that hangs", "yaml")
def test_the_shown_check_of_a_disk_makes_a_node_unfit_after_the_sum_of_the_page(
    shown: str, tmp_path: Path
) -> None:
    item = {"app": {**yaml.safe_load(shown), "session": {"lock_delay": "45s"}}}
    check = loaded(tmp_path, yaml.safe_dump({"elections": item})).items[0].candidate_check
    assert check is not None and check.hook is not None
    least_s = check.fall * check.interval_s + check.hook.attempt_s + KILL_GRACE_S
    assert f"and {KILL_GRACE_S:g} s: {least_s:g} s with the defaults" in HOOKS.read_text()


@SHOWN.by(HOOKS, "Trying a hook", "sh", "shown")
@SHOWN.by(HOOKS, "Trying a hook", "text", "printed")
def test_the_shown_trial_of_a_hook_is_printed_so(shown: str, printed: str, tmp_path: Path) -> None:
    """Only the duration differs."""
    file = tmp_path / "c.yaml"
    hook = {"shell": 'echo "stopping ($CONSUL_SUPERVISOR_REASON)"'}
    file.write_text(yaml.safe_dump({"elections": {"app": {"on_lose": [hook]}}}))
    done = command(*shown.split()[1:], "--config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r"\d\.\d{3}s of", "0.052s of", done.stdout) == printed


# --- lease.md ------------------------------------------------------------------------------------------


def example(folder: Path) -> Path:
    """Return the election of which the page computes the sum."""
    (shown,) = [block.text for block in fenced(LEASE) if block.language == "yaml"]
    file = folder / "c.yaml"
    file.write_text(yaml.safe_dump({"elections": yaml.safe_load(shown)}))
    return file


@SHOWN.by(LOGS, "Following what happened", "json")
def test_the_shown_log_lines_agree_with_the_table(shown: str) -> None:
    lines = [json.loads(text) for text in shown.splitlines()]
    assert len(lines) > 2 and undocumented(lines) == []


@SHOWN.by(LOGS, "In the journal", "text")
def test_the_shown_sentences_are_those_of_the_log(shown: str) -> None:
    redis, hook = {"item": "redis"}, {"item": "redis", "hook": "on_acquire[0]", "attempt": 1}
    lines: list[tuple[str, dict[str, Any]]] = [
        ("role", redis | {"role": "acquiring", "reason": "acquired", "former_role": "waiting"}),
        ("hook-started", hook | {"reason": "acquired"}),
        ("hook-output", hook | {"text": "this Redis takes writes now"}),
        ("hook-succeeded", hook | {"duration_s": 0.214}),
        ("role", redis | {"role": "holding", "reason": "acquired", "former_role": "acquiring"}),
        ("consul-silent", redis | {"kinds": ["read key"], "why": "connection refused"}),
        ("role", redis | {"role": "losing", "reason": "lease-expired", "former_role": "holding"}),
    ]
    assert shown.splitlines() == [sentence(event, fields) for event, fields in lines]


@SHOWN.by(LOGS, "In the journal", "sh")
def test_the_shown_filters_name_fields_of_the_table(shown: str) -> None:
    known = {"event"}.union(*(promise.fields for promise in promises().values()))
    filters = re.findall(r"CONSUL_SUPERVISOR_(\w+)=", shown)
    assert len(filters) > 3 and {field.lower() for field in filters} <= known
    assert all(line.startswith("journalctl ") for line in shown.splitlines())
    assert f"cut at {VALUE_BYTES_MAX // 1024} KiB" in LOGS.read_text()


@SHOWN.by(LEASE, "The sum", "yaml")
def test_the_election_of_the_sum_loads_without_a_warning(shown: str, tmp_path: Path) -> None:
    assert load(example(tmp_path), {}, "node1").warnings == ()


@SHOWN.by(LEASE, "The sum", "text")
def test_the_documented_sum_is_the_one_that_check_prints(shown: str, tmp_path: Path) -> None:
    assert shown in as_text(load(example(tmp_path), {}, "node1"))


def test_the_drawing_of_the_lease_is_to_scale(tmp_path: Path) -> None:
    """Each bar begins and ends at the figures of this election."""
    lease = lease_of(load(example(tmp_path), {}, "node1").items[0])
    bars = bars_of(LEASE.with_suffix(".svg"))
    begin_x, width = bars["lock-delay"]
    scale = width / lease.lockout_s
    ends = {"room": lease.room_s, "lose_time": lease.room_s + lease.lose_time_s, "margin": lease.lockout_s}
    begin_s = 0.0
    for name_of_bar, end_s in ends.items():
        expected = (begin_x + scale * begin_s, scale * (end_s - begin_s))
        assert bars[name_of_bar] == pytest.approx(expected, abs=0.1)
        begin_s = end_s
    assert bars["rival"][0] == pytest.approx(begin_x + width)


# --- semaphores.md -------------------------------------------------------------------------------------


@SHOWN.by(SEMAPHORES, "", "yaml")
def test_the_shown_semaphore_loads_without_a_warning(shown: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, shown).warnings == ()


# --- http.md ----------------------------------------------------------------------------------------


@SHOWN.by(HTTP, "Where", "yaml")
def test_the_shown_listener_loads_without_a_warning(shown: str, tmp_path: Path) -> None:
    config = loaded(tmp_path, f"{shown}elections: {{app: {{}}}}\n", {}, "vm")
    assert config.warnings == () and str(config.http) == "127.0.0.1:8555"


@SHOWN.by(HTTP, "Where", "sh")
def test_the_shown_request_goes_to_the_control_socket(shown: str) -> None:
    """It is at the default place of the reference; tests/consul/web asks on it."""
    asked = re.fullmatch(r"curl --unix-socket (\S+) http://localhost/v1/status\n", shown)
    assert asked is not None and f"| `control_socket` | text | `{asked[1]}` |" in CONFIGURATION.read_text()


# --- figures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("docs/hooks.md", f"A line is cut at {output.LINE_BYTES_MAX // 1024} KiB"),
        ("docs/hooks.md", f"More than {output.LINES_MAX:,} lines in {output.LINES_WINDOW_S:g} s are dropped"),
        ("docs/hooks.md", f"too long for an environment ({ENV_STRING_BYTES_MAX // 1024} KiB)"),
        ("docs/configuration.md", f"A file has at most {config_source.FILE_BYTES_MAX >> 20} MiB"),
        (
            "docs/configuration.md",
            f"a directory {config_source.FILES_MAX} files and {config_source.FILES_BYTES_MAX >> 20} MiB",
        ),
        (
            "docs/lease.md",
            f"{MARGIN_SHARE:.0%}".replace("%", " %") + f" of `lock_delay`, at least {MARGIN_MIN_S:g} s",
        ),
        ("docs/lease.md", f"`room` is under {ROOM_MIN_S:g} s"),
        ("docs/lease.md", f"More than {LOCK_DELAY_MAX_S:g} s is applied as {LOCK_DELAY_MAX_S:g} s"),
        ("docs/lease.md", f"one exchange ({EXCHANGE_MAX_S:g} s at most)"),
        ("docs/lease.md", f"a third of the smaller of ttl and room, at least {INTERVAL_MIN_S:g} s"),
        ("docs/safety.md", f"{LOCK_DELAY_MAX_S:g} s is the most that Consul applies"),
        (
            "docs/semaphores.md",
            f"{RANK_S * 1000:g} ms after the one before it, at most {QUEUE_DELAY_MAX_S:g} s in all",
        ),
        ("docs/semaphores.md", f"only {READ_LAG_PER_RANK_S * 1000:g} ms later for each of them"),
        ("docs/safety.md", f"down to one time in {1 / backoff.ATTEMPT_PROBABILITY_MIN:g}"),
        ("docs/safety.md", f"for {backoff.FIRST_BACKOFF_S * 1000:g} to {backoff.BACKOFF_MAX_S * 1000:g} ms"),
        ("docs/safety.md", f"look at its changes up to {LAG_S_MAX * 1000:g} ms later"),
    ],
)
def test_a_figure_in_words_is_that_of_the_program(page: str, words: str) -> None:
    assert words in " ".join((ROOT / page).read_text().split())


# --- links


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_the_docs_has_a_target(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


# --- systemd.md ---------------------------------------------------------------------------------------


@SHOWN.by(SYSTEMD, "Secrets", "yaml")
def test_secrets_may_be_named_by_the_folder_of_credentials(shown: str, tmp_path: Path) -> None:
    hook = {"webhook": "https://hooks.example.net/", "secret_file": "${CREDENTIALS_DIRECTORY}/webhook-key"}
    assert f"`secret_file: {hook['secret_file']}`" in SYSTEMD.read_text()
    config = loaded(
        tmp_path,
        shown + yaml.safe_dump({"elections": {"app": {"on_change": [hook]}}}),
        {"CREDENTIALS_DIRECTORY": "/run/credentials/x"},
    )
    assert config.consul.token_file == "/run/credentials/x/token"
    call = config.items[0].on_change[0].call
    assert isinstance(call, Webhook) and call.secret_file == "/run/credentials/x/webhook-key"


@SHOWN.by(SYSTEMD, "The machine's watchdog", "yaml")
def test_the_shown_watchdog_is_that_of_the_defaults(shown: str, tmp_path: Path) -> None:
    app, other = loaded(tmp_path, f"{shown}elections: {{app: {{}}, other: {{watchdog: false}}}}\n").items
    assert (app.watchdog, other.watchdog) == (Watchdog("/dev/watchdog", 10.0, required=True), None)
    assert "device: /dev/watchdog, timeout: 10s, required: true" in shown


def test_each_reason_against_a_watchdog_is_explained() -> None:
    page = SYSTEMD.read_text()
    for why in (watchdogs.BUSY, watchdogs.NOWAYOUT, TOO_LONG):
        assert re.split(r"[,.]", why)[0] in page
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(ROOT / "systemd" / "watchdog.conf")
    assert unit["Service"]["DeviceAllow"] == "/dev/watchdog rw"


@SHOWN.by(LOAD_BALANCERS, "A service in Consul", "yaml")
def test_the_shown_service_can_be_used(shown: str, tmp_path: Path) -> None:
    (db,) = loaded(tmp_path, shown, {"NODE_ADDRESS": "10.0.0.7"}).items
    assert db.service == ServiceSettings(
        "consul-supervisor:node1:db", "db-leader", 5432, "10.0.0.7", ("primary",)
    )
    assert services.DEREGISTER_AFTER == "1m" and "removed one minute later" in LOAD_BALANCERS.read_text()


def test_the_table_of_versions_is_that_of_the_warnings() -> None:
    assert f"|---|---|---|\n{versions.TABLE}\n" in LIMITS.read_text()
