"""Codex and its tools at providers other than OpenAI: over real sockets, against the strict simulators."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import moved_in, running
from tests.gateway.test_translation import GatewayLane, lane
from tests.sim.served_simulators import NOW, listening
from tests.translation.lanes import MORE_UPSTREAMS, UPSTREAMS, Upstream
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.formats import FORMATS
from thoughtline.gateway.renaming import RenamedCalls
from thoughtline.settings import Settings, TranslationSettings
from thoughtline.translation.tools import ClientTool, ToolNames
from thoughtline.values.events import ItemDone
from thoughtline_sim.app import simulator_app

Json = dict[str, Any]

FUNCTION = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+“one”\n*** End Patch"
TOOLS: list[Json] = [
    {"type": "function", "name": "exec_command", "description": "Runs it.", "strict": False, "parameters": FUNCTION},
    {"type": "web_search", "external_web_access": False},
    {
        "type": "namespace",
        "name": "multi_agent_v1",
        "description": "Agents that work for you.",
        "tools": [
            {"type": "function", "name": "spawn_agent", "description": "A new one.", "parameters": FUNCTION},
            {"type": "function", "name": "wait_agent", "description": "Waits.", "parameters": FUNCTION},
        ],
    },
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Edits files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch hunk+ end_patch"},
    },
]
SCRIPT = f"""Go.
script:
think: another agent can do that
call: multi_agent_v1__spawn_agent {{"message": "hello"}}
---
think: now the file
call: apply_patch {json.dumps({"input": PATCH})}
---
think: done
say: It is done."""

NOT_OPENAI = [
    upstream for upstream in (*UPSTREAMS, *MORE_UPSTREAMS) if upstream.provider not in ("openai", "azure", "copilot")
]


class Codex:
    """What Codex sends and keeps: every item of an answer, unchanged."""

    def __init__(self, one: GatewayLane) -> None:
        self._lane = one
        self.input: list[Json] = [{"type": "message", "role": "user", "content": SCRIPT}]

    def ask(self, is_streaming: bool, **more: Any) -> list[Json]:
        known: Json = {"model": "some/model", "instructions": "You are Codex.", "input": self.input, "tools": TOOLS}
        known |= {"tool_choice": "auto", "parallel_tool_calls": False, "store": False, "stream": is_streaming}
        body = known | {"reasoning": {"effort": "medium"}, "include": ["reasoning.encrypted_content"]} | more
        answer = self._lane.exchange(json.dumps(body).encode(), is_streaming)
        assert answer.status == 200, answer.body
        items = list(items_of(answer.body)) if is_streaming else json.loads(answer.body)["output"]
        self.input += items
        return [item for item in items if item["type"] != "reasoning" and not is_blank(item)]


def is_blank(item: Json) -> bool:
    """MiniMax writes a blank line between its thinking and a call."""
    return item["type"] == "message" and not item["content"][0]["text"].strip()


def items_of(stream: bytes) -> Iterator[Json]:
    """The items as Codex reads them: from `response.output_item.done` alone; earlier events agree with them."""
    grown: dict[int, str] = {}
    for line in stream.decode().splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
        kind = event.get("type", "")
        if kind.endswith(("arguments.delta", "input.delta")):
            grown[event["output_index"]] = grown.get(event["output_index"], "") + event["delta"]
        elif kind == "response.output_item.done":
            item = event["item"]
            if item["type"].endswith("_call"):
                assert grown[event["output_index"]] == item.get("arguments", item.get("input"))
            yield item


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", NOT_OPENAI, ids=lambda upstream: upstream.id)
def test_codex_works_with_its_own_tools(upstream: Upstream, is_streaming: bool) -> None:
    """Its default tools cause no 400 anywhere; a call of a tool in a namespace and a free-text call arrive as Codex
    expects them, and go back as the provider was offered them."""
    with lane(upstream, "openai_responses") as one:
        codex = Codex(one)
        (call,) = codex.ask(is_streaming)
        assert (call["type"], call["namespace"], call["name"]) == ("function_call", "multi_agent_v1", "spawn_agent")
        assert json.loads(call["arguments"]) == {"message": "hello"}
        codex.input.append({"type": "function_call_output", "call_id": call["call_id"], "output": "agent-1"})
        (patch,) = codex.ask(is_streaming)
        assert (patch["type"], patch["name"], patch["input"]) == ("custom_tool_call", "apply_patch", PATCH)
        codex.input.append({"type": "custom_tool_call_output", "call_id": patch["call_id"], "output": "ok"})
        (words,) = codex.ask(is_streaming)
        assert words["content"][0]["text"].strip() == "It is done."
        assert set(one.verdicts) <= {"whole", "none"}


@pytest.mark.parametrize(
    "upstream",
    [one for one in NOT_OPENAI if one.format in ("openai_responses", "openai_chat")][:3],
    ids=lambda up: up.id,
)
def test_what_earlier_tools_did_is_no_reason_to_refuse(upstream: Upstream) -> None:
    """A history with searches, shells and namespaces, from a conversation that began at OpenAI."""
    with lane(upstream, "openai_responses") as one:
        codex = Codex(one)
        codex.input[1:1] = [
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            {"type": "local_shell_call", "call_id": "call_s", "status": "completed", "action": {"type": "exec"}},
            {"type": "local_shell_call_output", "call_id": "call_s", "output": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found."}]},
            {"type": "message", "role": "user", "content": "go on"},
        ]
        codex.input[0], codex.input[-1] = codex.input[-1], codex.input[0]
        codex.ask(False, tool_choice={"type": "web_search"})


def _moved(upstream: Upstream, settings: Settings) -> tuple[Settings, Any]:
    simulator = simulator_app(upstream.simulator, upstream.profile, seed=7, now=lambda: NOW)
    row = moved_in(upstream.provider, listening(simulator), upstream.format)
    return replace(settings, providers={**PROVIDERS, upstream.provider: row}), simulator


DEEPSEEK_CHAT = UPSTREAMS[0]
DEEPSEEK = next(one for one in MORE_UPSTREAMS if one.id.startswith("openai_responses-deepseek"))


@pytest.mark.parametrize("upstream", [DEEPSEEK_CHAT, DEEPSEEK], ids=lambda upstream: upstream.id)
def test_a_setting_refuses_what_would_be_left_out(upstream: Upstream) -> None:
    """400 in the client's envelope, with the position of the tool; nothing is sent."""
    settings, simulator = _moved(upstream, Settings(translation=TranslationSettings("refuse")))
    with running({}, settings) as gateway:
        body = {"model": upstream.model, "input": "hi", "tools": TOOLS}
        url = f"{gateway.url}/deepseek/v1/responses"
        answer = httpx.post(url, json=body, headers={"authorization": "Bearer a-key"})
        assert answer.status_code == 400
        assert "/tools/1" in answer.json()["error"]["message"]
        assert not simulator.simulation.log
        kept = [tool for tool in TOOLS if tool["type"] != "web_search"]
        answer = httpx.post(url, json=body | {"tools": kept}, headers={"authorization": "Bearer a-key"})
        assert answer.status_code == 200


