"""Facts of an event in a webhook: what the file says, what is sent, and nothing more than one text each."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from supervisor.config import Config, ConfigError
from supervisor.config.cross_checks import GIVEN_BODY_CHARS_MAX
from supervisor.config.formats.templates import (
    BODY_CHARS_MAX,
    FACTS,
    HEADER_CHARS_MAX,
    URL_CHARS_MAX,
    Fact,
    Unfit,
    filled,
)
from supervisor.core.settings import Webhook
from tests.support.configured import loaded as configured

LEADER = "${CONSUL_SUPERVISOR_LEADER}"
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)
TEXT = (("content-type", "Text/Plain; charset=utf-8"),)
HOSTILE = {
    "plain": "node-1",
    "blank": "",
    "quotes": "a\"b'c`d\\",
    "the end of a string": '"}, "evil": {"x": "',
    "lines": "a\r\nX-Evil: 1\r\n\r\nGET /evil HTTP/1.1\n",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\u2028",
    "a reference": "${CONSUL_SUPERVISOR_SESSION} ${SECRET} $$ $",
    "a path": "/../../evil?x=1&y=2#z;a=b",
    "percent": "%2F%00+ %",
    "another host": "@evil.example.net:80//\\",
    "replacement": "caf\ufffd",
    "letters": "é 漢 🙂",
    "long": "x" * 4096,
}


def config(folder: Path, hook: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Config:
    return configured(folder, json.dumps({"elections": {"app": {"on_change": [hook]}}}), environ or {})


def loaded(folder: Path, hook: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Webhook:
    (item,) = config(folder, {"webhook": "http://h/", **hook}, environ).items
    call = item.on_change[0].call
    assert isinstance(call, Webhook)
    return call


@pytest.mark.parametrize(("leader", "sent"), [("", "no/one"), ("n1", "n1"), (None, "no/one")])
def test_a_fact_that_is_blank_can_have_a_text_in_its_place(
    tmp_path: Path, leader: str | None, sent: str
) -> None:
    text = "${CONSUL_SUPERVISOR_LEADER:-no/one}"
    hook = {"webhook": f"http://h/?{text}", "headers": {"X-Leader": text}, "body": {"leader": text}}
    whole = filled(loaded(tmp_path, hook), {"leader": leader})
    assert urlsplit(whole.url).query == sent.replace("/", "%2F")
    assert dict(whole.headers)["X-Leader"] == sent
    assert json.loads(whole.body or "") == {"leader": sent}


# --- escaping ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("leader", HOSTILE.values(), ids=HOSTILE)
def test_a_fact_is_one_segment_and_one_value_of_a_url(leader: str) -> None:
    url = filled(Webhook(f"https://h:1/a/{LEADER}/b?c={LEADER}&d=e"), {"leader": leader[:1000]}).url
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "h:1", "")
    assert [unquote(part) for part in parts.path.split("/")] == ["", "a", leader[:1000], "b"]
    assert parse_qs(parts.query, True) == {"c": [leader[:1000]], "d": ["e"]}
    assert re.fullmatch(r"[\x21-\x7e]+", url)


@pytest.mark.parametrize("leader", HOSTILE.values(), ids=HOSTILE)
def test_a_fact_is_one_text_of_a_json_body(leader: str) -> None:
    body = f'{{"a": "by {LEADER}!", "b": [{LEADER}, "\\"{LEADER}"], "c": "\\\\"}}'
    sent = filled(Webhook("http://h/", body=body), {"leader": leader}).body
    assert sent is not None
    assert json.loads(sent) == {"a": f"by {leader}!", "b": [leader, f'"{leader}'], "c": "\\"}


@pytest.mark.parametrize("leader", HOSTILE.values(), ids=HOSTILE)
def test_a_fact_stays_within_its_part_of_a_header(leader: str) -> None:
    header = ("X-A", f'by="{LEADER}", z')
    ((_, value),) = filled(Webhook("http://h/", headers=(header,)), {"leader": leader}).headers
    assert re.fullmatch(r"[\x20-\x7e]+", value)
    quoted = re.fullmatch(r'by="([^",;\\]*)", z', value)
    assert quoted and unquote(quoted[1]) == leader


@pytest.mark.parametrize("leader", HOSTILE.values(), ids=HOSTILE)
def test_a_fact_is_one_field_of_a_form_and_itself_in_plain_text(leader: str) -> None:
    body = f"a=1&b={LEADER}"
    form = filled(Webhook("http://h/", headers=FORM, body=body), {"leader": leader}).body
    assert form is not None and parse_qs(form, True) == {"a": ["1"], "b": [leader]}
    assert filled(Webhook("http://h/", headers=TEXT, body=body), {"leader": leader}).body == f"a=1&b={leader}"


def test_a_header_has_no_blanks_at_its_ends() -> None:
    ((_, value),) = filled(Webhook("http://h/", headers=(("A", LEADER),)), {"leader": " a b "}).headers
    assert value == "a b"


def test_facts_outside_the_texts_of_a_json_body_keep_their_type() -> None:
    facts: dict[str, Fact] = {
        "attempt": 2,
        "time_left": 1.5,
        "holders": [{"session": "s", "value": 'a"'}],
        "name": "n",
    }
    names = {"a": "ATTEMPT", "b": "TIME_LEFT", "c": "HOLDERS", "d": "NAME", "e": "LEADER"}
    body = ", ".join(f'"{key}": ${{CONSUL_SUPERVISOR_{name}}}' for key, name in names.items())
    sent = filled(Webhook("http://h/", body=f'{{{body}, "f": "${{CONSUL_SUPERVISOR_HOLDERS}}"}}'), facts).body
    assert sent is not None
    got = json.loads(sent)
    assert [got[key] for key in "abcde"] == [2, 1.5, facts["holders"], "n", None]
    assert json.loads(got["f"]) == facts["holders"]


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_that_the_event_lacks_is_blank(fact: str) -> None:
    reference = f"${{CONSUL_SUPERVISOR_{fact.upper()}}}"
    call = Webhook(f"http://h/{reference}", "POST", (("A", reference),), f'"{reference}"')
    assert filled(call, {}) == Webhook("http://h/", "POST", (("A", ""),), '""')


# --- limits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "key", "chars"),
    [
        (Webhook(f"http://h/{LEADER}"), ("webhook",), URL_CHARS_MAX),
        (Webhook("http://h/", headers=(("X-A", LEADER),)), ("headers", "X-A"), HEADER_CHARS_MAX),
        (Webhook("http://h/", body=f'"{LEADER}"'), ("body",), BODY_CHARS_MAX),
    ],
)
def test_facts_that_are_too_long_are_not_sent(call: Webhook, key: tuple[str, ...], chars: int) -> None:
    filled(call, {"leader": "x" * chars})
    with pytest.raises(Unfit, match=rf"the facts in it have more than {chars} characters") as refused:
        filled(call, {"leader": "x" * (chars + 1)})
    assert refused.value.key == key


def test_a_long_value_in_many_places_is_given_up_early() -> None:
    body = '"' + LEADER * 2000 + '"'
    with pytest.raises(Unfit):
        filled(Webhook("http://h/", body=body), {"leader": "\x01" * 65536})


@pytest.mark.parametrize("leader", [".", ".."])
@pytest.mark.parametrize("url", [f"http://h/a/{LEADER}/b", f"http://h/a/{LEADER}", f"http://h/{LEADER}?x"])
def test_a_fact_cannot_lead_to_another_path(url: str, leader: str) -> None:
    with pytest.raises(Unfit, match="another path"):
        filled(Webhook(url), {"leader": leader})


# --- the file ---------------------------------------------------------------------------------------


def test_a_webhook_without_facts_is_sent_as_it_stands() -> None:
    call = Webhook("http://h/$$?a=$", headers=(("A", "$${X}"),), body="$$ ${LEADER}")
    assert filled(call, {}) == call


def test_dollars_of_a_file_and_of_variables_are_dollars_with_facts_and_without(tmp_path: Path) -> None:
    """A variable may hold what looks like a reference, and is not expanded again."""
    variables = {"V": "$v $$v ${CONSUL_SUPERVISOR_NAME} ${V}"}
    wanted = f"$ ${{x}} {variables['V']}"
    for fact, value in (("", ""), ("${CONSUL_SUPERVISOR_KEY}", "k")):
        given = "$$ $${x} ${V}" + fact
        hook = {"headers": {"A": given}, "body": {"a": [given], "$schema": "$$"}}
        call = filled(loaded(tmp_path, hook, variables), {"key": "k", "name": "wrong"})
        assert call.headers == (("A", wanted + value),)
        assert json.loads(call.body or "") == {"a": [wanted + value], "$schema": "$"}
        text = loaded(tmp_path, {"body": given, "headers": dict(TEXT)}, variables)
        assert filled(text, {"key": "k", "name": "wrong"}).body == wanted + value


def test_a_plain_webhook_is_loaded_as_the_text_that_is_sent(tmp_path: Path) -> None:
    call = loaded(tmp_path, {"webhook": "http://h/$$x", "headers": {"A": "$$1"}, "body": "costs $$5"})
    assert call == Webhook("http://h/$x", headers=(("A", "$1"),), body="costs $5")


def test_a_body_that_is_a_mapping_or_list_is_sent_as_json(tmp_path: Path) -> None:
    body = {"a": 1, "b": [True, None, "é", {"c": "${HOSTNAME}"}]}
    sent = loaded(tmp_path, {"body": body}).body
    assert sent is not None and json.loads(sent) == {"a": 1, "b": [True, None, "é", {"c": "node1"}]}
    assert loaded(tmp_path, {"body": []}).body == "[]"
    own = {"Content-Type": "application/vnd.api+json"}
    assert loaded(tmp_path, {"body": {"a": LEADER}, "headers": own}).body == f'{{"a":"{LEADER}"}}'


def test_a_body_that_is_a_list_has_the_limit_of_one_that_is_text(tmp_path: Path) -> None:
    for body in ("x" * GIVEN_BODY_CHARS_MAX, ["x" * (GIVEN_BODY_CHARS_MAX - len('[""]'))]):
        loaded(tmp_path, {"body": body})
    for body in ("x" * (GIVEN_BODY_CHARS_MAX + 1), ["x" * GIVEN_BODY_CHARS_MAX]):
        with pytest.raises(ConfigError, match=rf"body: cannot be .*{GIVEN_BODY_CHARS_MAX}"):
            loaded(tmp_path, {"body": body})


def test_hooks_do_not_inherit_the_variables_of_a_body_that_is_a_mapping(tmp_path: Path) -> None:
    variables = {"KEY": "hunter2", "OTHER": "x", "CONSUL_SUPERVISOR_NAME": "x"}
    body = {"a": [{"b": "${KEY} ${CONSUL_SUPERVISOR_NAME} ${HOSTNAME}"}]}
    assert config(tmp_path, {"webhook": "http://h/", "body": body}, variables).withheld == {"KEY"}
    assert config(tmp_path, {"webhook": "http://h/", "body": "${OTHER}"}, variables).withheld == frozenset()


def test_a_variable_of_the_daemon_is_no_fact(tmp_path: Path) -> None:
    variables = {"CONSUL_SUPERVISOR_LEADER": "wrong"}
    assert filled(loaded(tmp_path, {"body": f'"{LEADER}"'}, variables), {"leader": "n"}).body == '"n"'
