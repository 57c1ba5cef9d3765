"""Chat answers for clients that expect `content` to be text, whole and streamed, and what these clients send back."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.clients.upstreams import start
from tests.gateway.gateways import Running, moved, running
from tests.gateway.upstreams import EVENTS, Got, Out, upstream
from thoughtline.gateway.plain_content import PlainContent, is_plain, plain
from thoughtline.settings import Settings

SCRIPT = """Weather?
script:
think: look there
say: Let me see.
call: weather {"city": "Oslo"}
---
think: seen
say: It is cold.
---
think: x
say: Bye."""
TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
PLAIN = Settings(content="plain")


def ask(gateway: Running, history: list[Any], way: str, **headers: str) -> tuple[Any, Any, list[Any]]:
    """The content, thinking and calls of an answer, as an OpenAI client reads them."""
    sdk = openai.OpenAI(base_url=f"{gateway.url}/mistral/v1", api_key="a-key", max_retries=0)
    body: Any = {"model": "magistral-medium-latest", "messages": history, "tools": [TOOL], "extra_headers": headers}
    if way == "whole":
        message = sdk.chat.completions.create(**body).choices[0].message
        return message.content, getattr(message, "reasoning_content", None), message.tool_calls or []
    content, thoughts = "", ""
    calls: list[Any] = []
    for chunk in sdk.chat.completions.create(stream=True, **body):
        for choice in chunk.choices:
            if not isinstance(choice.delta.content or "", str):
                return choice.delta.content, None, []
            content += choice.delta.content or ""
            thoughts += getattr(choice.delta, "reasoning_content", None) or ""
            calls += choice.delta.tool_calls or []
    return content, thoughts, calls


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps reasoning_content", "strips it"])
@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_conversation_with_mistral(way: str, keeps: bool) -> None:
    """Text and thinking arrive as text; Mistral gets both back in its own form, with all thinking restored."""
    simulator = start("mistral")
    with running({"mistral": simulator.url}, PLAIN) as gateway:
        history: list[Any] = [{"role": "user", "content": SCRIPT}]
        content, thoughts, calls = ask(gateway, history, way)
        assert (content, thoughts) == ("Let me see.", "look there")
        call = {"id": calls[0].id, "type": "function", "function": calls[0].function.model_dump()}
        said = {"role": "assistant", "content": content, "tool_calls": [call]}
        history += [said | ({"reasoning_content": thoughts} if keeps else {})]
        history += [{"role": "tool", "tool_call_id": calls[0].id, "content": "-5"}]
        content, thoughts, _ = ask(gateway, history, way)
        assert (content, thoughts) == ("It is cold.", "seen")
        said = {"role": "assistant", "content": content} | ({"reasoning_content": thoughts} if keeps else {})
        content, thoughts, _ = ask(gateway, [*history, said, {"role": "user", "content": "Thanks."}], way)
    assert (content, thoughts) == ("Bye.", "x")
    assert simulator.refusals() == []
    assert simulator.verdicts()[-1] == ["whole", "whole"]


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_which_clients_get_it(way: str) -> None:
    """Only those who ask for it, not by default. The request's header overrides the provider, which overrides the
    global setting."""
    simulator = start("mistral")
    rows = {"mistral": replace(moved("mistral", simulator.url), content="plain")}
    for settings, header, is_text in (
        (Settings(), "", False),
        (Settings(), "plain", True),
        (PLAIN, "native", False),
        (Settings(providers=rows), "", True),
        (replace(PLAIN, providers={"mistral": replace(rows["mistral"], content="native")}), "", False),
    ):
        simulators = {} if settings.providers else {"mistral": simulator.url}
        with running(simulators, settings) as gateway:
            headers = {"x-thoughtline-content": header} if header else {}
            content, _, _ = ask(gateway, [{"role": "user", "content": SCRIPT}], way, **headers)
        assert isinstance(content, str) is is_text


def test_a_client_key_says_it() -> None:
    """For requests with this key, and no others."""
    simulator = start("mistral")
    row = replace(moved("mistral", simulator.url), api_keys=("theirs",))
    with running({}, Settings(providers={"mistral": row}), takes_keys=True) as gateway:
        keys: Any = gateway.state.keys
        for word, is_text in (("plain", True), (None, False)):
            secret, _ = gateway.wait_for(keys.add("ann", content=word))
            body = {"model": "magistral-medium-latest", "messages": [{"role": "user", "content": SCRIPT}]}
            url = f"{gateway.url}/mistral/v1/chat/completions"
            answer = httpx.post(url, json=body, headers={"authorization": f"Bearer {secret}"})
            assert isinstance(answer.json()["choices"][0]["message"]["content"], str) is is_text


def test_every_other_byte_stays() -> None:
    """Spaces, unknown members, comments and escapes stay; an answer without lists is the provider's own."""
    listed = b'{"id": "1",  "choices":[{"index": 0, "delta": {"x": 1.50, "content": [{"type":"thinking","thinking":'
    listed += (
        b'[{"type":"text","text":"a"}]},{"type":"text","text":"b"},{"type":"reference","reference_ids":[1]}]},"y":2}]}'
    )
    stream = b": hello\n\ndata: " + listed + b'\n\ndata:  {"choices": []}\r\n\r\ndata: [DONE]\n\n'
    wanted = (
        b'{"id": "1",  "choices":[{"index": 0, "delta": {"x": 1.50, "content": "b","reasoning_content":"a"},"y":2}]}'
    )

    async def answer(got: Got, out: Out) -> None:
        await out.stream(EVENTS)
        for at in range(0, len(stream), 7):
            await out.chunk(stream[at : at + 7])
        await out.end()

    with upstream(answer) as up, running({"mistral": up.url}, PLAIN) as gateway:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
        got = httpx.post(f"{gateway.url}/mistral/v1/chat/completions", json=body, headers={"accept-encoding": "gzip"})
        assert up.got[0].header("accept-encoding") == "identity"
        assert up.got[0].header("x-thoughtline-content") is None
    assert got.content == stream.replace(listed, wanted)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[DONE]",
        b"{",
        b'{"choices": 1}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": "text"}}]}',
        b'{"choices": [{"delta": {}}], "content": [1]}',
    ],
)
def test_nothing_to_change(payload: bytes) -> None:
    """An answer without a list, or an unreadable one, is unchanged."""
    assert plain(payload) is payload


