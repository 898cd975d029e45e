"""ActiveMQ by examples/activemq: one broker at a time, and no message whose receipt was given is lost."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.supervisor import until
from tests.system.applications.activemq_nodes import LOCKED, STARTED_S, Brokers
from tests.system.applications.stage import Stage
from tests.system.applications.stomp import Receiver, Sender, reached, sent

STORED = range(200)  # messages that stay unread until the failover
SOME = 20


@pytest.fixture
def brokers(stage: Stage) -> Iterator[Brokers]:
    """Yield two nodes that are not started."""
    with Brokers(stage) as made:
        yield made


@pytest.mark.parametrize("how", ["crash", "stop"])
def test_no_confirmed_message_is_lost_when_the_broker_moves(brokers: Brokers, how: str) -> None:
    """The first node dies or is stopped while some messages lie in the store and others are on their way."""
    a, b = brokers.a, brokers.b
    brokers.led_by_a()
    sent(a.address, "stored", STORED)
    with ExitStack() as stack:
        sender = stack.enter_context(Sender(brokers.addresses, "live"))
        receiver = stack.enter_context(Receiver(brokers.addresses, "live"))
        until(lambda: len(receiver.numbers) > SOME, "messages go through a")
        assert reached(brokers.addresses) == [a.address]
        if how == "crash":
            a.die()
        else:
            assert a.supervisor.stop() == 0
        ended_at = time.monotonic()
        assert not a.brokers()
        until(lambda: len(sender.by(b.address)) > SOME, f"b confirms\n{b.supervisor.log_tail()}", STARTED_S)
        stored = stack.enter_context(Receiver(brokers.addresses, "stored"))
        confirmed = {number for number, _, _ in sender.confirmed}
        until(lambda: receiver.numbers >= confirmed, "all that was confirmed comes")
        until(lambda: stored.numbers == set(STORED), "all that was stored comes")
        assert reached(brokers.addresses) == [b.address]
    first = next(at for _, by, at in sender.confirmed if by == b.address)
    print(f"ActiveMQ ({how}): confirmed by b {first - ended_at:.1f} s after a's end, ", end="")
    print(f"without a receipt for {sender.longest_gap_s:.1f} s, ", end="")
    print(f"{len(receiver.received) - len(receiver.numbers)} came twice")
    assert not b.said(LOCKED)  # a's broker had ended before b's began
    if how == "stop":
        (ended,), (began,) = a.supervisor.lines("run-ended"), b.supervisor.lines("run-started")
        assert ended["time"] < began["time"]
    assert b.supervisor.stop() == 0
    for node in (a, b):
        node.supervisor.assert_no_fault()


def test_while_a_machine_that_led_stands_still_the_lock_on_the_file_keeps_the_next_broker_away(
    brokers: Brokers,
) -> None:
    """Consul gives the key to b, while a's broker still exists and would go on with its machine."""
    a, b = brokers.a, brokers.b
    brokers.led_by_a()
    sent(a.address, "stored", STORED)
    a.freeze()
    until(lambda: b.said(LOCKED), f"b's broker waits\n{b.supervisor.log_tail()}", STARTED_S)
    assert b.supervisor.lines("role", role="holding") and not b.said("Connector stomp started")
    a.thaw()
    brokers.wait_started(b)
    assert not a.brokers()
    assert reached(brokers.addresses) == [b.address]
    with Receiver(brokers.addresses, "stored") as stored:
        until(lambda: stored.numbers == set(STORED), "all that was stored comes")


def test_a_node_without_the_storage_takes_no_part(brokers: Brokers) -> None:
    """A broker that starts on an empty, unmounted folder would create an empty store."""
    brokers.storage.rename(brokers.storage.with_name("elsewhere"))
    brokers.storage.mkdir(mode=0o777)
    brokers.a.supervisor.start()
    brokers.a.supervisor.wait_line("role", role="ineligible")
    assert not brokers.a.brokers()
    brokers.storage.rmdir()
    brokers.storage.with_name("elsewhere").rename(brokers.storage)
    brokers.wait_started(brokers.a)
