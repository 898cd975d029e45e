"""``policy``: what it prints is enough for its purpose, and has no needless line.

The agent denies by default. Without any one line of a policy the purpose fails, and the report names the
missing rule.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from socket import gethostname
from urllib.parse import quote

import pygohcl  # type: ignore[import-untyped]
import pytest

from supervisor.adapters.consul.endpoints import endpoint_of
from supervisor.core.outcomes import Denied, InMaintenance
from supervisor.core.requests import ReadKey, ReadSlots
from tests.consul.elections.test_fence import leave_as_lost
from tests.consul.elections.test_maintenance import WHY, maint, outcome
from tests.support.captured import captured
from tests.support.consul import Client
from tests.support.guarded import EACH_WAY, Guarded, guarded_agent
from tests.support.pages import DOCS, ROOT, SECURITY, Shown
from tests.support.supervisor import COMMAND, ENVIRON, Supervisor, command, until

SHOWN = Shown(SECURITY)
RIGHTS = SHOWN.of(SECURITY, "Rights in Consul")
NODE = "NAME-OF-THE-AGENTS-NODE"
SESSION = {"ttl": "2s", "lock_delay": "20s"}
TELL = {"on_change": [{"exec": ["true"]}]}

Attempt = Callable[[str], str]
"""Tries with a token of that secret; blank when all of it worked, else the error."""


@pytest.fixture(scope="module", params=EACH_WAY)
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_agent(tmp_path_factory.mktemp("guarded"), request.param) as agent:
        yield agent


def named(shown: str, unique: str, guarded: Guarded) -> str:
    """Return the page's rules, for this agent and with keys of this test."""
    own = shown.replace("service/hdfs", unique).replace("service/rebuild", unique)
    return own.replace(NODE, guarded.node_name)


def policy(
    guarded: Guarded, folder: Path, section: str, item: Mapping[str, object], *more: str, **top: object
) -> str:
    """Return what ``policy`` prints for a file with this item, by a token that may see the agent."""
    file = folder / "policy.yaml"
    consul = {"address": guarded.url, "token": guarded.token}
    file.write_text(json.dumps({"consul": consul, section: {"app": item}, **top}))
    done = command("policy", str(file), *more)
    assert (done.returncode, done.stderr) == (0, "") and NODE not in done.stdout
    return done.stdout


def needs_every_line(
    guarded: Guarded,
    folder: Path,
    section: str,
    item: Mapping[str, object],
    attempt: Attempt,
    *more: str,
    **top: object,
) -> None:
    """Try with what ``policy`` prints for this item, and without each line of it."""
    rules = policy(guarded, folder, section, item, *more, **top)
    assert attempt(guarded.token_of(rules).secret) == ""
    for line in rules.splitlines(keepends=True):
        error = attempt(guarded.token_of(rules.replace(line, "")).secret)
        resource = line.partition(" {")[0].replace(guarded.node_name, NODE)
        assert resource in error, f"{line}: {error}"


def life(
    guarded: Guarded, folder: Path, section: str, item: dict[str, object], *, told: bool = False
) -> Attempt:
    """Run a supervisor until it holds, or with ``told`` until on_change has run, and then stop it."""

    def attempt(secret: str) -> str:
        config = {"consul": {"address": guarded.url, "token": secret}, section: {"app": item}}
        one = Supervisor(folder / secret, config)
        with one:
            done = {"hook": "on_change[0]"} if told else {"role": "holding"}
            event = "hook-succeeded" if told else "role"
            until(lambda: one.lines(event, **done) or one.lines("consul-denied"), "it works, or is denied")
            assert one.stop() == 0
            return " ".join(line["why"] for line in one.lines("consul-denied"))

    return attempt


def asked(guarded: Guarded, *arguments: str) -> Attempt:
    """Run a command that queries Consul."""

    def attempt(secret: str) -> str:
        done = command(*arguments, environ={"CONSUL_HTTP_ADDR": guarded.url, "CONSUL_HTTP_TOKEN": secret})
        assert done.returncode == (69 if done.stderr else 0), done
        assert secret not in done.stderr + done.stdout
        return done.stderr

    return attempt