PARTS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)),
    st.builds(lambda text: {"type": "thinking", "thinking": text}, st.text(max_size=5)),
    st.builds(lambda text: {"type": "thinking", "thinking": [{"type": "text", "text": text}]}, st.text(max_size=5)),
    st.sampled_from([1, None, "x", [], {"type": "text", "text": 1}, {"type": "image_url"}]),
)


@given(st.lists(PARTS, max_size=5), st.integers(1, 40))
def test_any_list(parts: list[Any], size: int) -> None:
    """In a body and in a stream cut anywhere: text in order, thinking in order, neither loses anything."""
    words = "".join(one["text"] for one in parts if isinstance(one, dict) and isinstance(one.get("text"), str))
    thoughts = [one["thinking"] for one in parts if isinstance(one, dict) and "thinking" in one]
    thought = "".join(one if isinstance(one, str) else one[0]["text"] for one in thoughts)
    wanted = {"content": words} | ({"reasoning_content": thought} if thought else {})
    whole = json.dumps({"choices": [{"message": {"content": parts}}]}).encode()
    assert json.loads(plain(whole))["choices"] == [{"message": wanted}]
    event = b"data: " + json.dumps({"choices": [{"delta": {"content": parts}}]}).encode() + b"\n\n"
    stream = PlainContent()
    given = b"".join(stream.feed(event[at : at + size]) for at in range(0, len(event), size)) + stream.finish()
    assert json.loads(given[6:])["choices"] == [{"delta": wanted}]


def test_the_narrowest_word_holds() -> None:
    """An empty header counts as absent."""
    assert is_plain(b" Plain ", "native")
    assert not is_plain(b"whatever", None, "native", "plain")
    assert is_plain(b"", None, None, "plain")
    assert not is_plain(b"")
