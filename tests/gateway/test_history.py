"""The history: what was served before a restart, at any worker or replica; whose it was; and what is never in it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateway_processes import started
from tests.gateway.gateways import moved
from tests.gateway.managed_gateways import Managed, followed, managed
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings
from thoughtline.stores.history.sqlite_history import SUFFIX

Json = dict[str, Any]
REQUESTS = "/api/requests"
WORDS = "please list the xylophone drawer"
RESULT = "a zeppelin and a quokka"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/turns.db"


@contextlib.contextmanager
def team(store_url: str) -> Iterator[Managed]:
    """A gateway with provider keys of its own, so that people have its client keys."""
    names = ("deepseek", "kimi")
    rows = {name: replace(moved(name, served(name).url), api_keys=("k",)) for name in names}
    settings = Settings(providers={**PROVIDERS, **rows})
    with managed(settings, store_url, takes_keys=True, simulators={}) as gateway:
        yield gateway


def added(gateway: Managed, name: str) -> str:
    secret: str = gateway.admin.post("/api/keys", json={"name": name}).json()["secret"]
    return secret


def test_a_restart_in_the_middle(url: str) -> None:
    """Requests, one explained, figures and the session's name are there after a restart, and go on from there."""
    with managed(store_url=url) as before:
        before.ask("list the files", turns=3, session="task-1")
        rows = before.get(REQUESTS)["requests"]
        view = before.get(f"{REQUESTS}/{rows[0]['id']}")
        series = before.get("/api/series", range="1h")
    with managed(store_url=url) as after:
        assert after.get(REQUESTS)["requests"] == rows
        assert after.get(f"{REQUESTS}/{rows[0]['id'][:9]}") == view
        assert [turn["treatment"] for turn in view["turns"]] == ["restored", "restored"]
        after.ask("and these", session="task-2")
        found = after.get(REQUESTS)["requests"]
        assert [row["session"] for row in found] == ["task-2", *["task-1"] * 3]
        again = after.get("/api/series", range="1h")
        assert (series["total"]["requests"], again["total"]["requests"]) == (3, 4)
        assert (again["total"]["restored"], again["total"]["avoided"]) == (3, 2)
        assert sum(again["requests"]) == 4
        assert again["before"]["requests"] == 0


def test_two_replicas_and_three_people(shared_url: str) -> None:
    """Every replica tells of all of them: pages, figures and names are one."""
    with team(shared_url) as one, team(shared_url) as other:
        keys = {name: added(one, name) for name in ("Ann", "Ben", "Cem")}
        for gateway in (one, other):
            gateway.gateway.refresh()
        for number, (name, key) in enumerate(keys.items()):
            for gateway in (one, other):
                gateway.ask(f"from {name}", key=key, session=f"of-{name}", turns=number + 1)
        for gateway in (one, other):
            gateway.gateway.refresh()
        lists = [gateway.get(REQUESTS, limit=100)["requests"] for gateway in (one, other)]
        assert [row["id"] for row in lists[0]] == [row["id"] for row in lists[1]]
        assert len(lists[0]) == 12
        people = other.get("/api/people")["people"]
        assert [(row["name"], row["figures"]["requests"]) for row in people] == [("Cem", 6), ("Ben", 4), ("Ann", 2)]
        person = one.get("/api/people/Ben")
        assert (person["name"], person["figures"]["restored"], person["turns"]) == ("Ben", 2, 4)
        assert [(share["name"], share["requests"]) for share in person["byModel"]] == [("deepseek-v4-pro", 4)]
        assert [row["caller"] for row in one.get(REQUESTS, caller="ben")["requests"]] == ["Ben"] * 4
        assert len(other.get(REQUESTS, tenant=person["id"], outcome="restored")["requests"]) == 2
        by_caller = other.get("/api/numbers", by="caller")
        assert {row["name"]: row["requests"] for row in by_caller["rows"]} == {"Ann": 2, "Ben": 4, "Cem": 6}
        assert by_caller["total"]["requests"] == 12