def leave_lost_machine(guarded: Guarded, key: str) -> None:
    guarded.call("DELETE", f"/kv/{key}", query={"recurse": ""})
    leave_as_lost(guarded, key)


@pytest.fixture
def held(guarded: Guarded, unique: str) -> Iterator[str]:
    """Return a session that holds the election's key and has a slot of the semaphore."""
    session = guarded.session_create(TTL="600s", LockDelay="0s")
    assert guarded.acquire(f"{unique}/leader", session, b"a")
    assert guarded.acquire(f"{unique}/{session}", session, b"{}")
    lock = json.dumps({"Limit": 2, "Holders": {session: True}}).encode()
    assert guarded.kv_put(f"{unique}/.lock", lock)
    yield session
    guarded.session_destroy(session)


def test_every_block_of_the_page_has_a_test() -> None:
    assert SHOWN.untested() == []


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    file, *outputs, piped = RIGHTS
    (tmp_path / "c.yaml").write_text(file.text)
    for purpose, shown in zip(("daemon", "operator", "observer"), outputs, strict=True):
        done = command("policy", str(tmp_path / "c.yaml"), "--for", purpose, "--node", NODE)
        assert (done.returncode, done.stdout) == (0, shown.text), done
    done = command("policy", str(tmp_path / "c.yaml"), "--for", "drain")
    assert (done.returncode, done.stdout) == (0, outputs[2].text), "it has the rules of an observer"
    assert piped.text.startswith("consul-supervisor policy /etc/consul-supervisor --node node1 >rules.hcl\n")


def test_no_policy_is_printed_without_the_name_of_the_node(guarded: Guarded, tmp_path: Path) -> None:
    """What is printed goes into Consul, which would take a place-holder for a name."""
    for consul in (f"{{address: '{guarded.url}'}}", "{token_file: /nowhere}"):
        (tmp_path / "c.yaml").write_text(f"consul: {consul}\nelections: {{app: {{}}}}\n")
        done = command("policy", str(tmp_path / "c.yaml"))
        assert (done.returncode, done.stdout) == (69, "") and "--node names it" in done.stderr


def test_the_rules_for_contending_for_an_election_are_enough_and_needed(
    guarded: Guarded, unique: str, tmp_path: Path
) -> None:
    item: dict[str, object] = {"key": f"{unique}/leader", "session": SESSION, **TELL}
    needs_every_line(guarded, tmp_path, "elections", item, life(guarded, tmp_path, "elections", item))


@pytest.mark.long
def test_the_rules_for_observing_an_election_are_enough_and_needed(
    guarded: Guarded, unique: str, held: str, tmp_path: Path
) -> None:
    item: dict[str, object] = {"key": f"{unique}/leader", "contend": False, **TELL}
    attempt = life(guarded, tmp_path, "elections", item, told=True)
    needs_every_line(guarded, tmp_path, "elections", item, attempt)


@pytest.mark.long
def test_the_rules_for_contending_for_a_semaphore_are_enough_and_needed(
    guarded: Guarded, unique: str, tmp_path: Path
) -> None:
    item: dict[str, object] = {"prefix": unique, "limit": 2, "session": SESSION, **TELL}
    needs_every_line(guarded, tmp_path, "semaphores", item, life(guarded, tmp_path, "semaphores", item))


def test_a_denied_key_of_a_semaphore_is_reported_with_the_rule_for_its_prefix() -> None:
    """The report must not depend on which of its requests Consul refuses first."""
    key, all_of_it = ReadKey("app", 0.0, 1.0, "app/.lock", "app"), ReadSlots("app", 0.0, 1.0, "app")
    assert endpoint_of(key).rule(key) == endpoint_of(all_of_it).rule(all_of_it)


def test_the_rules_for_observing_a_semaphore_are_enough_and_needed(
    guarded: Guarded, unique: str, held: str, tmp_path: Path
) -> None:
    """Without the right Consul shows an empty list and no error, and the page says so."""
    item: dict[str, object] = {"prefix": unique, "limit": 2, "contend": False}
    item["on_change"] = [{"shell": 'echo "told $CONSUL_SUPERVISOR_HOLDERS"'}]
    secret = guarded.token_of(policy(guarded, tmp_path, "semaphores", item)).secret
    config = {"consul": {"address": guarded.url, "token": secret}, "semaphores": {"app": item}}
    one = Supervisor(tmp_path, config)
    with one:
        assert held in one.wait_line("hook-output")["text"]
        assert one.stop() == 0 and not one.lines("consul-denied")


