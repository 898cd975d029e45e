"""An ordinary answer is read by one expression, exactly as h11 would read it."""

import h11
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from supervisor.adapters.transport import messages

REQUEST = requests.Request("GET", "http://127.0.0.1:8500/v1/kv/app/leader?consistent").prepare()
ORDINARY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nVary: Accept-Encoding\r\nX-Consul-Index: 17\r\n"
    b"Date: Sun, 22 Nov 2026 20:00:00 GMT\r\nContent-Length: 4\r\n\r\nnull"
)
STATUS_LINES = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 500 \xe9", b"HTTP/1.1 404 ", b"HTTP/1.1 404", b"HTTP/1.0 200 OK"]
    + [b"HTTP/1.1 204 No Content", b"HTTP/1.1 304 Not Modified", b"HTTP/1.1 100 Continue", b"HTTP/1.1 600 So"]
)
FIELDS = st.sampled_from(
    [
        b"A: b",
        b"a:b ",
        b"A:\t",
        b"A:",
        b"A : b",
        b"X: \xe9",
        b"X-\xe9: y",
        b" folded",
        b"X: a\x00",
        b"X: a\x0bb",
    ]
    + [
        b"Content-Length: 4",
        b"Content-Length: 04",
        b"Content-Length: 5",
        b"content-length: 4 ",
        b"X: a\nb: c",
    ]
    + [b"Transfer-Encoding: chunked", b"Connection: close", b"Content-Length: \xb2", b"X: a\rb", b""]
)
BODIES = st.sampled_from([b"null", b"", b"null\n", b"4\r\nnull\r\n0\r\n\r\n", b"null" + ORDINARY])
ANSWERS = st.tuples(STATUS_LINES, st.lists(FIELDS, max_size=4), BODIES).map(
    lambda parts: b"\r\n".join([parts[0], *parts[1], b"", parts[2]])
)


def read_by_h11(received: bytes) -> requests.Response | None:
    """Return the answer if h11 reads a whole one from these bytes, and nothing is left of them."""
    http = messages.reader(REQUEST)
    http.receive_data(received)
    head, body = None, b""
    try:
        while (event := http.next_event()) is not h11.NEED_DATA:
            match event:
                case h11.Response():
                    head = event
                case h11.Data():
                    body += event.data
                case h11.EndOfMessage():
                    assert head is not None
                    answer = messages.decode(REQUEST, head, body)
                    return None if http.trailing_data[0] or http.our_state is not h11.DONE else answer
                case _:
                    pass
    except h11.RemoteProtocolError:
        pass
    return None


def parts(answer: requests.Response) -> tuple[object, ...]:
    return answer.status_code, answer.reason, dict(answer.headers.lower_items()), answer.content


def test_an_answer_of_consul_is_ordinary() -> None:
    answer, by_h11 = messages.ordinary_answer(REQUEST, ORDINARY), read_by_h11(ORDINARY)
    assert answer is not None and by_h11 is not None
    assert parts(answer) == parts(by_h11)
    assert answer.headers["x-consul-index"] == "17"


@pytest.mark.parametrize("cut", range(1, len(ORDINARY)))
def test_no_part_of_an_answer_is_ordinary(cut: int) -> None:
    assert messages.ordinary_answer(REQUEST, ORDINARY[:cut]) is None


@given(ANSWERS)
def test_an_ordinary_answer_is_one_that_h11_reads_alike(received: bytes) -> None:
    answer = messages.ordinary_answer(REQUEST, received)
    if answer is not None:
        by_h11 = read_by_h11(received)
        assert by_h11 is not None and parts(answer) == parts(by_h11)


@given(st.integers(0, len(ORDINARY) - 1), st.binary(max_size=3), st.integers(0, 2))
def test_a_changed_answer_is_not_read_in_another_way(place: int, put: bytes, left_out: int) -> None:
    received = ORDINARY[:place] + put + ORDINARY[place + left_out :]
    answer = messages.ordinary_answer(REQUEST, received)
    if answer is not None:
        by_h11 = read_by_h11(received)
        assert by_h11 is not None and parts(answer) == parts(by_h11)


def test_the_answer_to_head_is_left_to_h11() -> None:
    request = requests.Request("HEAD", str(REQUEST.url)).prepare()
    assert messages.ordinary_answer(request, ORDINARY) is None
