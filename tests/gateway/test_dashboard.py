"""The dashboard's page and files: what is served, to whom, under which policy, and where it does not interfere."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import Managed, managed
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway import dashboard
from thoughtline.settings import Settings

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FILES = files(dashboard)
OURS = sorted(file.name for file in FILES.iterdir() if file.name.endswith((".js", ".css", ".html")))


@pytest.fixture(scope="module")
def gateway() -> Iterator[Managed]:
    with managed() as one:
        yield one


@pytest.mark.parametrize("path", ["/", "/login", *(f"/{view}" for view in sorted(dashboard.VIEWS)), "/sessions/a%2Fb"])
def test_every_view_is_an_address(gateway: Managed, path: str) -> None:
    """A browser gets the page at each, with a policy that allows no external content."""
    response = gateway.anyone.get(path, headers=HTML)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = response.headers["content-security-policy"]
    for words in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"):
        assert words in policy
    assert "unsafe" not in policy


def test_the_page_and_all_it_names_are_there(gateway: Managed) -> None:
    """Including the modules that those import."""
    ahead, seen = re.findall(r'(?:src|href)="(/assets/[^"]+)"', gateway.anyone.get("/").text), set[str]()
    assert ahead
    while ahead:
        path = ahead.pop()
        seen.add(path)
        response = gateway.anyone.get(path)
        assert response.status_code == 200, path
        named = (f"/assets/{name}" for name in re.findall(r'from "\./([\w.]+)"', response.text))
        ahead += [one for one in named if one not in seen]
    assert "/assets/live.js" in seen


@pytest.mark.parametrize(
    "path", ["/assets/lock.json", "/assets/LICENSE-htm", "/assets/__init__.py", "/assets/..%2Fapp.py"]
)
def test_no_other_file_is_served(gateway: Managed, path: str) -> None:
    assert gateway.anyone.get(path).status_code == 404


def test_the_tab_has_a_picture(gateway: Managed) -> None:
    """Also next to API addresses, where no page refers to it; it is not counted as a client's request."""
    response = gateway.anyone.get("/favicon.ico")
    assert (response.status_code, response.headers["content-type"]) == (200, "image/svg+xml")
    assert gateway.gateway.lines == []


def test_a_used_link_leads_people_to_the_login_page(gateway: Managed) -> None:
    """With the same status as for programs, which get JSON."""
    link = gateway.link()
    assert gateway.anyone.get(link, headers=HTML).status_code == 303
    again = gateway.anyone.get(link, headers=HTML)
    assert (again.status_code, again.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert gateway.anyone.get(link).json()["error"]["code"] == "link_used"


def test_what_programs_ask_of_a_default_provider_is_passed_on() -> None:
    """Only browsers get a view if its address could be the provider's."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"from": "upstream"}')

    with upstream(answer) as up:
        settings = replace(Settings(), default_provider="deepseek")
        with managed(settings, simulators={"deepseek": up.url}) as one:
            assert one.anyone.get("/sessions").json() == {"from": "upstream"}
            assert one.anyone.get("/sessions", headers=HTML).text.startswith("<!doctype html>")


def test_a_provider_comes_before_a_view_of_its_name() -> None:
    """A provider called `memory` is still reachable."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b"{}")

    with upstream(answer) as up:
        row = Provider("memory", up.url, ("openai_chat",))
        with managed(replace(Settings(), providers={"memory": row})) as one:
            assert one.anyone.get("/memory/about", headers=HTML).json() == {}


def test_a_view_is_for_known_hosts_alone(gateway: Managed) -> None:
    """Like every other address."""
    assert gateway.anyone.get("/live", headers={**HTML, "host": "evil.example"}).status_code == 421


def test_vendored_files_are_those_of_the_lock() -> None:
    """By their digests, each with its licence; and there are no others."""
    folder = FILES / "vendor"
    lock = json.loads((folder / "lock.json").read_text())
    for one in lock:
        assert hashlib.sha256((folder / one["file"]).read_bytes()).hexdigest() == one["sha256"], one["file"]
        assert all((folder / licence).read_text() for licence in one["licences"])
    named = {one["file"] for one in lock} | {licence for one in lock for licence in one["licences"]}
    assert {file.name for file in folder.iterdir()} == named | {"lock.json"}


@pytest.mark.parametrize("name", OURS)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(name: str) -> None:
    """The policy would block it."""
    text = (FILES / name).read_text()
    assert re.findall(r"\bstyle=|\bon\w+=\"|javascript:|\beval\(|innerHTML|<script>|@import|\burl\(", text) == []
    assert re.findall(r"https?://(?!\S*\\)", text) == []