@pytest.mark.parametrize("lists", ["list", "read"])
def test_the_rules_are_enough_where_lists_need_a_right_of_their_own(
    lists: str, unique: str, tmp_path: Path
) -> None:
    with Guarded(tmp_path / "guarded", key_list_policy=True) as guarded:
        guarded.kv_put(f"{unique}/.lock", b'{"Limit": 2, "Holders": {}}')
        item = {"prefix": unique, "limit": 2, "contend": False, **TELL}
        rules = policy(guarded, tmp_path, "semaphores", item, fleet={})
        made = guarded.token_of(rules.replace('"list"', f'"{lists}"')).secret
        error = life(guarded, tmp_path, "semaphores", item, told=True)(made)
        assert (error == "") is (lists == "list"), error
        file = tmp_path / "policy.yaml"
        file.write_text(file.read_text().replace(str(guarded.token), made))
        checked = command("check", str(file), "--connect", "--json")
        found = {each["what"]: each for each in json.loads(checked.stdout)["connect"]}
        assert found["orders"]["level"] == "ok"  # a daemon may write there, to delete what is over


@pytest.mark.long
def test_the_rules_for_a_session_with_checks_are_enough_and_needed(
    guarded: Guarded, unique: str, tmp_path: Path
) -> None:
    """The test registers the service, which takes rights of its own."""
    check = {"CheckID": f"{unique}-check", "TTL": "600s", "Status": "passing"}
    service = {"Name": unique, "ID": unique, "Check": check}
    assert guarded.call("PUT", "/agent/service/register", service).status == 200
    checks = {"node_checks": ["serfHealth"], "service_checks": [{"id": f"{unique}-check"}]}
    item: dict[str, object] = {"key": f"{unique}/leader", "session": {**SESSION, **checks}, **TELL}
    needs_every_line(guarded, tmp_path, "elections", item, life(guarded, tmp_path, "elections", item))


@pytest.mark.parametrize("part", ["fence", "fleet", "fence and fleet"])
def test_check_finds_each_right_that_a_fence_or_the_history_needs(
    guarded: Guarded, unique: str, tmp_path: Path, part: str
) -> None:
    item: dict[str, object] = {"key": f"{unique}/leader", "session": SESSION}
    top: dict[str, object] = {"fleet": {"prefix": unique}} if "fleet" in part else {}
    item |= {"fence": {"exec": ["true"]}} if "fence" in part else {}

    def attempt(secret: str) -> str:
        file = tmp_path / "c.yaml"
        consul = {"address": guarded.url, "token": secret}
        file.write_text(json.dumps({"consul": consul, "elections": {"app": item}, **top}))
        found = json.loads(command("check", str(file), "--connect", "--json").stdout)["connect"]
        levels = ("error", "warning") if top else ("error",)
        remedies = " ".join(one["remedy"] for one in found if one["level"] in levels)
        return remedies.replace(guarded.node_name, NODE)

    needs_every_line(guarded, tmp_path, "elections", item, attempt, **top)


def test_the_rules_for_the_maintenance_mode_are_enough_and_needed(guarded: Guarded, tmp_path: Path) -> None:
    """Consul 1.8 hides the check without a word, and reports a token that it does not know."""
    rules = policy(guarded, tmp_path, "elections", {"candidate_check": {"maintenance": True}})
    (needed,) = (line for line in rules.splitlines() if line.startswith("node "))
    maint(guarded, "-enable", "-reason", "kernel 6.1", token=guarded.token or "")
    try:
        assert outcome(guarded, guarded.token_of(rules).secret) == InMaintenance(WHY, "kernel 6.1")
        assert outcome(guarded, guarded.token_of(rules.replace(needed, "")).secret) == InMaintenance()
        assert isinstance(outcome(guarded, "11111111-2222-3333-4444-555555555555"), Denied)
    finally:
        maint(guarded, "-disable", token=guarded.token or "")


