"""``/v1/kv/``: read, list, write, lock, unlock, delete."""

from supervisor.rehearsal.devagent.api.call import ApiRequest, Ask, refuse_large
from supervisor.rehearsal.devagent.kv import Entry
from supervisor.rehearsal.devagent.queries import of_key, of_names, of_tree
from supervisor.rehearsal.devagent.txn import write_alone
from supervisor.reporting.http_server import HttpAnswer

KEY = "key name"


def get(call: ApiRequest) -> Ask:
    given = call.parameters
    if "keys" in given:
        return call.ask(lambda store: of_names(store, call.rest, given.get("separator", "")))
    if "recurse" in given:
        return call.ask(lambda store: of_tree(store, call.rest))
    call.need_rest(KEY)
    return call.ask(lambda store: of_key(store, call.rest, raw="raw" in given))


def put(call: ApiRequest) -> HttpAnswer:
    """Write a key: as it is, by check-and-set, or with its lock."""
    call.need_rest(KEY)
    given, body = call.parameters, call.request.body
    call.refuse_together("cas", "acquire", "release")
    session = given.get("acquire", given.get("release", ""))
    entry = Entry(call.rest, body, call.number("flags"), session, modify_index=call.number("cas"))
    refuse_large(body)
    verbs = {"acquire": "lock", "release": "unlock", "cas": "cas"}
    return _written(call, next((verb for name, verb in verbs.items() if name in given), "set"), entry)


def delete(call: ApiRequest) -> HttpAnswer:
    """Delete a key, by check-and-set if the request says so, or all keys with a prefix."""
    call.refuse_together("recurse", "cas")
    if "recurse" in call.parameters:
        return _written(call, "delete-tree", Entry(call.rest))
    call.need_rest(KEY)
    verb = "delete-cas" if "cas" in call.parameters else "delete"
    return _written(call, verb, Entry(call.rest, modify_index=call.number("cas")))


def _written(call: ApiRequest, verb: str, entry: Entry) -> HttpAnswer:
    call.check_datacenter()
    return call.json(write_alone(call.store, (verb, entry), call.now))
