"""The meaning of a file: values, defaults and their sources, and references to the environment."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from supervisor.config import ConfigError, load
from supervisor.core.settings import (
    CandidateCheck,
    Command,
    ElectionSettings,
    Fence,
    Hook,
    Run,
    SessionSettings,
    Tls,
    Webhook,
)
from tests.support.configured import loaded


def election(tmp_path: Path, text: str, environ: Mapping[str, str] | None = None) -> ElectionSettings:
    """Return the only election, app, of a mapping in flow style or of a whole file."""
    whole = text if text.startswith(("elections:", "defaults:")) else f"elections: {{app: {text}}}\n"
    (only,) = loaded(tmp_path, whole, environ).items
    assert isinstance(only, ElectionSettings)
    return only


def test_an_empty_election_has_every_default(tmp_path: Path) -> None:
    assert election(tmp_path, "{}") == ElectionSettings(
        name="app",
        key="service/app/leader",
        value=b'{"Node":"node1"}',
        session=SessionSettings(
            name="consul-supervisor:app",
            ttl_s=10.0,
            lock_delay_s=30.0,
            behavior="release",
            node_checks=(),
            service_checks=(),
        ),
        contend=True,
        on_acquire=(),
        on_lose=(),
        on_change=(),
        on_lose_failure=(),
        run=None,
        acquire_failure="release",
        acquire_delay_s=0.0,
        rejoin_delay_s=10.0,
        accept_overlap=False,
    )


def test_hooks_of_losing_have_their_own_default_timeout(tmp_path: Path) -> None:
    app = election(
        tmp_path,
        "{on_acquire: [{shell: a}], on_lose: [{shell: b}],"
        " on_change: [{shell: c}], on_lose_failure: [{shell: d}]}",
    )
    hooks = (*app.on_acquire, *app.on_lose, *app.on_change, *app.on_lose_failure)
    assert [hook.timeout_s for hook in hooks] == [30.0, 5.0, 30.0, 5.0]
    assert [hook.name for hook in hooks] == [
        "on_acquire[0]",
        "on_lose[0]",
        "on_change[0]",
        "on_lose_failure[0]",
    ]


def test_a_hook_may_set_everything_of_a_command(tmp_path: Path) -> None:
    app = election(
        tmp_path,
        """
elections:
  app:
    on_acquire:
      - name: promote
        exec: [/bin/promote, --now, "${NOT_OURS}"]
        timeout: 1m30s
        retries: 3
        retry_delay: 500ms
        kill_after: 1.5s
        env: {B: "2", A: "$NOR_THIS"}
        cwd: /srv
        user: app
        group: "adm"
""".lstrip(),
    )
    assert app.on_acquire == (
        Hook(
            name="promote",
            call=Command(
                argv=("/bin/promote", "--now", "${NOT_OURS}"),
                env=(("B", "2"), ("A", "$NOR_THIS")),
                cwd="/srv",
                user="app",
                group="adm",
                kill_after_s=1.5,
            ),
            timeout_s=90.0,
            retries=3,
            retry_delay_s=0.5,
        ),
    )


def test_a_hook_may_set_everything_of_a_webhook(tmp_path: Path) -> None:
    app = election(
        tmp_path,
        """
elections:
  app:
    on_change:
      - webhook: https://${HOSTNAME}.example.net/${PART}
        method: PUT
        headers: {X-Token: "Bearer ${TOKEN}"}
        body: '{"cost": "$$5", "by": "${PART}"}'
        secret_file: /etc/${PART}.key
        tls: {ca_file: /ca.pem, cert_file: /c.pem, key_file: /k.pem, server_name: x, verify: true}
""".lstrip(),
        {"PART": "app", "TOKEN": "hunter2"},
    )
    assert app.on_change[0].call == Webhook(
        url="https://node1.example.net/app",
        method="PUT",
        headers=(("X-Token", "Bearer hunter2"),),
        body='{"cost": "$5", "by": "app"}',
        secret_file="/etc/app.key",
        tls=Tls("/ca.pem", "/c.pem", "/k.pem", "x", True),
    )
    assert "hunter2" not in repr(app)


def test_defaults_fill_in_missing_keys(tmp_path: Path) -> None:
    text = """
defaults:
  session:
    {ttl: none, lock_delay: 40s, behavior: delete, node_checks: [serfHealth], service_checks: [{id: a}]}
  hook: {timeout: 10s, retries: 1, retry_delay: 2s, kill_after: 3s, cwd: /a, user: u, group: g}
  lose_hook: {timeout: 4s, user: v}
elections:
  app:
    session: {lock_delay: 50s}
    on_acquire: [{shell: a}, {shell: b, timeout: 1s, user: w}]
    on_lose: [{shell: c}]
    on_change: [{webhook: "http://h/"}]