def test_a_person_is_deleted(url: str, tmp_path: Path) -> None:
    """Nothing of a person is in any file, page, export or explanation; the others are untouched; what comes is new."""
    with team(url) as gateway:
        ann, ben = added(gateway, "Ann"), added(gateway, "Ben")
        gateway.ask("the secret of ann", key=ann, session="session-of-ann", model="deepseek-v4-flash", turns=3)
        gateway.ask("of ben", key=ben, session="session-of-ben", turns=2)
        gateway.get("/api/series")
        hers = gateway.get(REQUESTS, caller="Ann")["requests"]
        assert len(hers) == 3
        said = gateway.admin.delete("/api/people/Ann").json()
        assert (said["turns"], said["sessions"], said["requests"]) == (3, 1, 3)
        assert "revoke" in said["note"]
        assert gateway.admin.get(f"{REQUESTS}/{hers[0]['id']}").status_code == 404
        assert {row["caller"] for row in gateway.get(REQUESTS)["requests"]} == {"Ben"}
        assert "session-of-ann" not in gateway.admin.get(REQUESTS, params={"format": "csv"}).text
        assert [row["id"] for row in gateway.get("/api/sessions")["sessions"]] == ["session-of-ben"]
        assert gateway.get("/api/numbers")["total"]["requests"] == 2
        for path in tmp_path.iterdir():
            content = path.read_bytes()
            for word in (b"session-of-ann", b"deepseek-v4-flash", *(row["id"].encode() for row in hers)):
                assert word not in content, path
        gateway.ask("hello again", key=ann)
        assert len(gateway.get(REQUESTS, caller="Ann")["requests"]) == 1
    with team(url) as again:
        assert len(again.get(REQUESTS)["requests"]) == 3


def test_another_process_forgets_too(url: str) -> None:
    """What a neighbour has in memory of a person goes within seconds."""
    with team(url) as one, team(url) as other:
        ann = added(one, "Ann")
        other.gateway.refresh()
        other.ask("of ann", key=ann, turns=2)
        one.admin.delete("/api/people/Ann")
        other.gateway.refresh()
        for gateway in (one, other):
            assert gateway.get(REQUESTS)["requests"] == []


def test_no_words_of_anybody_are_kept(url: str, tmp_path: Path) -> None:
    """No word of a user, of a system prompt or of a tool's result is in any file of the store, nor what a provider
    quotes of them when it refuses; what it says about them is."""
    quoting = f"Invalid value: '{RESULT}' at messages[2]. You said: {WORDS} and that is not allowed."
    error = {"error": {"message": quoting, "code": "invalid_value"}}

    async def refuse(got: Got, out: Out) -> None:
        await out.whole(400, json.dumps(error).encode())

    with upstream(refuse) as refusing:
        behind = {"deepseek": served("deepseek").url, "kimi": refusing.url}
        with managed(store_url=url, simulators=behind) as gateway:
            system = {"role": "system", "content": "you are a wombat keeper"}
            history: list[Json] = [system, {"role": "user", "content": WORDS}]
            for _ in range(3):
                message = gateway.send(history, session="s").json()["choices"][0]["message"]
                history += followed({**message, "reasoning_content": None})
                history[-1]["content"] = RESULT
            refused = gateway.send(history, provider="kimi", model="kimi-k2")
            assert (refused.status_code, quoting in refused.text) == (400, True)
            shown = gateway.get(REQUESTS, provider="kimi")["requests"][0]
            assert RESULT in shown["message"]
        found = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        for word in ("xylophone", "zeppelin", "quokka", "wombat"):
            assert word.encode() not in found, word
        with managed(store_url=url, simulators=behind) as later:
            view = later.get(f"{REQUESTS}/{shown['id']}")
            assert view["message"].startswith("Invalid value: '…' at messages[2].")


def test_nothing_can_be_read_without_the_key(url: str, tmp_path: Path) -> None:
    """Where a key is set, what explains a request is encrypted; with it, it is explained after a restart."""
    settings = Settings(store=StoreSettings(encryption_key="A" * 43 + "="))
    with managed(settings, url) as gateway:
        gateway.ask("list the files", turns=2)
        rows = gateway.get(REQUESTS)["requests"]
    assert b"/deepseek/v1/chat/completions" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with managed(settings, url) as gateway:
        assert gateway.get(REQUESTS)["requests"] == rows


