"""The proxy, which must break exactly the exchanges of its rules, between a real client and a real Consul."""

import http.client
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.consul import Agent, Client
from tests.support.patience import PATIENCE_S
from tests.support.proxy import Proxy


@pytest.fixture
def proxy(shared_agent: Agent) -> Iterator[Proxy]:
    with Proxy(shared_agent.host, shared_agent.port) as running:
        yield running


@pytest.fixture
def client(proxy: Proxy) -> Client:
    """Return a client that reaches Consul through the proxy."""
    return Client("127.0.0.1", proxy.port)


def gives_up(client: Client, method: str, path: str, body: bytes | None = None) -> None:
    """Send a request whose client gets no answer and goes away."""
    with pytest.raises(TimeoutError):
        client.call(method, path, body, timeout_s=0.2)


def opened(proxy: Proxy) -> closing[http.client.HTTPConnection]:
    """Return a connection through the proxy, for requests that Client does not send."""
    return closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=PATIENCE_S))


def value(agent: Agent, key: str) -> bytes | None:
    entry = agent.kv_get(key)
    return None if entry is None else bytes(entry["Value"])


def test_the_proxy_without_rules_forwards_and_records_everything(
    proxy: Proxy, client: Client, unique: str
) -> None:
    big = bytes(300_000)
    assert client.kv_put(unique, big)
    entry = client.kv_get(unique)
    assert entry is not None and entry["Value"] == big
    assert [(seen.method, seen.target.split("?")[0]) for seen in proxy.exchanges] == [
        ("PUT", f"/v1/kv/{unique}"),
        ("GET", f"/v1/kv/{unique}"),
    ]
    assert proxy.exchanges[0].body == big
    assert 2.3 * len(big) < proxy.bytes_passed < 2.4 * len(big)  # the answer has it in base64


def test_a_kept_connection_through_the_proxy_carries_many_exchanges(proxy: Proxy, unique: str) -> None:
    with opened(proxy) as connection:
        for number in range(3):
            connection.request("PUT", f"/v1/kv/{unique}", body=str(number))
            assert connection.getresponse().read().strip() == b"true"
        connection.request("GET", f"/v1/kv/{unique}?raw")
        assert connection.getresponse().read() == b"2"


def test_a_held_request_reaches_consul_late_although_its_client_has_gone(
    proxy: Proxy, client: Client, shared_agent: Agent, unique: str
) -> None:
    rule = proxy.hold("request", "PUT", f"/kv/{unique}")
    gives_up(client, "PUT", f"/kv/{unique}", b"late")
    rule.wait_caught()
    assert value(shared_agent, unique) is None
    answer = proxy.hold("answer", "PUT", f"/kv/{unique}")
    rule.release()
    assert value(shared_agent, unique) == b"late"
    answer.wait_caught()


def test_a_held_answer_is_of_a_request_that_consul_has_applied(
    proxy: Proxy, client: Client, shared_agent: Agent, unique: str
) -> None:
    rule = proxy.hold("answer", "PUT", unique)
    gives_up(client, "PUT", f"/kv/{unique}", b"applied")
    rule.wait_caught()
    assert value(shared_agent, unique) == b"applied"
    rule.release()


def test_a_request_is_held_no_longer_than_its_rule_says(proxy: Proxy, client: Client, unique: str) -> None:
    rule = proxy.hold("request", path=unique, for_s=0.1)
    assert client.kv_put(unique, b"slow")
    assert len(rule.caught) == 1


def test_a_rule_catches_only_matching_requests_up_to_its_number(
    proxy: Proxy, client: Client, shared_agent: Agent, unique: str
) -> None:
    session = shared_agent.session_create(TTL="60s")
    lock = {"KV": {"Verb": "lock", "Key": unique, "Session": session, "Value": ""}}
    rule = proxy.reset("request", "PUT", "/txn", b'"lock"', times=1)
    assert client.kv_put(unique, b"untouched")
    assert client.txn([{"KV": {"Verb": "get", "Key": unique}}]).status == 200
    with pytest.raises(ConnectionError):
        client.txn([lock])
    assert client.txn([lock]).status == 200
    assert [exchange.method for exchange in rule.caught] == ["PUT"]


@pytest.mark.parametrize(("stage", "applied"), [("request", None), ("answer", b"value")])
def test_a_reset_comes_before_or_after_consul_has_seen_the_request(
    proxy: Proxy, client: Client, shared_agent: Agent, unique: str, stage: str, applied: bytes | None
) -> None:
    rule = proxy.reset("request" if stage == "request" else "answer", path=unique)
    with pytest.raises(ConnectionError):
        client.kv_put(unique, b"value")
    rule.release()
    assert value(shared_agent, unique) == applied
    assert client.kv_put(unique, b"again")


def test_consul_gets_no_request_that_the_proxy_answers(
    proxy: Proxy, client: Client, shared_agent: Agent, unique: str
) -> None:
    proxy.answer("429 Too Many Requests", "slow down", "PUT", unique, times=1)
    with opened(proxy) as connection:
        connection.request("PUT", f"/v1/kv/{unique}", body="1")
        response = connection.getresponse()
        assert (response.status, response.read()) == (429, b"slow down")
        assert value(shared_agent, unique) is None
        connection.request("PUT", f"/v1/kv/{unique}", body="2")
        assert connection.getresponse().read().strip() == b"true"


def test_silence_holds_a_waiting_query_and_all_goes_on_afterwards(
    proxy: Proxy, client: Client, shared_agent: Agent, unique: str
) -> None:
    shared_agent.kv_put(unique, b"1")
    index = client.kv_wait(unique, 0).index
    passed = proxy.hold("request", path="index=", for_s=0)
    with opened(proxy) as connection:
        connection.request("GET", f"/v1/kv/{unique}?index={index}&wait=10s&raw")
        passed.wait_caught()
        with proxy.silence():
            shared_agent.kv_put(unique, b"2")
            gives_up(client, "GET", f"/kv/{unique}")
            gives_up(client, "PUT", f"/kv/{unique}", b"3")
            assert value(shared_agent, unique) == b"2"
        assert value(shared_agent, unique) == b"3"
        assert connection.getresponse().read() == b"2"


def test_refuse_resets_open_connections_and_accept_uses_the_same_port(
    proxy: Proxy, client: Client, unique: str
) -> None:
    with opened(proxy) as connection:
        connection.request("GET", f"/v1/kv/{unique}?index=1000000&wait=10s")
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            connection.getresponse()
    with pytest.raises(ConnectionRefusedError):
        client.kv_get(unique)
    proxy.accept()
    assert client.kv_get(unique) is None


def test_the_proxy_resets_connections_while_its_agent_is_down(agent: Agent) -> None:
    with Proxy(agent.host, agent.port) as proxy:
        client = Client("127.0.0.1", proxy.port)
        agent.kill()
        with pytest.raises(ConnectionError):
            client.kv_get("key")
        agent.start()
        assert client.kv_get("key") is None


def test_a_chunked_request_through_the_proxy_fails_the_test(shared_agent: Agent, unique: str) -> None:
    with pytest.raises(AssertionError, match="chunked"), Proxy(shared_agent.host, shared_agent.port) as proxy:
        with opened(proxy) as connection, pytest.raises(ConnectionError):
            connection.request("PUT", f"/v1/kv/{unique}", body=iter([b"part"]))
            connection.getresponse()


def test_a_wait_for_a_request_that_does_not_come_ends_in_an_error(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.proxy.PATIENCE_S", 0.1)
    with pytest.raises(TimeoutError):
        proxy.hold("request").wait_caught()
