"""The body of a command: the fields of a step-down, and the refusals."""

import json

import pytest

from supervisor.reporting.control.protocol import (
    REST_S,
    InvalidCommand,
    OperatorCommand,
    Verb,
    command_of,
    request_body,
)

PATH = "/v1/step-down/app"


@pytest.mark.parametrize(
    ("body", "rest_s", "to"),
    [
        (b"", REST_S, ""),
        (b'{"for_s": 5}', 5.0, ""),
        (b'{"to": "vm2"}', REST_S, "vm2"),
        (b'{"for_s": 0, "to": "vm2.example.org"}', 0.0, "vm2.example.org"),
        (b'{"to": ""}', REST_S, ""),
        (b'{"a field of a later version": 1}', REST_S, ""),
    ],
)
def test_a_step_down_may_name_a_rest_and_a_node(body: bytes, rest_s: float, to: str) -> None:
    assert command_of(PATH, body) == OperatorCommand(Verb.STEP_DOWN, "app", rest_s=rest_s, to=to)


@pytest.mark.parametrize(
    "to", [None, 1, True, [], {}, "two words", "a\n", "vm\x1b", "v" * 257, "日本"], ids=repr
)
def test_what_is_no_name_of_a_node_is_refused(to: object) -> None:
    for field, path in (("to", PATH), ("machine", "/v1/confirm-off/app")):
        with pytest.raises(InvalidCommand, match=f"{field} must be the name of a node"):
            command_of(path, json.dumps({field: to}).encode())


@pytest.mark.parametrize("for_s", [None, True, "5", -1, 86_401, float("nan")], ids=repr)
def test_what_is_no_rest_is_refused(for_s: object) -> None:
    with pytest.raises(InvalidCommand, match="for_s must be a number from 0 to 86400"):
        command_of(PATH, json.dumps({"for_s": for_s}).encode())


def test_a_body_says_no_more_than_the_command() -> None:
    """A daemon of before knows no ``to``, and needs none where no node is named."""
    assert request_body(OperatorCommand(Verb.PAUSE, "app")) == b""
    assert json.loads(request_body(OperatorCommand(Verb.STEP_DOWN, "app"))) == {"for_s": REST_S}
    confirmed = OperatorCommand(Verb.CONFIRM_OFF, "app", machine="db7")
    assert command_of("/v1/confirm-off/app", request_body(confirmed)) == confirmed
    assert command_of("/v1/drain", b'{"force": 1}') == OperatorCommand(Verb.DRAIN)
    named = OperatorCommand(Verb.STEP_DOWN, "app", to="vm2")
    assert json.loads(request_body(named)) == {"for_s": REST_S, "to": "vm2"}
