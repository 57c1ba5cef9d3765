"""A page of another site, in a real browser: it reads what the gateway lets it read."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.gateway.gateways import running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
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