def test_filters_of_the_history(url: str) -> None:
    """Negation, beginnings, several of which one fits, ranges, words; each page goes on where the last one ended."""
    with managed(store_url=url) as gateway:
        gateway.ask("a", session="task-1", turns=2)
        gateway.ask("b", session="task-2", provider="kimi", model="kimi-k2-thinking")
        gateway.send([{"role": "user", "content": "c"}], session="other", model="no-such-model")
    with managed(store_url=url) as gateway:

        def count(**query: str) -> int:
            return len(gateway.get(REQUESTS, **query)["requests"])

        assert count() == 4
        assert count(model="deepseek-*") == 2
        assert count(model="!deepseek-*") == 2
        assert count(provider="!kimi", outcome="ok,restored") == 2
        assert count(session="task") == 3
        assert count(session="!task") == 1
        assert count(provider="moonshot") == 1
        assert count(text="TASK-2") == 1
        assert count(text="no-such") == 1
        [refused_row] = gateway.get(REQUESTS, status="4xx")["requests"]
        assert count(text=refused_row["message"][:20].upper()) == 1
        assert count(range="1h") == 4
        assert count(until="2020-01-01T00:00Z", range="1h") == 0
        first = gateway.get(REQUESTS, limit=3)
        assert [len(gateway.get(REQUESTS, cursor=first["cursor"])["requests"]), len(first["requests"])] == [1, 3]
        for wrong, remedy in (
            ({"providr": "x"}, "provider"),
            ({"range": "5x"}, "24h"),
            ({"outcome": "fine"}, "restored"),
        ):
            refused = gateway.admin.get(REQUESTS, params=wrong)
            assert refused.status_code == 400
            assert remedy in refused.json()["error"]["remedy"]


def test_exports(url: str) -> None:
    """Every table as CSV, without formulas; a request as HAR, without headers."""
    with managed(store_url=url) as gateway:
        gateway.ask("a", session="=cmd()", turns=2)
        tables = {}
        for path in (REQUESTS, "/api/numbers", "/api/people", "/api/series"):
            response = gateway.admin.get(path, params={"format": "csv"})
            assert response.headers["content-type"].startswith("text/csv")
            tables[path] = list(csv.DictReader(io.StringIO(response.text)))
        assert [row["session"] for row in tables[REQUESTS]] == ["'=cmd()"] * 2
        assert [row["restored"] for row in tables[REQUESTS]] == ["1", "0"]
        assert (tables["/api/numbers"][0]["name"], tables["/api/numbers"][0]["requests"]) == ("deepseek", "2")
        assert tables["/api/people"][0]["figures.requests"] == "2"
        assert sum(int(row["requests"]) for row in tables["/api/series"]) == 2
        response = gateway.admin.get(f"{REQUESTS}/{tables[REQUESTS][0]['id']}", params={"format": "har"})
        log = response.json()["log"]
        assert [entry["response"]["status"] for entry in log["entries"]] == [200, 200]
        assert log["entries"][0]["request"]["headers"] == []


def written(store_url: str) -> set[str]:
    """The ids in the file of the history."""
    path = store_url.removeprefix("sqlite:///") + SUFFIX
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT id FROM entries")}


def test_a_kill_loses_the_last_moment_at_most(url: str) -> None:
    """After `kill -9` all requests are listed that were written, which each is by itself soon; and no turn is lost."""
    with started(url, {"deepseek": served("deepseek").url}) as process:
        history: list[Json] = [{"role": "user", "content": "go"}]
        ids: list[str] = []

        def ask() -> None:
            body = {"model": "deepseek-v4-pro", "messages": history}
            target = f"{process.url}/deepseek/v1/chat/completions"
            response = httpx.post(target, json=body, headers={"authorization": "Bearer x"})
            ids.append(response.headers["x-thoughtline-request"])
            history.extend(followed({**response.json()["choices"][0]["message"], "reasoning_content": None}))

        for _ in range(10):
            ask()
        while ids[-1] not in written(url):
            pass
        for _ in range(5):
            ask()
        process.kill()
    with managed(store_url=url) as gateway:
        assert set(ids[:10]) <= {row["id"] for row in gateway.get(REQUESTS, limit=200)["requests"]}
        answer = gateway.send(history, key="x").headers["x-thoughtline-replay"]
        assert answer.startswith("restored=15")


def test_a_history_of_no_size_is_none(url: str, tmp_path: Path) -> None:
    """`max_size = 0` keeps it in memory alone."""
    settings = Settings()
    settings = replace(settings, history=replace(settings.history, max_bytes=0))
    with managed(settings, url) as gateway:
        gateway.ask("a")
        assert gateway.get("/api/series")["isKept"] is False
        assert len(gateway.get(REQUESTS)["requests"]) == 1
    with managed(settings, url) as gateway:
        assert gateway.get(REQUESTS)["requests"] == []
    assert not list(tmp_path.glob("*-history"))
