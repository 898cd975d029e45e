"""Start, status line, stop and reboot, as systemd sees them."""

import shutil
import signal

from tests.support.pages import fenced
from tests.support.supervisor import until
from tests.system.machine.node import CONFIG, ROOT, UNIT, Node, record

USEC = 1_000_000
NIGHTLY = "/etc/consul-supervisor/nightly.yaml"


def test_the_unit_is_not_up_before_the_silence_of_consul_is_logged(node: Node) -> None:
    """The kernel accepts the connection and nothing answers, so only the time-out of the exchange ends it."""
    node.configure(app=node.election())
    node.machine.did("systemctl kill -s STOP consul")
    node.start()
    began, up = map(int, node.show("ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic"))
    assert (up - began) / USEC > 2.0
    assert node.log("consul-silent")
    node.machine.did("systemctl kill -s CONT consul")
    node.wait_holds()


def test_the_unit_is_not_up_before_consul_has_answered_for_all_items(node: Node) -> None:
    """Items that are only watched and paused items count as well."""
    node.configure(app=node.election(), other={}, seen={"contend": False})
    node.start()
    until(lambda: node.status == "holds 2 of 2: app, other; observes 1", "its status", 10.0, node.log_text)
    node.machine.did("/opt/consul-supervisor/bin/consul-supervisor pause other")
    before = node.pid
    node.kill(signal.SIGKILL)
    node.wait_new_process(before)
    until(lambda: node.status == "holds 2 of 2: app, other; observes 1", "its status", 10.0, node.log_text)


def test_a_stop_waits_for_on_lose_longer_than_the_unit_says(node: Node) -> None:
    """on_lose is repeated while no rival can hold, and systemd is notified to wait for it."""
    node.drop_in("[Service]\nTimeoutStopSec=2s\n")
    failing = f"{record('try')}; sleep 2; test $CONSUL_SUPERVISOR_ATTEMPT = 4"
    hook = {"shell": failing, "timeout": "4s", "retries": 3, "retry_delay": "100ms"}
    node.start_holding(app=node.election(on_lose=[hook, {"shell": record("done")}]))
    node.stop()
    assert node.events() == ["acquire acquired", *["try shutdown"] * 4, "done shutdown"]
    assert node.holder() == ""
    assert node.show("Result", "ExecMainStatus", "ActiveState") == ["success", "0", "inactive"]


def test_a_start_waits_until_tenures_of_a_crash_are_wound_up(node: Node) -> None:
    """No file was ever accepted: on_lose runs by the record, for longer than a start may take, then 78."""
    node.drop_in("[Service]\nTimeoutStartSec=6s\nRestartSec=3s\n")
    slow = {"shell": f"{record('begin')}; sleep 10; {record('end')}", "timeout": "13s"}
    node.start_holding(app=node.election(on_lose=[slow]))
    node.machine.write(CONFIG, "elections: 7\n")
    node.machine.did("rm /var/lib/consul-supervisor/accepted.json /run/consul-supervisor/*/accepted.json")
    node.kill(signal.SIGKILL)
    until(lambda: node.show("ActiveState") == ["failed"], "it has given up", 60.0, node.log_text)
    assert node.events()[1:] == ["begin shutdown", "end shutdown"]
    assert node.show("Result", "ExecMainStatus", "NRestarts") == ["exit-code", "78", "1"]
    assert node.holder() == ""


def test_a_recipe_comes_changes_and_goes_beside_another_election(node: Node) -> None:
    """The commands of the recipe's README run in a checkout on the node, beside another election."""
    page = ROOT / "examples" / "cron" / "README.md"
    blocks = {block.section: block.text for block in fenced(page) if block.language == "sh"}
    come, go = blocks["Set it up"], blocks["Take it away"]
    reload = f"systemctl reload-or-restart {UNIT}"
    assert reload in come and reload in go and f"`{reload}`" in page.read_text()
    shutil.copytree(page.parent, node.machine.root / "srv" / "checkout" / "examples" / "cron")
    node.machine.did("mkdir -p /etc/cron.d")
    session, before = node.start_holding(), node.pid

    node.machine.did(f"cd /srv/checkout; set +e; {come}")  # `holds` ends with 1 at first
    until(lambda: node.status == "holds 2 of 2: app, nightly", "it holds both", 30.0, node.log_text)
    nightly = node.machine.read(NIGHTLY)
    assert "timeout: 5s" in nightly
    node.machine.write(NIGHTLY, nightly.replace("timeout: 5s", "timeout: 4s"))
    node.machine.did(reload)
    assert node.log("reloaded")[-1]["changed"] == "nightly"
    node.machine.did(f"cd /srv/checkout; {go}")
    until(lambda: node.status == "holds 1 of 1: app", "it holds one", 30.0, node.log_text)

    assert (node.pid, node.holder(), node.events()) == (before, session, ["acquire acquired"])


