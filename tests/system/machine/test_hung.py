"""A file system that does not answer harms only the election that uses it, under systemd."""

import signal

import pytest

from tests.support.supervisor import until
from tests.system.machine.hung import hung
from tests.system.machine.node import Node

FAR = "/srv/test-far"


@pytest.fixture
def beside(node: Node) -> str:
    """Start a node that holds, beside an election whose check will hang; return the session of the first."""
    node.machine.did(f"mkdir {FAR}; printf '#!/bin/sh\\n' >{FAR}/hook; chmod +x {FAR}/hook")
    node.machine.did(f"printf anonymous >{FAR}/token")
    check = {"exec": [f"{FAR}/hook"], "timeout": "1s", "interval": "1s", "rise": 100}
    far = {"key": f"{node.key}/far", "candidate_check": check}
    node.configure(consul={"token_file": f"{FAR}/token"}, app=node.election(), far=far)
    node.start()
    return node.wait_holds()


def test_a_program_and_a_token_that_hang_delay_no_other_election(node: Node, beside: str) -> None:
    before = node.pid
    with hung(node.machine, FAR):
        until(lambda: node.log("check-failed", item="far"), "the check that hangs fails at its timeout")
        node.destroy(beside)
        node.wait_event("lose session-invalidated")
        assert node.pid == before and not node.log("event-loop-stalled")


def test_a_start_on_a_machine_with_hung_paths_winds_up_its_records(node: Node, beside: str) -> None:
    before = node.pid
    with hung(node.machine, FAR):
        node.kill(signal.SIGKILL)
        node.destroy(beside)
        node.wait_new_process(before)
        node.wait_event("lose crashed")
        assert node.restarts == 1