""".lstrip()
    app = election(tmp_path, text)
    assert app.session == SessionSettings(
        "consul-supervisor:app", None, 50.0, "delete", ("serfHealth",), ("a",)
    )
    command = Command(("/bin/sh", "-c", "a"), (), "/a", "u", "g", 3.0)
    assert app.on_acquire[0] == Hook("on_acquire[0]", command, 10.0, 1, 2.0)
    assert (app.on_acquire[1].timeout_s, app.on_acquire[1].call.user) == (1.0, "w")  # type: ignore[union-attr]
    assert app.on_lose[0] == Hook("on_lose[0]", Command(("/bin/sh", "-c", "c"), user="v"), 4.0)
    assert app.on_change[0] == Hook("on_change[0]", Webhook("http://h/"), 10.0, 1, 2.0)


def test_run_and_the_policies_are_read(tmp_path: Path) -> None:
    app = election(
        tmp_path,
        "{run: {exec: [/bin/app], stop_timeout: 2s, env: {A: b}, cwd: /srv, user: u, group: g},"
        " acquire_failure: keep, acquire_delay: 2s, rejoin_delay: 1m, accept_overlap: true}",
    )
    assert app.run == Run(Command(("/bin/app",), (("A", "b"),), "/srv", "u", "g"), 2.0)
    assert (app.acquire_failure, app.acquire_delay_s, app.rejoin_delay_s) == ("keep", 2.0, 60.0)
    assert app.accept_overlap
    assert election(tmp_path, "{run: {shell: app}}").run == Run(Command(("/bin/sh", "-c", "app")), 5.0)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain text", b"plain text"),
        ('""', b""),
        ("yes", b"yes"),
        ("022", b"022"),
        ("'{\"a\": 1}'", b'{"a": 1}'),
        ("{b: 1, a: [true, null, ~, 1.5, -3, x, '1']}", b'{"b":1,"a":[true,null,null,1.5,-3,"x","1"]}'),
        ('["\\u00e4"]', '["ä"]'.encode()),
        ("[]", b"[]"),
        ("{Node: '${HOSTNAME}', Cost: '$$${N}'}", b'{"Node":"node1","Cost":"$8"}'),
        ("'${N}'", b"8"),
        ("{N: '${N}'}", b'{"N":"8"}'),
        ("{on: 1, 022: 2, ~: 3}", b'{"on":1,"022":2,"~":3}'),
    ],
)  # fmt: skip
def test_values_are_text_or_compact_json_in_their_order(value: str, expected: bytes, tmp_path: Path) -> None:
    assert election(tmp_path, f"{{value: {value}}}", {"N": "8"}).value == expected


@pytest.mark.parametrize("content", ["{a: b}", "true", "[1]", "a: b", "${HOSTNAME}", "*x", "null", "'"])
def test_the_content_of_a_variable_is_text_and_never_parsed(content: str, tmp_path: Path) -> None:
    assert election(tmp_path, "{value: '${IT}'}", {"IT": content}).value == content.encode()


def test_hostname_is_the_hosts_own_and_not_the_environments(tmp_path: Path) -> None:
    assert election(tmp_path, "{key: 'a/${HOSTNAME}'}", {"HOSTNAME": "other"}).key == "a/node1"


@pytest.mark.parametrize(
    ("text", "length_s"),
    [
        ("1s", 1),
        ("1500ms", 1.5),
        ("1.5s", 1.5),
        ("1m30s", 90),
        ("0.5h", 1800),
        ("1h0m1s", 3601),
        ("24h", 86400),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, length_s: float, tmp_path: Path) -> None:
    assert election(tmp_path, f"{{session: {{ttl: {text}}}}}").session.ttl_s == length_s


@pytest.mark.parametrize("key", ["a", "a/b", "a/.lock", "..a/b..", "A,_-./x", "a/", "1"])
def test_every_key_that_consul_takes_is_accepted(key: str, tmp_path: Path) -> None:
    quoted = f'"{key}"'
    assert election(tmp_path, f"{{key: {quoted}}}").key == key


def test_each_risky_setting_is_a_warning_with_its_place(tmp_path: Path) -> None:
    text = """
consul: {address: "https://consul:8501", tls: {verify: false}}
elections:
  app:
    session: {ttl: 5s}
    on_acquire: [{shell: a}]
    on_lose: [{shell: a, timeout: 6s}]
    on_change: [{webhook: "https://h/", tls: {verify: false}}]
  other:
    session: {lock_delay: 60s}
    on_lose: [{shell: a, timeout: 45s}]
  third:
    on_acquire: [{shell: a}]
    on_lose: [{shell: a, timeout: 6s}]
    service: {name: db, address: localhost}
