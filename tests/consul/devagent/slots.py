"""Random sequences on a semaphore's prefix, with transactions that the product itself encodes.

Contender keys have plain names (``c1`` of session ``s1``), because ids are random on each side, and then
their order in a list and the shape of Consul's tree would be random as well.
"""

import random

from supervisor.consul import semaphore
from supervisor.consul.command_requests import WriteSlotRecord
from supervisor.core.requests import JoinSemaphore, LeaveSemaphore, Pruned, SlotRecord, TakeSlot
from tests.consul.devagent.sequences import Sequence, Step, quick, timed

FLAGS = semaphore.SEMAPHORE_FLAGS
LIST, LOCK = "/kv/$Kp/?recurse", "/kv/$Kp/.lock"
LIST_READ = Step("GET", f"{LIST}&consistent", name="it")
LOCK_READ = Step("GET", f"{LOCK}?consistent", name="il")
FIRST = (LIST_READ, LOCK_READ)  # later steps name the indexes that these keep


def quick_slots(seed: int) -> Sequence:
    """Return a sequence in which no time need pass."""
    return quick(seed, operations=operations, kind="slots")


def timed_slots(seed: int) -> Sequence:
    """Return a sequence over some seconds, of short sessions and waits."""
    return timed(seed, operations=operations, kind="timed slots")


def operations(source: random.Random, number: int, wait_s: int) -> tuple[Step, ...]:
    """Return a random operation on a semaphore's prefix, or a read and the wait that follows from it."""
    if number < len(FIRST):
        return (FIRST[number],)
    consistent = source.choice(("", "&consistent"))
    if source.random() < 0.2:
        return (LIST_READ, Step("GET", f"{LIST}&index=$it&wait={wait_s}s{consistent}", watch=True))
    who = source.choice("1123")
    if source.random() < 0.3:
        return (LOCK_READ, Step("PUT", "/txn", transaction(source, who, '"#il"')))
    return (_operation(source, who, wait_s),)


def _operation(source: random.Random, who: str, wait_s: int) -> Step:
    index, number = source.choice((("$il", '"#il"'), ("$il", '"#il"'), ("$it", '"#it"'), ("0", "0")))
    contender, session = f"/kv/$Kp/c{who}", f"$s{who}"
    flags = source.choice((FLAGS, FLAGS, 0))
    made = {
        Step("PUT", "/txn", transaction(source, who, number)): 8,
        LIST_READ: 4,
        LOCK_READ: 3,
        Step("GET", f"{contender}?consistent"): 2,
        Step("GET", f"{LIST}&index=$it&wait={wait_s}s&consistent", watch=True): 3,
        Step("GET", f"{LOCK}?index=$il&wait={wait_s}s", watch=True): 1,
        Step("GET", f"{contender}?index=$it&wait={wait_s}s", watch=True): 2,
        Step("PUT", f"{contender}?acquire={session}&flags={flags}"): 2,
        Step("PUT", f"{LOCK}?cas={index}&flags={flags}", source.choice("vw")): 1,
        Step("PUT", LOCK, source.choice("vw")): 1,
        Step("DELETE", f"{LOCK}?cas={index}"): 1,
        Step("DELETE", contender): 1,
        Step("DELETE", LIST): 1,
        Step("PUT", f"/session/destroy/{session}"): 3,
        Step("PUT", f"/session/renew/{session}"): 2,
        Step("PUT", "/session/create", '{"LockDelay":"0s","Behavior":"delete"}', f"s{who}"): 1,
    }
    return source.choices(list(made), list(made.values()))[0]


def transaction(source: random.Random, who: str, index: str) -> str:
    """Return a transaction of the product, with names for the session, its contender key and the index."""
    session = f"$s{who}"
    slot_record = SlotRecord(source.choice((1, 3)), source.choice(((), ("c1",), ("c1", "c2"))))
    where = ("", 0.0, 0.0, "$Kp")  # neither item nor time is part of a request
    made: dict[JoinSemaphore | TakeSlot | LeaveSemaphore | WriteSlotRecord, int] = {
        JoinSemaphore(*where, session, b"v"): 4,
        JoinSemaphore(*where, session, b"v", slot_record): 2,
        TakeSlot(*where, session, slot_record, 1): 4,
        TakeSlot(*where, session, slot_record, 1, (Pruned("c1", None), Pruned("c2", ""))): 1,
        LeaveSemaphore(*where, session): 1,
        LeaveSemaphore(*where, session, slot_record, 1): 2,
        WriteSlotRecord(*where, slot_record, 1): 1,
    }
    action = source.choices(list(made), list(made.values()))[0]
    encoded = (semaphore.step(action).body or b"").decode().replace('"Index":1', f'"Index":{index}')
    return encoded.replace(f"$Kp/{session}", f"$Kp/c{who}")