def test_a_machine_that_goes_down_releases_while_consul_still_runs(node: Node) -> None:
    node.start_holding()
    node.machine.reboot()
    node.wait_consul()
    assert node.wait_holds()
    assert node.events() == ["acquire acquired", "lose shutdown", "acquire acquired"]
    assert not node.log("hook-started", reason="crashed")


def test_a_record_of_another_boot_is_wound_up_and_forgotten(node: Node) -> None:
    """The supervisor was killed and did not start again before the machine had rebooted."""
    node.drop_in("[Service]\nRestart=no\n")
    before = node.start_holding(app=node.election(session={"ttl": "2s", "lock_delay": "12s"}))
    node.kill(signal.SIGKILL)
    until(lambda: node.show("ActiveState") == ["inactive"], "it is down", 10.0)
    node.machine.reboot()
    node.wait_event("lose crashed")
    after = until(lambda: node.status == "holds 1 of 1: app" and node.holder(), "it holds again", 90.0)
    assert after != before
    assert node.events() == ["acquire acquired", "lose crashed", "acquire acquired"]


def test_a_reload_notifies_systemd_and_a_bad_file_changes_nothing(node: Node) -> None:
    session, before = node.start_holding(), node.pid
    node.configure(app=node.election(), other={"contend": False})
    node.machine.did(f"systemctl reload {UNIT}")
    until(lambda: node.status == "holds 1 of 1: app; observes 1", "its status", 10.0, node.log_text)
    node.machine.write(CONFIG, "elections: 7\n")
    assert node.machine.run("systemctl", "reload", UNIT).returncode != 0
    assert node.show("ActiveState", "SubState", "NRestarts") == ["active", "running", "0"]
    assert (node.pid, node.holder(), node.events()) == (before, session, ["acquire acquired"])


def test_the_journal_reads_like_sentences_and_filters_by_field(node: Node) -> None:
    hook = [{"shell": "echo stopping it; exit 0"}]
    node.start_holding(app=node.election(on_lose=hook), seen={"contend": False})
    node.stop()
    sentences = node.log_text().splitlines()
    for sentence in (
        "app: holding (acquired), was acquiring",
        "app: losing (shutdown), was holding",
        "app: on_lose[0] wrote: stopping it",
        "Stopped in order",
    ):
        assert sentence in sentences, sentences
    assert not [sentence for sentence in sentences if sentence.startswith("{")]

    lines = node.journal("CONSUL_SUPERVISOR_ITEM=app")
    assert {line["CONSUL_SUPERVISOR_ITEM"] for line in lines} == {"app"}
    assert {line["SYSLOG_IDENTIFIER"] for line in lines} == {UNIT}
    assert {line["_TRANSPORT"] for line in lines} == {"journal"}
    (lost,) = [line for line in lines if line.get("CONSUL_SUPERVISOR_ROLE") == "losing"]
    assert lost["MESSAGE"] == "app: losing (shutdown), was holding"
    assert (lost["CONSUL_SUPERVISOR_REASON"], lost["PRIORITY"]) == ("shutdown", "6")
    transition = lost["CONSUL_SUPERVISOR_TRANSITION"]
    of_it = node.journal(f"CONSUL_SUPERVISOR_TRANSITION={transition}")
    assert [line["CONSUL_SUPERVISOR_EVENT"] for line in of_it] == [
        "role", "hook-started", "hook-output", "hook-succeeded",
    ]  # fmt: skip