""".lstrip()
    warnings = [str(each).removeprefix(f"{tmp_path}/c.yaml:") for each in loaded(tmp_path, text).warnings]
    assert warnings == [
        "1:56: consul.tls.verify: Consul's certificate is not verified:"
        " anyone on the network path can read and change everything",
        "4:20: elections.app.session.ttl: below 10s Consul refuses it unless its session_ttl_min allows it",
        "7:55: elections.app.on_change[0].tls.verify: the certificate is not verified:"
        " anyone on the network path can read all requests",
        "9:27: elections.other.session.lock_delay: tolerates 4.33s without an answer from Consul,"
        " whose change of leader takes 14s: no lock_delay is long enough for that, shorten the timeouts",
        "11:3: elections.third.session.lock_delay: tolerates 13.83s without an answer from Consul,"
        " whose change of leader takes 14s: set 31s to tolerate that",
        "14:34: elections.third.service.address: each machine takes this for itself:"
        " write an address that others can reach",
    ]


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "::1:2", "db-1", "db.example.net.", "10.example", "xn--hrisson-bya"]
)
def test_an_address_or_host_name_of_a_service_is_taken(tmp_path: Path, address: str) -> None:
    text = (
        f"elections: {{app: {{session: {{lock_delay: 45s}}, service: {{name: db, address: '{address}'}}}}}}"
    )
    assert loaded(tmp_path, text).warnings == ()


@pytest.mark.parametrize("address", ["1.2.3", "1.2.3.4.", "db:5432", "-db", "db-", "a..b", ".a", "0.0.0.0"])
def test_anything_else_is_no_address_of_a_service(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError):
        loaded(tmp_path, f"elections: {{app: {{service: {{name: db, address: '{address}'}}}}}}")


def test_the_maintenance_mode_is_asked_for_with_a_command_or_alone(tmp_path: Path) -> None:
    alone = election(tmp_path, "{candidate_check: {maintenance: true, interval: 7s}}").candidate_check
    assert alone == CandidateCheck(None, 7.0, maintenance=True)
    both = election(tmp_path, "{candidate_check: {maintenance: true, exec: [/bin/check]}}").candidate_check
    assert both is not None and both.hook is not None and both.maintenance
    usual = election(tmp_path, "{candidate_check: {exec: [/bin/check]}}").candidate_check
    assert usual is not None and not usual.maintenance


def test_a_fence_is_a_hook_that_is_tried_again_and_has_its_own_settings(tmp_path: Path) -> None:
    text = (
        "{fence: {exec: [/bin/off], target: 'rack/${HOSTNAME}', after: 0s, exclusive: true, required: true}}"
    )
    fence = election(tmp_path, text).fence
    hook = Hook("fence", Command(("/bin/off",)), 30.0, retries=1000)
    assert fence == Fence(hook, "rack/node1", after_s=0.0, exclusive=True, required=True)
    assert election(tmp_path, "{fence: {shell: off}}").fence == Fence(
        Hook("fence", Command(("/bin/sh", "-c", "off")), 30.0, retries=1000)
    )


def test_the_webhook_of_a_fence_is_filled_in_and_its_variables_are_secret(tmp_path: Path) -> None:
    text = "elections: {app: {fence: {webhook: 'https://h/', headers: {K: '${CONTENT}'}}}}"
    config = loaded(tmp_path, text, {"CONTENT": "s3cr3t"})
    fence = config.items[0].fence
    assert fence is not None and isinstance(fence.hook.call, Webhook)
    assert fence.hook.call.headers == (("K", "s3cr3t"),) and config.withheld == {"CONTENT"}


def test_a_query_needs_no_variable_of_a_fence(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("elections: {app: {fence: {webhook: '${URL}', target: '${PLUG}'}}}")
    fence = load(file, {}, "node1", asked="app").items[0].fence
    assert fence is not None and fence.target is None


def test_a_query_refuses_a_session_name_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("elections: {app: {session: {name: ['${NOT_SET}']}}}")
    with pytest.raises(ConfigError, match="must be text"):
        load(file, {}, "node1", asked="app")


@pytest.mark.parametrize(
    ("fence", "warning"),
    [
        ("after: 500ms", "after: a former leader that lives may be switched off before it can say"),
        ("after: 45s", "after: the fence never begins, because this node acts without it after lock_delay"),
        ("required: true", "required: while the fence fails, no node acts after a crash, however long that "),
        ("after: 44s, exclusive: true", ""),
    ],
)
def test_a_fence_that_may_surprise_is_a_warning(fence: str, warning: str, tmp_path: Path) -> None:
    text = f"elections: {{app: {{session: {{lock_delay: 45s}}, fence: {{shell: off, {fence}}}}}}}"
    assert [str(one).partition(".fence.")[2][: len(warning)] for one in loaded(tmp_path, text).warnings] == [
        warning for _ in range(bool(warning))
    ]