@pytest.mark.long
def test_a_daemon_with_everything_has_exactly_what_it_needs(
    guarded: Guarded, unique: str, tmp_path: Path
) -> None:
    """``check --connect`` finds nothing missing, and the daemon acquires, fences, registers, releases.

    Without any one rule both say which, nothing acts that may not, and what was held is given back in order.
    """
    name, key = unique.replace("_", "-")[:50], f"{unique}/leader"
    item = {
        "key": key,
        "session": SESSION,
        "fence": {"exec": ["true"], "after": "0s", "exclusive": True},
        "candidate_check": {"maintenance": True, "interval": "1s"},
        "service": {"name": name},
        "on_acquire": [{"shell": 'echo "ended $CONSUL_SUPERVISOR_PREVIOUS_END"'}],
    }
    rules = policy(guarded, tmp_path, "elections", item).splitlines(keepends=True)
    found = f"/agent/service/{quote(f'consul-supervisor:{gethostname()}:app')}"
    for missing in ("", *rules):
        # Of a node, check has to know the name, to say what is hidden.
        instead = missing.replace("node ", "agent ") if missing.startswith("node ") else ""
        secret = guarded.token_of("".join(rules).replace(missing, instead)).secret
        consul = {"address": guarded.url, "token": secret}
        one = Supervisor(tmp_path / secret, {"consul": consul, "elections": {"app": item}})
        checked = command("check", str(one.config_path), "--connect", "--json")
        remedies = [
            each["remedy"].replace(NODE, guarded.node_name)
            for each in json.loads(checked.stdout)["connect"]
            if each["level"] == "error"
        ]
        leave_lost_machine(guarded, key)
        with one:
            if missing.startswith(("key", "session", "service ")):
                denied = one.wait_line("consul-denied")["why"]
                assert missing.partition(" {")[0].replace(guarded.node_name, NODE) in denied
            if not missing.startswith(("key", "session")):
                one.wait_line("role", role="holding")
            if not missing:
                assert (checked.returncode, remedies) == (0, [])
                assert one.wait_line("hook-output")["text"] == "ended fenced"
                until(lambda: guarded.call("GET", found).status == 200, "it is registered")
            elif not missing.startswith("service_prefix"):  # Consul 1.8 shows the mode without it
                assert checked.returncode == 78 and missing.strip() in " ".join(remedies)
            assert one.stop() == 0 and len(one.lines("role", role="losing")) <= 1
            assert not (guarded.kv_get(key) or {}).get("Session"), missing


@pytest.mark.long
def test_the_command_members(guarded: Guarded, unique: str, held: str, tmp_path: Path) -> None:
    """Without the right to read sessions Consul hides them, which is no error, and the output reports it."""
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps({"elections": {"app": {"key": f"{unique}/leader"}}}))

    def told(secret: str) -> str:
        environ = {"CONSUL_HTTP_ADDR": guarded.url, "CONSUL_HTTP_TOKEN": secret}
        done = command("sessions", "--config", str(file), environ=environ)
        assert command("members", "app", "--config", str(file), environ=environ).returncode == done.returncode
        return done.stderr + "".join(line for line in done.stdout.splitlines() if "needs" in line)

    item = {"key": f"{unique}/leader"}
    needs_every_line(guarded, tmp_path, "elections", item, told, "--for", "observer")


@pytest.mark.long
@SHOWN.by(SECURITY, "verify", "hcl")
def test_the_rules_for_the_command_verify_are_enough_and_needed(
    shown: str, guarded: Guarded, unique: str, held: str
) -> None:
    """The first block is for a key that is locked, the second for a slot."""
    key = f"{unique}/.lock" if "key_prefix" in shown else f"{unique}/leader"
    attempt = asked(guarded, "verify", "--key", key, "--session", held)
    rules = named(shown, unique, guarded)
    assert attempt(guarded.token_of(rules).secret) == ""
    assert f'"{key}"' in attempt(guarded.token_of("").secret)


