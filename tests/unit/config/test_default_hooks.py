"""The hooks of ``defaults``: which item takes them, and where their mistakes are reported."""

from pathlib import Path

import pytest

from supervisor.config import Config
from supervisor.core.settings import Hook, ItemSettings, Webhook
from tests.support.configured import loaded as configured

DEFAULTS = """
defaults:
  on_acquire: [{shell: start}]
  on_lose: [{shell: stop}]
  on_change: [{webhook: "http://h/${X}/$$"}]
  on_lose_failure: [{shell: halt}]
  run: {shell: serve}
  candidate_check: {shell: check}
  fence: {shell: shoot}
"""
ALL = {"on_acquire", "on_lose", "on_change", "on_lose_failure", "run", "candidate_check", "fence"}


def config(tmp_path: Path, text: str) -> Config:
    return configured(tmp_path, text, {"X": "${Y}"})


def item(tmp_path: Path, text: str, defaults: str = DEFAULTS) -> ItemSettings:
    (only,) = config(tmp_path, f"{defaults}elections: {{app: {text}}}\n").items
    return only


def hooks_of(settings: ItemSettings) -> set[str]:
    """Return the names of the hooks that an item has."""
    return {name for name in ALL if getattr(settings, name)}


def names(hooks: tuple[Hook, ...]) -> list[str]:
    return [hook.name for hook in hooks]


@pytest.mark.parametrize(
    ("given", "has"),
    [
        ("{}", ALL),
        ("{on_acquire: []}", ALL - {"on_acquire"}),
        ("{on_lose_failure: []}", ALL - {"on_lose_failure"}),
        ("{on_lose: []}", ALL - {"on_lose", "on_lose_failure"}),
        ("{run: {}}", ALL - {"run"}),
        ("{candidate_check: {}}", ALL - {"candidate_check"}),
        ("{fence: {}}", ALL - {"fence"}),
        ("{contend: false}", {"on_change"}),
        ("{contend: false, on_change: []}", set()),
    ],
)
def test_an_item_takes_the_hooks_that_it_does_not_set(given: str, has: set[str], tmp_path: Path) -> None:
    assert hooks_of(item(tmp_path, given)) == has


def test_own_hooks_replace_those_of_defaults_wholly(tmp_path: Path) -> None:
    own = item(tmp_path, "{on_lose: [{shell: a, name: a}, {shell: b, name: b}], run: {exec: [own]}}")
    assert names(own.on_lose) == ["a", "b"] and names(own.on_acquire) == ["on_acquire[0]"]
    assert own.run is not None and own.run.command.argv == ("own",)


def test_without_such_defaults_an_empty_run_is_none(tmp_path: Path) -> None:
    assert item(tmp_path, "{run: {}, candidate_check: {}}", "") == item(tmp_path, "{}", "")


def test_hooks_of_defaults_have_the_settings_of_all_other_hooks(tmp_path: Path) -> None:
    text = f"{DEFAULTS}  hook: {{timeout: 7s}}\n  lose_hook: {{timeout: 3s}}\n"
    app = item(tmp_path, "{}", text)
    (acquire,), (lose,), (failure,) = app.on_acquire, app.on_lose, app.on_lose_failure
    assert (acquire.timeout_s, lose.timeout_s, failure.timeout_s) == (7.0, 3.0, 3.0)


def test_variables_are_filled_in_once_for_each_item(tmp_path: Path) -> None:
    """With a hook that items share, the second item would fill in the first item's result."""
    loaded = config(tmp_path, f"{DEFAULTS}elections: {{a: {{}}, b: {{}}}}\nsemaphores: {{c: {{limit: 1}}}}\n")
    for each in loaded.items:
        (hook,) = each.on_change
        assert isinstance(hook.call, Webhook) and hook.call.url == "http://h/${Y}/$"
    assert loaded.withheld == {"X"}


def test_on_lose_of_an_item_has_the_on_lose_failure_of_defaults(tmp_path: Path) -> None:
    defaults = "defaults: {on_lose_failure: [{shell: halt}]}\n"
    assert hooks_of(item(tmp_path, "{}", defaults)) == set()
    assert hooks_of(item(tmp_path, "{on_lose: [{shell: stop}]}", defaults)) == {"on_lose", "on_lose_failure"}


def test_a_warning_about_a_hook_of_defaults_is_one_warning_at_its_place(tmp_path: Path) -> None:
    hook = "{webhook: 'https://h/', tls: {verify: false}}"
    text = f"defaults: {{on_change: [{hook}]}}\nelections: {{a: {{}}, b: {{}}, c: {{on_change: [{hook}]}}}}"
    first, second = config(tmp_path, text).warnings
    assert (first.line, first.path) == (1, "defaults.on_change[0].tls.verify")
    assert first.message.endswith("can read all requests (in a and 1 more)")
    assert (second.line, second.path) == (2, "elections.c.on_change[0].tls.verify")
    assert second.message.endswith("can read all requests")
