"""A supervisor that is killed or frozen: systemd restarts it, and it goes on or winds up."""

import signal

from tests.support.supervisor import until
from tests.system.machine.node import UNIT, Node, record

FROZEN_S = 40.0  # WatchdogSec, RestartSec and a start; the rest is patience


def test_a_restart_keeps_what_the_node_holds_and_a_stop_hands_over(node: Node) -> None:
    """An upgrade, an operator and needrestart all use one command."""
    run = {"exec": ["/bin/sleep", "infinity"], "stop_timeout": "1s"}
    session, before = node.start_holding(app=node.election(run=run)), node.pid
    node.machine.did(f"systemctl restart {UNIT}")
    assert node.pid not in (0, before)
    assert node.wait_holds() == session
    assert node.events() == ["acquire acquired"]
    until(lambda: len(node.log("run-started")) == 2, "the run child is back", 10.0)
    assert node.machine.sh("pgrep -xc sleep").stdout.strip() == "1"
    assert "Failed with result" not in node.log_text()
    node.stop()
    assert node.events() == ["acquire acquired", "lose shutdown"]
    assert node.holder() == ""


def test_a_restart_in_the_midst_of_a_hook_begins_that_hook_again(node: Node) -> None:
    """Everything that the killed hook left in the unit is gone before the next process begins."""
    slow = f"{record('begin')}; test $(wc -l </srv/events) -gt 1 || sleep 300; {record('end')}"
    node.configure(app=node.election(on_acquire=[{"shell": slow, "timeout": "20s"}]))
    node.start()
    node.wait_event("begin acquired")
    session = node.holder()
    node.machine.did(f"systemctl restart {UNIT}")
    assert node.wait_holds() == session
    assert [event.split()[0] for event in node.events()] == ["begin", "begin", "end"]
    assert node.machine.sh("pgrep -xc sleep").stdout.strip() == "0"
    assert not node.log("leftover-process")


def test_a_frozen_supervisor_is_killed_and_goes_on_without_a_hook(node: Node) -> None:
    session, before = node.start_holding(), node.pid
    node.kill(signal.SIGSTOP)
    until(lambda: node.pid not in (0, before), "systemd has killed what stood still", FROZEN_S)
    assert "Watchdog timeout" in node.log_text()
    assert node.wait_holds() == session
    assert node.events() == ["acquire acquired"]


def test_a_start_that_is_frozen_is_killed_and_begun_again(node: Node) -> None:
    """The process stops itself before it is ready, in the place of a machine that stands still."""
    start = f"exec {node.show('ExecStart')[0].partition('argv[]=')[2].partition(' ;')[0]}"
    frozen = "if rm /srv/freeze; then kill -STOP $$$$; fi"
    session = node.start_holding()
    node.drop_in(f"[Service]\nExecStart=\nExecStart=/bin/sh -c '{frozen}; {start}'\n")
    node.machine.did("touch /srv/freeze")
    node.kill(signal.SIGKILL)
    until(lambda: node.show("ActiveState", "SubState") == ["activating", "start"], "it starts", FROZEN_S)
    assert node.wait_holds() == session
    assert "start operation timed out" in node.log_text() and node.events() == ["acquire acquired"]


def test_a_frozen_supervisor_that_lost_meanwhile_runs_on_lose_when_it_is_back(node: Node) -> None:
    session, before = node.start_holding(), node.pid
    node.kill(signal.SIGSTOP)
    node.destroy(session)
    until(lambda: node.pid not in (0, before), "systemd has killed what stood still", FROZEN_S)
    node.wait_event("lose crashed")
    assert node.events() == ["acquire acquired", "lose crashed"]