def test_a_setting_passes_on_what_the_server_may_have_after_all() -> None:
    """In the client's own format the bytes stay the client's."""
    settings, _ = _moved(DEEPSEEK, Settings(translation=TranslationSettings("pass_on")))
    with running({}, settings) as gateway:
        body = {"model": DEEPSEEK.model, "input": "hi", "tools": TOOLS}
        url = f"{gateway.url}/deepseek/v1/responses"
        answer = httpx.post(url, json=body, headers={"authorization": "Bearer a-key"})
        assert answer.status_code == 400
        assert "unknown variant 'web_search'" in answer.json()["error"]["message"]


def test_what_is_left_out_is_found() -> None:
    """One finding in the header and in the log, at the position of the tool."""
    settings, _ = _moved(DEEPSEEK, Settings())
    with running({}, settings) as gateway:
        body = {"model": DEEPSEEK.model, "input": "hi", "tools": TOOLS}
        url = f"{gateway.url}/deepseek/v1/responses"
        answer = httpx.post(url, json=body, headers={"authorization": "Bearer a-key"})
        assert answer.headers["x-thoughtline-findings"] == "untranslatable=1"
        assert gateway.lines[-1]["findings"] == [["untranslatable", "/tools/1"]]


NAMES = ToolNames({}, {"n__f": ClientTool("f", "n"), "patch": ClientTool("patch", None, True)})


def test_only_what_names_a_call_is_changed() -> None:
    """Every other byte of a stream is passed on unchanged, cut anywhere."""
    stream = (
        b'event: response.created\ndata: {"type": "response.created",  "response": {"id": "r"}}\n\n'
        b': function_call\n\ndata: {"type": "response.output_item.done", "output_index": 0, "item": '
        b'{"type": "function_call",  "id": "fc_1", "call_id": "c", "name": "other", "arguments": "{}"}}\n\n'
    )
    for cut in range(1, len(stream), 7):
        names = RenamedCalls(NAMES)
        assert names.feed(stream[:cut]) + names.feed(stream[cut:]) + names.finish() == stream


def test_a_stream_is_renamed_wherever_it_is_cut() -> None:
    """The events of a renamed call, and the whole response at the end, agree."""
    item = '{"type":"function_call","id":"fc_1","call_id":"c","name":"patch","arguments":%s}'
    events = [
        ("response.output_item.added", '"output_index":0,"item":' + item % '""'),
        ("response.function_call_arguments.delta", '"output_index":0,"item_id":"fc_1","delta":"{\\"input\\":"'),
        ("response.function_call_arguments.delta", '"output_index":0,"item_id":"fc_1","delta":"\\"x\\"}"'),
        (
            "response.function_call_arguments.done",
            '"output_index":0,"item_id":"fc_1","arguments":"{\\"input\\":\\"x\\"}"',
        ),
        ("response.output_item.done", '"output_index":0,"item":' + item % '"{\\"input\\":\\"x\\"}"'),
        ("response.completed", '"response":{"id":"r","output":[%s]}' % (item % '"{\\"input\\":\\"x\\"}"')),
    ]
    stream = "".join(
        f'event: {name}\ndata: {{"type":"{name}","sequence_number":{at},{rest}}}\n\n'
        for at, (name, rest) in enumerate(events)
    ).encode()
    told = set()
    for cut in range(1, len(stream), 11):
        names = RenamedCalls(NAMES)
        told.add(names.feed(stream[:cut]) + names.feed(stream[cut:]) + names.finish())
    (out,) = told
    decoder = FORMATS["openai_responses"].stream_decoder(FORMATS["openai_responses"].dialect)
    done = [event.item for event in (*decoder.feed(out), *decoder.finish()) if isinstance(event, ItemDone)]
    # Each is a call; mypy knows items only.
    assert [(call.name, call.arguments, call.is_custom) for call in done] == [("patch", "x", True)]  # type: ignore[union-attr]
    kinds = [line.removeprefix("event: ") for line in out.decode().splitlines() if line.startswith("event: ")]
    said = [json.loads(line[6:]) for line in out.decode().splitlines() if line.startswith("data: ")]
    assert [one["type"] for one in said] == kinds
    assert kinds[1:3] == ["response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"]
    assert [one["sequence_number"] for one in said] == [0, 2, 3, 4, 5]
    assert said[-1]["response"]["output"][0]["input"] == "x"
