"""Webhooks with references to the facts of an event, such as ``${CONSUL_SUPERVISOR_LEADER}``.

A text of a webhook is a template if it contains ``${CONSUL_SUPERVISOR_``. In a template ``$$`` is a dollar,
and ``${CONSUL_SUPERVISOR_LEADER:-nobody}`` is ``nobody`` where that fact is blank. Every other text is sent
as it stands. A fact is escaped for the place in which it stands, and is never expanded again, because any
client of Consul may have written the leader's value.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from supervisor.core.settings import Webhook

PREFIX = "CONSUL_SUPERVISOR_"
FACTS = tuple(
    """
    event kind name key session lock_index fencing_token reason leader previous_leader holders slot
    transition attempt time node note role time_left previous_end previous_target previous_node
    previous_host previous_token fence_method
    """.split()
)
"""The names of all facts. An event has those that its kind of item and its hook have."""

Fact = str | int | float | list[dict[str, Any]] | None

# Of all facts in one text, after their escaping.
URL_CHARS_MAX = 8_192  # the longest request line that common servers accept
HEADER_CHARS_MAX = 8_192  # the longest header that common servers accept
BODY_CHARS_MAX = 1 << 20  # a leader's value has 64 KiB, and escaping may make it six times as long

_MARK = "${" + PREFIX
_REFERENCE = re.compile(r'\$(?:\$|\{CONSUL_SUPERVISOR_([A-Z_]+)(?::-([^${}"\\]*))?\})')
_STRING_OR_REFERENCE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|' + _REFERENCE.pattern, re.DOTALL)
_AUTHORITY = re.compile(r"[^:/?#]*:?(?://[^/?#]*)?")
_DOT_SEGMENT = re.compile(r"/\.\.?(?:/|$)")
_JSON = re.compile(r"application/json|.*\+json")
_FORM, _PLAIN = "application/x-www-form-urlencoded", "text/plain"
_HEADER_SAFE = " /:@"  # no delimiter of a quoted string, a list or a parameter


class Unfit(Exception):
    """A template gives no text that can be sent. The message says why, and shows no part of the text."""

    def __init__(self, key: tuple[str, ...], why: str) -> None:
        super().__init__(why)
        self.key = key  # the webhook's key that has the template, and for a header its name


def is_template(text: str) -> bool:
    """Return whether the text refers to a fact, or has a dollar that would be taken for such a reference."""
    return _MARK in text


def literal(text: str) -> str:
    """Return the part of a template that gives this text."""
    return text.replace("$", "$$")


def settled(template: str) -> str:
    """Return a webhook's text as it is shown: a template unchanged, any other text with $ for each $$."""
    return template if is_template(template) else template.replace("$$", "$")


def lets_event_choose_receiver(url: str) -> bool:
    """Return whether the scheme, the host or the port of a URL is a template."""
    authority = _AUTHORITY.match(url)
    return authority is not None and is_template(authority[0])


def filled(webhook: Webhook, facts: Mapping[str, Fact]) -> Webhook:
    """Return the webhook with the facts of an event. A fact that the event lacks is blank. Raises Unfit."""
    return replace(
        webhook,
        url=_filled_url(webhook.url, facts),
        headers=tuple((name, _filled_header(name, value, facts)) for name, value in webhook.headers),
        body=None if webhook.body is None else _filled_body(webhook.body, webhook.headers, facts),
    )


def is_json(headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether the body that goes with these headers is JSON, as it is without a Content-Type."""
    return _JSON.fullmatch(_media_type(headers)) is not None


def fact_text(fact: Fact) -> str:
    """Return a fact as text: None is blank, and a list is JSON."""
    if fact is None:
        return ""
    return json.dumps(fact, ensure_ascii=False) if isinstance(fact, list) else str(fact)


def _filled_url(url: str, facts: Mapping[str, Fact]) -> str:
    if not is_template(url):
        return url
    text = _TemplateFiller(facts, ("webhook",), URL_CHARS_MAX).fill(url, _percent_encoded)
    if _DOT_SEGMENT.search(text.partition("?")[0]):
        raise Unfit(("webhook",), "a segment of its path would be . or .., which leads to another path")
    return text


def _filled_header(name: str, value: str, facts: Mapping[str, Fact]) -> str:
    filler = _TemplateFiller(facts, ("headers", name), HEADER_CHARS_MAX)
    return filler.fill(value, _header_encoded).strip(" ") if is_template(value) else value


def _filled_body(body: str, headers: Iterable[tuple[str, str]], facts: Mapping[str, Fact]) -> str:
    if not is_template(body):
        return body
    filler = _TemplateFiller(facts, ("body",), BODY_CHARS_MAX)
    if is_json(headers):
        return filler.fill_json(body)
    escape = {_FORM: _percent_encoded, _PLAIN: fact_text}.get(_media_type(headers))
    if escape is None:
        raise Unfit(("body",), f"no escaping is known for its Content-Type, use JSON, {_FORM} or {_PLAIN}")
    return filler.fill(body, escape)


class _TemplateFiller:
    """Puts facts into one text. Raises Unfit as soon as the text would be too long."""

    def __init__(self, facts: Mapping[str, Fact], key: tuple[str, ...], chars_max: int) -> None:
        self._facts = facts
        self._key = key
        self._chars_max = chars_max
        self._chars = 0

    def fill(self, text: str, escape: Callable[[Fact], str]) -> str:
        """Return the text with each fact as ``escape`` returns it."""
        return _REFERENCE.sub(lambda reference: self._value(reference, escape), text)

    def fill_json(self, text: str) -> str:
        """Return JSON with each fact: escaped within a string, and elsewhere as a value of its own type."""
        return _STRING_OR_REFERENCE.sub(self._json, text)

    def _json(self, found: re.Match[str]) -> str:
        if found[0].startswith('"'):
            return self.fill(found[0], _within_json_string)
        return self._value(found, _json_value)

    def _value(self, reference: re.Match[str], escape: Callable[[Fact], str]) -> str:
        name = reference[1]
        if name is None:
            return "$"
        fact = self._facts.get(name.lower())
        value = escape(reference[2] if reference[2] and not fact_text(fact) else fact)
        self._chars += len(value)
        if self._chars > self._chars_max:
            raise Unfit(self._key, f"the facts in it have more than {self._chars_max} characters")
        return value


def _media_type(headers: Iterable[tuple[str, str]]) -> str:
    given = next((value for name, value in headers if name.lower() == "content-type"), "application/json")
    return given.partition(";")[0].strip().lower()


def _percent_encoded(fact: Fact) -> str:
    return quote(fact_text(fact), safe="")


def _header_encoded(fact: Fact) -> str:
    return quote(fact_text(fact), safe=_HEADER_SAFE)


def _json_value(fact: Fact) -> str:
    return json.dumps(fact, ensure_ascii=False)


def _within_json_string(fact: Fact) -> str:
    return _json_value(fact_text(fact))[1:-1]
