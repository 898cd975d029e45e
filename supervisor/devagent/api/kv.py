"""``/v1/kv/``: read, list, write, lock, unlock, delete."""

from supervisor.devagent.api.call import VALUE_BYTES_MAX, Answered, Ask, Call, text, too_large
from supervisor.devagent.kv import Entry
from supervisor.devagent.messages import Answer
from supervisor.devagent.queries import KeyQuery, TreeQuery


def kv(call: Call) -> Answer | Ask:
    """Any method."""
    call.check_options()
    call.refuse_namespace()
    match call.request.method:
        case "GET":
            return _get(call)
        case "PUT":
            return _put(call)
    return _delete(call)


def _get(call: Call) -> Ask:
    key, given = call.rest, call.parameters
    if "keys" in given:
        return call.ask(TreeQuery(key, names=True, separator=given.get("separator", "")))
    if "recurse" in given:
        return call.ask(TreeQuery(key))
    _need_key(call)
    return call.ask(KeyQuery(key, raw="raw" in given))


def _put(call: Call) -> Answer:
    _need_key(call)
    call.refuse_together("cas", "acquire", "release")
    given, body = call.parameters, call.request.body
    flags = call.number("flags") if "flags" in given else 0
    expected = call.number("cas") if "cas" in given else 0
    if len(body) > VALUE_BYTES_MAX:
        return too_large(body, "kv_max_value_size")
    session = given.get("acquire", given.get("release", ""))
    entry = Entry(call.rest, body, flags, session, modify_index=expected)
    call.to_server()
    if "acquire" in given:
        return call.json(call.store.lock(entry, call.now))
    if "release" in given:
        return call.json(call.store.unlock(entry, call.now))
    if "cas" in given:
        return call.json(call.store.cas(entry, call.now))
    return call.json(call.store.set(entry, call.now))


def _delete(call: Call) -> Answer:
    call.refuse_together("recurse", "cas")
    given = call.parameters
    if "recurse" in given:
        call.to_server()
        return call.json(call.store.delete_tree(call.rest, call.now))
    _need_key(call)
    expected = call.number("cas") if "cas" in given else None
    call.to_server()
    if expected is not None:
        return call.json(call.store.delete_cas(call.rest, expected, call.now))
    return call.json(call.store.delete(call.rest, call.now))


def _need_key(call: Call) -> None:
    if not call.rest:
        raise Answered(text(400, "Missing key name"))
