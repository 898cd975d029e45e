"""``/v1/kv/``: read, list, write, lock, unlock, delete."""

from supervisor.rehearsal.devagent.api.call import ApiRequest, Ask, refuse_large
from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.messages import Answer
from supervisor.rehearsal.devagent.queries import of_key, of_names, of_tree

KEY = "key name"


def get(call: ApiRequest) -> Ask:
    given = call.parameters
    if "keys" in given:
        return call.ask(of_names(call.rest, given.get("separator", "")))
    if "recurse" in given:
        return call.ask(of_tree(call.rest))
    call.need_rest(KEY)
    return call.ask(of_key(call.rest, raw="raw" in given))


def put(call: ApiRequest) -> Answer:
    """Write a key: as it is, by check-and-set, or with its lock."""
    call.need_rest(KEY)
    given, body = call.parameters, call.request.body
    call.refuse_together("cas", "acquire", "release")
    session = given.get("acquire", given.get("release", ""))
    entry = Entry(call.rest, body, call.number("flags"), session, modify_index=call.number("cas"))
    refuse_large(body)
    call.to_server()
    store = call.store
    if "acquire" in given:
        return call.json(store.lock(entry, call.now))
    if "release" in given:
        return call.json(store.unlock(entry, call.now))
    return call.json(store.cas(entry, call.now) if "cas" in given else store.set(entry, call.now))


def delete(call: ApiRequest) -> Answer:
    """Delete a key, by check-and-set if the request says so, or all keys with a prefix."""
    call.refuse_together("recurse", "cas")
    if "recurse" in call.parameters:
        call.to_server()
        return call.json(call.store.delete_tree(call.rest, call.now))
    call.need_rest(KEY)
    expected = call.number("cas")
    call.to_server()
    if "cas" in call.parameters:
        return call.json(call.store.delete_cas(call.rest, expected, call.now))
    return call.json(call.store.delete(call.rest, call.now))
