"""Stores written by an older version are readable, with turns, keys, lessons, sessions and shared settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.old_stores import CONTENTS, ENGINES, SESSION, Json, World, keys, restored, world


@pytest.fixture(params=ENGINES)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Json]]:
    """The address of an old store, restored to its engine, and the requests that filled it."""
    server = "" if request.param == "sqlite" else str(request.getfixturevalue(f"{request.param}_url"))
    with restored(request.param, server, tmp_path) as url:
        yield url, json.loads(CONTENTS.read_text())[request.param]


def test_what_an_older_version_kept_still_holds(old: tuple[str, Json]) -> None:
    """A gateway on the old store does what the older version did."""
    url, contents = old
    listed = {key["name"]: key.get("revoked", False) for key in json.loads(keys(url, "list", "--json"))["keys"]}
    assert listed == {"ada": False, "bob": True}
    with world(url, contents["key"]) as here:
        _check_turns(here, contents)
        _check_keys(here, contents)
        _check_listings(here)


def _check_turns(here: World, contents: Json) -> None:
    """The same bodies are sent: reasoning is restored, and a provider whose refusal was learned need not refuse
    again."""
    for provider, history in contents["histories"].items():
        assert here.ask(provider, history).status_code == 200
        (sent,) = here.upstream.taken()
        assert json.loads(sent.body) == contents["sent"][provider]
        thoughts = [
            one["reasoning_content"] for one in contents["sent"][provider]["messages"] if one["role"] == "assistant"
        ]
        assert thoughts == ["Paris first.", "", "Now I know."]


def _check_keys(here: World, contents: Json) -> None:
    """A valid key is accepted; a revoked one is not, nor is a missing one."""
    history = contents["histories"]["deepseek"]
    assert here.ask("deepseek", history, key=contents["revoked"]).status_code == 401
    assert here.ask("deepseek", history, key="nobody").status_code == 401


def _check_listings(here: World) -> None:
    turns = here.admin("/api/cache/reasoning")["entries"]
    assert {turn["provider"] for turn in turns} == {"deepseek", "glm"}
    assert {turn["session"] for turn in turns} == {SESSION}
    assert [one["id"] for one in here.admin("/api/sessions")["sessions"]] == [SESSION]
    learned = here.admin("/api/contracts")["learned"]
    assert {(one["provider"], one["model"]) for one in learned} == {("glm", "deepseek-v4-pro")}
    shared = here.admin("/api/settings")
    assert shared["continuity"]["enabled"] is True
    assert shared["continuity"]["count"] == 7
    assert shared["tags"]["mode"] == "lift"