@SHOWN.by(SECURITY, "With Terraform", "sh", "typed")
@SHOWN.by(SECURITY, "With Terraform", "terraform", "module")
def test_the_rules_for_terraform_are_accepted_and_its_module_reads_them(
    typed: str, module: str, guarded: Guarded, tmp_path: Path, unique: str
) -> None:
    (tmp_path / "c.yaml").write_text(json.dumps({"elections": {"app": {"key": unique}}}))
    ours = typed.replace("/etc/consul-supervisor", f"{tmp_path}/c.yaml")
    ours = ours.replace("consul-supervisor policy", f"{shlex.join(COMMAND)} policy")
    environ = {**ENVIRON, "CONSUL_HTTP_ADDR": guarded.url, "PYTHONPATH": str(ROOT)}
    done = captured(["sh", "-euc", ours], cwd=tmp_path, env=environ)
    assert done.returncode == 0, done.stderr
    nodes = re.findall(r"node\d", typed.splitlines()[1])
    resources = pygohcl.loads(module)["resource"]
    assert resources["consul_acl_policy"]["supervisor"] == {
        "for_each": f"toset({json.dumps(nodes)})",
        "name": "consul-supervisor-each.key",  # ${each.key}, as this parser tells it
        "rules": 'file("${path.module}/rules/${each.key}.hcl")',
    }
    made = {"for_each": "consul_acl_policy.supervisor", "policies": ["each.value.name"]}
    assert resources["consul_acl_token"]["supervisor"] == made
    for node in nodes:
        rules = (tmp_path / "rules" / f"{node}.hcl").read_text()
        assert f'session "{node}" {{ policy = "write" }}' in rules
        guarded.token_of(rules)


@pytest.mark.long
@SHOWN.by(SECURITY, "A service that tags the leader", "hcl")
def test_the_rules_for_registering_a_service_are_enough_and_needed(
    shown: str, guarded: Guarded, unique: str
) -> None:
    """The agent's API registers it, and reports a missing right."""
    check = {"HTTP": "http://127.0.0.1:1/leader/namenode", "Interval": "600s"}
    body = {"Name": "namenode", "Check": check}

    def attempt(secret: str) -> int:
        client = Client(guarded.host, guarded.port, secret)
        return client.call("PUT", "/agent/service/register", body).status

    assert attempt(guarded.token_of(named(shown, unique, guarded)).secret) == 200
    assert attempt(guarded.token_of("").secret) == 403


def test_a_token_that_consul_does_not_know_is_reported_as_unknown(
    guarded: Guarded, unique: str, tmp_path: Path
) -> None:
    """The report says where the token comes from, and never shows it."""
    secret = "11111111-2222-3333-4444-555555555555"
    file = tmp_path / "token"
    file.write_text(secret)
    environ = {"CONSUL_HTTP_ADDR": guarded.url, "CONSUL_HTTP_TOKEN_FILE": str(file)}
    done = command("leader", "--key", f"{unique}/leader", environ=environ)
    assert done.returncode == 69
    assert f"Consul does not know the token in {file}: it was deleted or mistyped" in done.stderr
    assert secret not in done.stderr


def test_a_command_asks_with_the_token_of_whoever_runs_it_and_names_it(
    guarded: Guarded, unique: str, tmp_path: Path
) -> None:
    file, daemons, weak = tmp_path / "c.yaml", tmp_path / "token", guarded.token_of("").secret
    daemons.write_text(guarded.token_of("").secret)
    consul = {"address": guarded.url, "token_file": str(daemons)}
    app = {"elections": {"app": {"key": f"{unique}/leader"}}}
    file.write_text(json.dumps({"consul": consul, "fleet": {"prefix": unique}, **app}))
    for own, named in (("", str(daemons)), (weak, "CONSUL_HTTP_TOKEN"), (str(guarded.token), "")):
        words = ("pause", "app", "--everywhere", "--config", str(file))
        done = command(*words, environ={"CONSUL_HTTP_TOKEN": own})
        assert (
            done.returncode == 69 and f"the token in {named} needs" in done.stderr
            if named
            else "paused everywhere" in done.stderr  # and no daemon is there that follows
        )


def test_the_page_of_rights_is_one_of_the_docs() -> None:
    assert SECURITY in DOCS
