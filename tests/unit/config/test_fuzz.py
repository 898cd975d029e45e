"""Any content of a file gives a Config or a ConfigError within a bounded time."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from supervisor.commands.check.report import as_text
from supervisor.config import Config, ConfigError, load
from tests.support.examples import CONFIGS
from tests.support.patience import PATIENCE_S

COMPLETE = (CONFIGS / "complete.yaml").read_bytes()
PARSED = yaml.safe_load(COMPLETE)
ENVIRON = {"MY_TOKEN": "hunter2", "CONSUL_HTTP_ADDR": "consul:8500"}
VALUES = b", ".join(b"v%d" % number for number in range(2000))
relaxed = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def outcome(folder: Path, content: bytes) -> Config | ConfigError:
    """Return the settings or the error of a file; any other exception fails the test."""
    file = folder / "fuzz.yaml"
    file.write_bytes(content)
    begun_at = time.monotonic()
    try:
        config = load(file, ENVIRON, "node1")
        assert as_text(config)
        return config
    except ConfigError as error:
        assert error.problems
        assert all(problem.message for problem in error.problems)
        return error
    finally:
        assert time.monotonic() - begun_at < PATIENCE_S  # nothing hangs


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        [
            "10s",
            "none",
            "0s",
            "60s",
            "yes",
            "022",
            "${HOSTNAME}",
            "$",
            "${X}",
            "http://h/",
            "/a",
            "a",
            "://",
            "${EACH}",
        ]
    ),
)
names = st.one_of(
    st.text(max_size=10), st.sampled_from(["a", "key", "shell", "<<", "on_lose", "for_each", "${EACH}"])
)
structures = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


@relaxed
@given(content=st.binary(max_size=300))
def test_any_bytes_load_or_are_refused(content: bytes, tmp_path: Path) -> None:
    outcome(tmp_path, content)


@relaxed
@given(text=st.text(alphabet="ab:-{}[],&*!|>'\"%@`#?~ \n\t$<0.", max_size=120))
def test_any_text_of_yamls_own_characters_loads_or_is_refused(text: str, tmp_path: Path) -> None:
    outcome(tmp_path, b"elections:\n  a: " + text.encode())


@relaxed
@given(data=structures)
def test_any_structure_loads_or_is_refused(data: Any, tmp_path: Path) -> None:
    outcome(tmp_path, yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "surrogatepass"))


def paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(inner for key, member in members for inner in paths(member, (*path, key)))]


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = data.copy()
    changed[path[0]] = replaced(data[path[0]], path[1:], value)
    return changed


@pytest.mark.long
@relaxed
@given(path=st.sampled_from(paths(PARSED)), value=structures)
def test_any_value_anywhere_in_the_complete_example_loads_or_is_refused(
    path: tuple[Any, ...], value: Any, tmp_path: Path
) -> None:
    content = yaml.safe_dump(replaced(PARSED, path, value), allow_unicode=True, sort_keys=False)
    outcome(tmp_path, content.encode("utf-8", "surrogatepass"))


@pytest.mark.long
@relaxed
@given(
    at=st.integers(0, len(COMPLETE)),
    length=st.integers(0, 40),
    insert=st.binary(max_size=8) | st.sampled_from([b"\t", b"- "]),
)
def test_any_mutation_of_the_complete_example_loads_or_is_refused(
    at: int, length: int, insert: bytes, tmp_path: Path
) -> None:
    outcome(tmp_path, COMPLETE[:at] + insert + COMPLETE[at + length :])


@pytest.mark.long
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b"{" * 200_000,
        b"? " * 200_000,
        b"- " * 200_000,
        b"a: &a [" + b"x," * 1000 + b"]\n" + b"b: *a\n" * 1000,
        b"? x\n" * 100_000,
        b"elections:\n" + b"".join(b"  a%d: {value: [%s]}\n" % (n, b"022," * 100) for n in range(900)),
        b"elections: {a: {value: '" + b"${HOSTNAME}" * 90_000 + b"'}}",
        b"elections: {a: {on_lose: [" + b"{shell: x, shel: y}," * 10_000 + b"]}}",
        b"elections: {a: {on_lose: [{exec: [" + b"1," * 90_000 + b"]}]}}",
        b"elections: {a: {key: " + b"a/" * 500_000 + b"}}",
        b"elections: {a: {session: {ttl: " + b"1h" * 500_000 + b"}}}",
        b"elections: {'a${EACH}': {for_each: [%s], on_change: [{exec: [%s]}]}}" % (VALUES, b"1," * 45),
        b"elections: {'a${EACH}': {for_each: [%s], value: '%s'}}" % (VALUES, b"${EACH}" * 140_000),
        b"defaults: {on_lose: [%s]}\nelections: {'a${EACH}': {for_each: [%s]}}"
        % (b"{shell: 1}," * 33, VALUES),
        b"'" * 1_000_000,
        b"%" * 1_000_000,
        b"# " * 500_000,
    ],
    ids=lambda content: repr(content[:12]),
)
def test_large_and_hostile_files_are_refused_soon(content: bytes, tmp_path: Path) -> None:
    assert isinstance(outcome(tmp_path, content), ConfigError)
