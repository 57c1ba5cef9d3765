"""Local servers: the chat template decides which reasoning the model sees, by its own switches.

Rows after llama.cpp's `models/templates` (2026-08-22) and the vendors' files. llama.cpp shows its template (`/props`)
and renders it without an answer (`/apply-template`); vLLM counts (`/tokenize`); Ollama shows a model's capabilities
(`/api/show`). A template error is a 500.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.reading import Json, JsonObject, as_object, objects, string, text_of
from thoughtline_sim.refusals import server_error
from thoughtline_sim.values import HttpRequest, Rejection

Scope = Literal["all", "since user", "calls since user", "since answer", "open calls"]
_PRESERVES = {"preserve_thinking": True, "clear_thinking": False, "truncate_history_thinking": False}
_PRESERVES |= {"drop_thinking": False}
"""All that llama.cpp's `preserve_reasoning` sets."""


class Template(NamedTuple):
    """A row: its models, the reasoning it reads, and the switch that makes it read all."""

    pattern: str
    scope: Scope = "since user"
    switch: str = ""
    keeps_at: bool = True
    """The value of the switch with which all turns are read."""
    keeps_unasked: bool = False
    efforts: tuple[str, ...] = ()
    effort_error: str = ""
    can_be_off: bool = True


_QWEN_EFFORT = "Unexpected reasoning effort {0}. Supported types are xhigh (default), medium, and low."
_PRESERVE = "preserve_thinking"
TEMPLATES: tuple[Template, ...] = (
    Template(
        r"qwen-?3\.8-2\.4t",
        switch=_PRESERVE,
        keeps_unasked=True,
        efforts=("low", "medium", "xhigh"),
        effort_error=_QWEN_EFFORT,
        can_be_off=False,
    ),
    Template(
        r"qwen-?3\.8",
        switch=_PRESERVE,
        keeps_unasked=True,
        efforts=("low", "medium", "xhigh"),
        effort_error=_QWEN_EFFORT,
    ),
    Template(r"qwen-?3\.[67]", switch=_PRESERVE),
    Template(r"glm-(4\.7|5)", switch="clear_thinking", keeps_at=False),
    Template(r"nemotron", switch="truncate_history_thinking", keeps_at=False),
    Template(r"deepseek-v4", switch="drop_thinking", keeps_at=False),
    Template(r"gemma-?4", "calls since user"),
    Template(r"kimi-k2", "since answer"),
    Template(r"kimi-k3|minimax-m3|seed-oss", "all"),
    Template(
        r"hy3",
        switch="preserved_thinking",
        efforts=("no_think", "low", "high"),
        effort_error="reasoning_effort error : {0}, should be no_think/low/high",
    ),
    Template(r"gpt-oss", "open calls"),
    Template(""),
)
"""The last one is that of Qwen3, GLM-4.6, MiniMax M2 and StepFun 3.5."""
LOADED = ("qwen3.8", "qwen3.7", "qwen3", "glm-4.7", "nemotron-3", "deepseek-v4", "gemma-4", "kimi-k3", "hy3", "gpt-oss")
"""The models that llama.cpp can have loaded: its profiles."""


def template_of(name: str) -> Template:
    return next(row for row in TEMPLATES if re.search(row.pattern, name.lower()))


def _kwargs(body: JsonObject, *, is_llama: bool) -> JsonObject:
    given = as_object(body.get("chat_template_kwargs"))
    if is_llama and given.get("preserve_reasoning") is True:
        return {**_PRESERVES, "preserved_thinking": True, **given}
    return given


def _reasoning(message: JsonObject) -> str:
    return string(message.get("reasoning_content")) or string(message.get("reasoning"))


def unread_turns(row: Template, body: JsonObject, *, is_llama: bool) -> Iterator[int]:
    """The indices of messages whose reasoning the template leaves out."""
    messages = objects(body.get("messages"))
    given = _kwargs(body, is_llama=is_llama).get(row.switch)
    keeps = given is row.keeps_at if isinstance(given, bool) else row.keeps_unasked
    has_calls = body.get("tools") or any(message.get("tool_calls") for message in messages)
    keeps = row.scope == "all" or (bool(row.switch) and keeps) or (row.switch == "drop_thinking" and bool(has_calls))
    roles = [string(message.get("role")) for message in messages]
    finals = [at for at, role in enumerate(roles) if role == "assistant" and not messages[at].get("tool_calls")]
    last_user = max((at for at, role in enumerate(roles) if role == "user"), default=-1)
    last_final = max(finals, default=-1)
    for at, message in enumerate(messages):
        calls = bool(message.get("tool_calls"))
        is_read = {
            "all": True,
            "since user": at > last_user,
            "calls since user": at > last_user and calls,
            "since answer": at > last_final,
            "open calls": at > last_final and calls,
        }[row.scope]
        if _reasoning(message) and not (keeps or is_read):
            yield at


def raises(row: Template, body: JsonObject) -> Iterator[str]:
    """Errors that a template raises."""
    kwargs = as_object(body.get("chat_template_kwargs"))
    effort = kwargs.get("reasoning_effort") or body.get("reasoning_effort")
    if row.efforts and effort is not None and effort not in row.efforts:
        yield row.effort_error.format(effort)
    if not row.can_be_off and kwargs.get("enable_thinking") is False:
        yield "Disabling thinking is not supported."
    for message in objects(body.get("messages")) if row.scope == "open calls" else ():
        if message.get("tool_calls") and text_of(message.get("content")) and _reasoning(message):
            yield (
                "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis "
                "message in one or the other, but not both."
            )


