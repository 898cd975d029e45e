"""The endpoint that a URL names."""

import pytest

from supervisor.adapters.transport import Endpoint
from supervisor.core.settings import Tls


@pytest.mark.parametrize(
    ("url", "base_url", "peer"),
    [
        ("http://127.0.0.1:8500", "http://127.0.0.1:8500", "127.0.0.1:8500"),
        ("HTTP://Consul.Example", "http://consul.example:80", "consul.example:80"),
        ("https://consul.example/", "https://consul.example:443", "consul.example:443"),
        ("https://u:p@h.example/t0ken?k=v#f", "https://h.example:443", "h.example:443"),
        ("http://[::1]:8500", "http://[::1]:8500", "[::1]:8500"),
        ("https://bücher.example", "https://xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
        ("unix:///run/consul/http.sock", "http://localhost", "/run/consul/http.sock"),
    ],
)
def test_a_url_names_an_endpoint(url: str, base_url: str, peer: str) -> None:
    endpoint = Endpoint.of(url, Tls())
    assert (endpoint.base_url, endpoint.peer) == (base_url, peer)
    assert "t0ken" not in repr(endpoint) and "u:p" not in repr(endpoint)


@pytest.mark.parametrize(
    "url",
    [
        "", "127.0.0.1:8500", "consul.example", "ftp://s3cret.example", "http://", "http:///s3cret", "http://s3cret:99999",
        "http://s3cret:port", "http://-s3cret", "http://s3 cret", "http://[::1", "http://s3cret\n.example",
        "https://.s3cret", "unix://s3cret", "unix:/s3cret", "http://" + "s3cret." * 60,
    ],
)  # fmt: skip
def test_a_url_without_an_endpoint_is_refused_without_repeating_it(url: str) -> None:
    """The URL may hold a secret, and a name that begins with a dash would be an option of getent."""
    with pytest.raises(ValueError) as caught:
        Endpoint.of(url, Tls())
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)
