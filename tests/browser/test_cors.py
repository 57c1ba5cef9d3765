"""A page of another site, in a real browser: it reads what the gateway lets it read."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.gateway.gateways import running
from tests.gateway.sockets import over_http, say_hi
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.settings import ServerSettings, Settings

ASK = """async ([url, key]) => {
    const body = JSON.stringify({model: "deepseek-v4-pro", messages: [{role: "user", content: "hello"}]});
    const headers = {"content-type": "application/json", "authorization": "Bearer " + key};
    try {
        const answer = await fetch(url + "/deepseek/v1/chat/completions", {method: "POST", headers, body});
        const said = (await answer.json()).choices[0].message.content;
        return [answer.status, answer.headers.get("x-thoughtline-replay") !== null, typeof said];
    } catch (problem) {
        return problem.name;
    }
}"""


async def page_of_a_site(got: Got, out: Out) -> None:
    await out.whole(200, b"<!doctype html><title>an application</title>", ("content-type", "text/html"))


def test_a_page_asks_and_reads(browser: Browser) -> None:
    """With a preflight of the browser's own. Its neighbour on another port, which is not listed, gets nothing."""
    with upstream(page_of_a_site) as listed, upstream(page_of_a_site) as other:
        settings = Settings(server=ServerSettings(cors=(listed.url,)))
        with running({"deepseek": served("deepseek").url}, settings) as gateway:
            said = []
            for site in (listed, other):
                page = browser.new_page()
                page.goto(f"{site.url}/")
                said.append(page.evaluate(ASK, [gateway.url, "a-key"]))
                page.close()
    assert said == [[200, True, "string"], "TypeError"]


OPEN = """async ([url, query]) => await new Promise((resolve) => {
    const socket = new WebSocket(url.replace("http", "ws") + "/openai/v1/responses" + query);
    socket.onopen = () => socket.send(JSON.stringify({
        type: "response.create", model: "gpt-5", input: [{role: "user", content: "hello"}],
    }));
    socket.onmessage = (event) => resolve(JSON.parse(event.data).type);
    socket.onclose = (event) => resolve(event.code);
})"""


@pytest.mark.parametrize("has_key", [False, True], ids=["without a key", "with a client key"])
def test_a_page_of_another_local_port_opens_no_websocket(browser: Browser, has_key: bool) -> None:
    """Neither without a key, where the gateway's own would be spent, nor with one. A page of the gateway's may."""
    with (
        upstream(page_of_a_site) as site,
        upstream(say_hi) as up,
        over_http("openai", up.url, api_keys=("sk-provider",)) as gateway,
    ):
        query = ""
        if has_key:
            keys = gateway.state.keys
            assert isinstance(keys, ClientKeys)
            query = f"?key={gateway.wait_for(keys.add('me')).secret}"
        said = []
        for address in (site.url, site.url.replace("127.0.0.1", "localhost"), gateway.url):
            page = browser.new_page()
            page.goto(f"{address}/")
            said.append(page.evaluate(OPEN, [gateway.url, query]))
            page.close()
        refused = [line["detail"] for line in gateway.lines if line.get("event") == "websocket refused"]
    assert said == [1006, 1006, "response.created"]
    assert refused == ["cross_site"] * 2
    assert len(up.got) == 1
