"""How long clients hear nothing from a provider that thinks in the dark: `python -m bench.silence [--seconds 60]`.

A gateway with its usual settings, and a provider of each format that says nothing for so long: once after the head of
its answer, once before it. A client of each other format asks for a stream, and one of Responses also over a WebSocket,
all at once. The table has the longest time
without a byte, in seconds, from the request to the end; in one format the provider's own bytes are all there are.

Exit status 1 if a client of another format waited more than 12 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time

import httpx
import websockets
from msgspec.structs import replace

from tests.gateway.gateways import running
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.formats import FORMATS
from thoughtline.settings import Settings
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.replies import StreamTranslator
from thoughtline.translation.response_context import ResponseContext
from thoughtline.values.turns import FormatName

MAX_SECONDS = 12.0
PROVIDERS_ASKED: dict[FormatName, tuple[str, str]] = {
    "openai_chat": ("deepseek", "deepseek-v4-pro"),
    "openai_responses": ("openai", "gpt-5"),
    "anthropic_messages": ("anthropic", "claude-sonnet-4-5"),
    "gemini_generate": ("gemini", "gemini-3-pro-preview"),
    "ollama_chat": ("ollama", "gpt-oss:20b"),
}
CLIENTS: dict[FormatName, tuple[str, dict[str, object]]] = {
    "openai_chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}]}),
    "openai_responses": ("/v1/responses", {"input": "Hi."}),
    "anthropic_messages": ("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": "Hi."}]}),
    "gemini_generate": (
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
    ),
    "ollama_chat": ("/api/chat", {"messages": [{"role": "user", "content": "Hi."}]}),
}
FRAMES = "openai_responses over a WebSocket"
CHAT_ANSWER = (
    b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Yes."},'
    b'"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


def answer_in(format: FormatName) -> bytes:
    """A short stream in this format."""
    chat, wire = FORMATS["openai_chat"], FORMATS[format]
    if wire is chat:
        return CHAT_ANSWER
    ids = CallIds(rule_of(format, wire.dialect))
    translator = StreamTranslator(ResponseContext("openai_chat", chat.dialect, format, wire.dialect, ids))
    decoder = chat.stream_decoder(chat.dialect)
    chunks = (translator.feed(decoder.feed(CHAT_ANSWER)), translator.end(decoder.finish()))
    return b"".join(chunk.data + chunk.ending for chunk in chunks)


class Dark:
    """A provider of one format that says nothing for a while: after the head of its answer, or before."""

    def __init__(self, format: FormatName, seconds: float, *, is_headless: bool) -> None:
        self._format, self._seconds, self._is_headless = format, seconds, is_headless

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            if self._is_headless:
                await asyncio.sleep(self._seconds)
            kind = FORMATS[self._format].stream_type
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\nconnection: close\r\n\r\n" % kind)
            if not self._is_headless:
                await asyncio.sleep(self._seconds)
            writer.write(answer_in(self._format))
            await writer.drain()
        finally:
            writer.close()


async def longest_silence(http: httpx.AsyncClient, url: str, client: FormatName, provider: FormatName) -> float:
    """What a client of this format hears."""
    name, model = PROVIDERS_ASKED[provider]
    path, body = CLIENTS[client]
    said = body | ({} if client == "gemini_generate" else {"model": model, "stream": True})
    gap, last = 0.0, time.perf_counter()
    headers = {"authorization": "Bearer k"}
    async with http.stream("POST", f"{url}/{name}{path.format(model=model)}", json=said, headers=headers) as got:
        assert got.status_code == 200, await got.aread()
        async for _ in got.aiter_raw():
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
    return max(gap, time.perf_counter() - last)


async def longest_silence_of_frames(url: str, provider: FormatName) -> float:
    """What a client of Responses over a WebSocket hears; a ping is none of it."""
    name, model = PROVIDERS_ASKED[provider]
    address = url.replace("http", "ws", 1) + f"/{name}/v1/responses"
    headers = {"authorization": "Bearer k"}
    async with websockets.connect(address, additional_headers=headers, ping_interval=None, proxy=None) as socket:
        await socket.send(json.dumps({"type": "response.create", "model": model, "input": "Hi."}))
        gap, last, kind = 0.0, time.perf_counter(), ""
        while kind != "response.completed":
            kind = json.loads(await socket.recv())["type"]
            assert kind not in ("error", "response.failed"), kind
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
    return gap


async def measured(seconds: float, *, is_headless: bool) -> dict[tuple[str, FormatName], float]:
    """The longest silence of every pair, all at once."""
    rows: dict[str, Provider] = {}
    servers = []
    for spoken, (name, _) in PROVIDERS_ASKED.items():
        server = await asyncio.start_server(Dark(spoken, seconds, is_headless=is_headless).serve, "127.0.0.1", 0)
        servers.append(server)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        row = replace(PROVIDERS[name], base_url=url, bases={}, paths={}, formats=(spoken,), api_keys=("k",))
        rows[name] = row
    with running({}, Settings(providers=rows)) as gateway:
        pairs = [(client, provider) for client in CLIENTS for provider in PROVIDERS_ASKED]
        async with httpx.AsyncClient(timeout=None) as http:
            asked = [longest_silence(http, gateway.url, *pair) for pair in pairs]
            framed = [longest_silence_of_frames(gateway.url, provider) for provider in PROVIDERS_ASKED]
            gaps = await asyncio.gather(*asked, *framed)
    for server in servers:
        server.close()
    return dict(zip([*pairs, *((FRAMES, provider) for provider in PROVIDERS_ASKED)], gaps, strict=True))


def is_translated(client: str, provider: FormatName) -> bool:
    """Whether the gateway writes what this client reads."""
    return client.partition(" ")[0] != provider


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the provider says nothing")
    options = parser.parse_args()
    longest = 0.0
    for is_headless, title in ((False, "after the head of its answer"), (True, "before the head of its answer")):
        gaps = asyncio.run(measured(options.seconds, is_headless=is_headless))
        print(f"\nSilent for {options.seconds:g} s {title}:\n")
        print("| client | " + " | ".join(f"`{name}`" for name in PROVIDERS_ASKED) + " |")
        print("|---|" + "---|" * len(PROVIDERS_ASKED))
        for client in (*CLIENTS, FRAMES):
            shown = [f"{gaps[client, name]:.1f}" if is_translated(client, name) else "=" for name in PROVIDERS_ASKED]
            print(f"| `{client}` | " + " | ".join(shown) + " |")
        longest = max([longest, *(gap for pair, gap in gaps.items() if is_translated(*pair))])
    print(f"\nThe longest of all: {longest:.1f} s")
    return int(longest > MAX_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