def rendered(row: Template, body: JsonObject, *, is_llama: bool) -> str:
    """The prompt as the template renders it."""
    unread = set(unread_turns(row, body, is_llama=is_llama))
    turns = []
    for at, message in enumerate(objects(body.get("messages"))):
        thought = _reasoning(message) if at not in unread else ""
        shown = f"<think>\n{thought}\n</think>\n\n" if thought else ""
        calls = [f"<tool_call>\n{msgspec.json.encode(call).decode()}\n</tool_call>" for call in _calls(message)]
        text = shown + text_of(message.get("content")) + "".join(calls)
        turns.append(f"<|im_start|>{string(message.get('role'))}\n{text}<|im_end|>\n")
    return "".join(turns) + "<|im_start|>assistant\n"


def _calls(message: JsonObject) -> list[Json]:
    return [as_object(call.get("function")) for call in objects(message.get("tool_calls"))]


def source_of(row: Template) -> str:
    """The template as a server shows it: a loop over messages, and the condition under which it renders reasoning."""
    read = {
        "all": "true",
        "since user": "loop.index0 > ns.last_query_index",
        "calls since user": "loop.index0 > ns.last_query_index and message.tool_calls",
        "since answer": "loop.index0 > ns.last_non_tool_call_assistant_msg",
        "open calls": "message.tool_calls and not future_final_message.found",
    }[row.scope]
    if row.switch:
        wanted = "true" if row.keeps_at else "false"
        unset = f"{row.switch} is undefined or " if row.keeps_unasked else f"{row.switch} is defined and "
        read = f"({unset}{row.switch} is {wanted}) or {read}"
    field = "thinking" if row.scope == "open calls" else "reasoning_content"
    return (
        "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
        f"{{%- if message.{field} is string and ({read}) %}}"
        f"{{{{- '<think>\\n' + message.{field} + '\\n</think>\\n\\n' }}}}{{%- endif %}}"
        "{{- message.content + '<|im_end|>\\n' }}{%- endfor %}"
    )


# the servers


def _rule(row_of: Callable[[SimExchange], Template], *, is_llama: bool) -> Rule:
    def rule(exchange: SimExchange) -> Iterator[Rejection]:
        row = row_of(exchange)
        for sentence in raises(row, exchange.body):
            yield server_error(sentence, is_llama=is_llama)
        for at in unread_turns(row, exchange.body, is_llama=is_llama):
            exchange.unread[f"messages[{at}]"] = _reasoning(objects(exchange.body.get("messages"))[at])

    return rule


llama_renders = _rule(lambda exchange: template_of(exchange.profile), is_llama=True)
"""llama.cpp has one model loaded, whatever name a request has."""
vllm_renders = _rule(lambda exchange: template_of(exchange.model), is_llama=False)


def _body(request: HttpRequest) -> JsonObject:
    try:
        return as_object(msgspec.json.decode(request.body or b"{}"))
    except msgspec.DecodeError:
        return {}


def llama_props(request: HttpRequest, profile: str) -> JsonObject:
    row = template_of(profile)
    caps = {
        "supports_tools": True,
        "supports_preserve_reasoning": row.scope == "all" or bool(row.switch),
        "supports_reasoning_effort": bool(row.efforts),
    }
    return {
        "default_generation_settings": {"n_ctx": 32768},
        "total_slots": 1,
        "model_alias": profile,
        "chat_template": source_of(row),
        "chat_template_caps": caps,
        "build_info": "b0-simulated",
    }


def llama_apply_template(request: HttpRequest, profile: str) -> JsonObject | Rejection:
    row, body = template_of(profile), _body(request)
    found = next(raises(row, body), None)
    if found is not None:
        return server_error(found, is_llama=True)
    return {"prompt": rendered(row, body, is_llama=True)}


def vllm_tokenize(request: HttpRequest, profile: str) -> JsonObject | Rejection:
    body = _body(request)
    row = template_of(string(body.get("model")))
    found = next(raises(row, body), None)
    if found is not None:
        return server_error(found, is_llama=False)
    prompt = string(body.get("prompt")) or rendered(row, body, is_llama=False)
    count = -(-len(prompt) // 4)
    return {"count": count, "max_model_len": 32768, "tokens": list(range(count))}


def ollama_show(can_think: Callable[[str], bool]) -> Callable[[HttpRequest, str], JsonObject]:
    """Ollama's description of a model. It has Go templates, which read the thinking of the turns since the last user
    message.
    """

    def show(request: HttpRequest, profile: str) -> JsonObject:
        name = string(_body(request).get("model") or _body(request).get("name"))
        thinks = can_think(name)
        think = "{{ if and .Thinking (gt $i $.LastUserIdx) }}<think>{{ .Thinking }}</think>{{ end }}" if thinks else ""
        return {
            "template": "{{- range $i, $_ := .Messages }}" + think + "{{ .Content }}{{ end }}",
            "details": {"format": "gguf", "family": name.partition(":")[0]},
            "model_info": {},
            "capabilities": ["completion", "tools", *(["thinking"] if thinks else [])],
        }

    return show
