"""The options of a Messages request, and its media and tool results, as shared values and back."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.cache_marks import CACHE_CONTROL
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    encode,
    is_given,
    members,
    object_of,
    read_or_none,
    set_members,
)
from thoughtline.formats.media import decode_parts, split_result
from thoughtline.formats.option_members import ANY_OBJECT, OptionWriter, Reader, described, effort_named, given, member
from thoughtline.providers import Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
    WEB_SEARCH,
    BuiltInTool,
    CustomTool,
    FunctionTool,
    Media,
    MediaKind,
    Options,
    ReadOptions,
    ResultContent,
    StructuredOutput,
    Thinking,
    Tool,
    ToolChoice,
    WrittenOptions,
    WrittenResult,
)

_PLAIN = (
    member("max_tokens", int),
    member("top_p", float),
    member("top_k", int),
    member("temperature", float),
    member("stop", tuple, "stop_sequences"),
)
_READ = (
    *_PLAIN,
    member("model", str),
    member("is_streaming", bool, "stream"),
    member("service_tier", str),
    member("cache_mark", Raw, CACHE_CONTROL),
)
_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
_CHOICES: dict[str, Literal["auto", "none", "required", "named"]] = {"any": "required", "tool": "named", "none": "none"}
_NOT_AT_THE_TOP = ("oneOf", "allOf", "anyOf", "$schema")
"""Keywords that Anthropic rejects at the top of an input schema ("does not support oneOf, allOf, or anyOf")."""


class _Tool(Struct, gc=False):
    type: str | None = None
    name: str = ""
    description: str | None = None
    input_schema: Raw = NULL
    strict: bool | None = None
    cache_control: Raw = NULL
    defer_loading: bool | None = None


class _Choice(Struct, gc=False):
    type: str = "auto"
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Format(Struct, gc=False):
    type: str = ""
    schema: Raw = NULL


_tool_decoder = msgspec.json.Decoder(_Tool)


def decode_options(body: bytes) -> ReadOptions:
    """The options of a Messages request."""
    reader = Reader(body)
    reader.skip("messages", "system")
    config, thinking = reader.inner("output_config"), reader.inner("thinking")
    choice = reader.take(_Choice, "tool_choice")
    user = reader.inner("metadata").take(str, "user", "user_id")
    tools = tuple(decode_tool(raw, f"/tools/{at}") for at, raw in enumerate(reader.elements("tools")))
    output = config.take(_Format, "output", "format") or reader.take(_Format, "output", "output_format")
    parallel = choice.disable_parallel_tool_use if choice is not None else None
    options = Options(
        **reader.read(_READ),
        wants_usage=True,
        tools=tools,
        tool_choice=_typed_choice(choice) if choice is not None else None,
        parallel_tool_calls=None if parallel is None else not parallel,
        output=StructuredOutput(output.schema, strict=True) if output is not None and is_given(output.schema) else None,
        thinking=_decode_thinking(reader, thinking, config.take(str, "thinking", "effort")),
        user=user,
    )
    return reader.done(options, config, thinking)


def decode_tool(raw: Raw, place: str) -> Tool:
    """One tool: a function, or one that the provider runs."""
    tool = decode(_tool_decoder, raw, place)
    if tool.type in (None, "custom"):
        mark = given(tool.cache_control)
        made = FunctionTool(tool.name, tool.description, given(tool.input_schema), tool.strict, cache_mark=mark)
        return replace(made, is_deferred=True) if tool.defer_loading else made
    return BuiltInTool(WEB_SEARCH if (tool.type or "").startswith("web_search_") else tool.type or "", raw, place)


def _typed_choice(choice: _Choice) -> ToolChoice:
    mode = _CHOICES.get(choice.type, "auto")
    return ToolChoice(mode, choice.name if mode == "named" else None)


def _decode_thinking(reader: Reader, inner: Reader, effort: str | None) -> Thinking:
    inner.skip("type")
    switch = reader.switch("thinking")
    display = inner.take(str, "thinking", "display")
    shown = None if switch in ("unsaid", "off") else display != "omitted"
    return Thinking(switch, effort_named(effort), inner.take(int, "thinking", "budget_tokens"), shown, display)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a Messages request."""
    if options.temperature is not None:
        options = replace(options, temperature=min(options.temperature, 1.0))
    writer = OptionWriter(options)
    writer.put("model", "model", options.model)
    if options.is_streaming:
        writer.put_json("stream", b"true")
    writer.write(_PLAIN)
    tools = [encode_tool(tool) for tool in options.tools if not isinstance(tool, CustomTool)]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    if tools:
        writer.put("tool_choice", "tool_choice", encode_choice(options.tool_choice, options.parallel_tool_calls))
    writer.carry("tool_choice", "parallel_tool_calls")
    if options.output is not None and options.output.schema is not None:
        writer.put("output", "output_config", {"format": {"type": "json_schema", "schema": options.output.schema}})
    writer.put("user", "metadata", {"user_id": options.user} if options.user is not None else None)
    tier = _TIERS.get(options.service_tier or "")
    if tier is not None:
        writer.put("service_tier", "service_tier", tier)
    return writer.done()


def encode_tool(tool: Tool) -> bytes:
    """One tool; of those that the provider runs, only Anthropic's."""
    match tool:
        case FunctionTool():
            return described(tool, ("input_schema", input_schema(tool.parameters)), (CACHE_CONTROL, tool.cache_mark))
        case BuiltInTool(kind="web_search"):
            return b'{"type":"web_search_20250305","name":"web_search"}'
        case _:
            return bytes(tool.raw) if isinstance(tool, BuiltInTool) else b"{}"


def input_schema(parameters: Raw | None) -> bytes:
    """A schema whose top level is a plain object, which Anthropic requires."""
    if parameters is None or bytes(parameters)[:1] != b"{":
        return ANY_OBJECT
    known = members(parameters)
    changes: list[tuple[str, bytes | None]] = [(name, None) for name in _NOT_AT_THE_TOP if name in known]
    if bytes(known.get("type", NULL)) != b'"object"':
        changes.append(("type", b'"object"'))
    return set_members(parameters, changes) if changes else bytes(parameters)


def encode_choice(choice: ToolChoice | None, parallel: bool | None) -> object:
    """`tool_choice`, which also allows or forbids parallel calls."""
    kinds = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
    if choice is None and parallel is not False:
        return None
    mode = choice.mode if choice is not None else "auto"
    tool_choice: dict[str, object] = {"type": kinds[mode]}
    if choice is not None and choice.mode == "named":
        tool_choice["name"] = choice.name
    if parallel is False and mode != "none":
        tool_choice["disable_parallel_tool_use"] = True
    return tool_choice


# --- media and results ------------------------------------------------------------------------------------------------


class _Source(Struct, gc=False):
    type: str = ""
    media_type: str = ""
    data: str | None = None
    url: str | None = None
    file_id: str | None = None


class _Block(Struct, gc=False):
    type: str = ""
    source: _Source | None = None
    title: str | None = None


_block_decoder = msgspec.json.Decoder(_Block)


def decode_media(item: Unknown) -> Media | str | None:
    """The picture or file in a block; a plain-text file as its text; None if it is neither."""
    block = read_or_none(_block_decoder, item.raw) or _Block()
    source = block.source
    if block.type not in ("image", "document") or source is None or source.type == "content":
        return None
    if source.type == "text":
        return source.data
    kind = source.media_type or ("application/pdf" if block.type == "document" and source.data else "")
    which: MediaKind = "image" if block.type == "image" else "document"
    return Media(which, kind, source.url, data=source.data, file_id=source.file_id, name=block.title)


def encode_media(media: Media) -> Unknown | None:
    """A block; None if the format has none of this kind."""
    if media.kind not in ("image", "document"):
        return None
    if media.url is not None:
        source: dict[str, object] = {"type": "url", "url": media.url}
    elif media.data is not None:
        kind = media.media_type or ("image/png" if media.kind == "image" else "application/pdf")
        source = {"type": "base64", "media_type": kind, "data": media.data}
    else:
        return None
    titled = {"title": media.name} if media.kind == "document" and media.name else {}
    return Unknown(media.kind, Raw(encode({"type": media.kind, "source": source} | titled)))


def decode_result(item: ToolResult) -> ResultContent:
    """The content of a `tool_result`: text or blocks, and whether the tool failed."""
    is_error = bool(item.raw) and bytes(members(item.raw).get("is_error", NULL)) == b"true"
    return ResultContent(decode_parts(item.content, decode_media), is_error)


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Text as a string; blocks if there are pictures or files; `is_error` if the tool failed."""
    text, held, rest = split_result(content, encode_media)
    first = [encode({"type": "text", "text": text})] if text else []
    encoded = Raw(array([*first, *held]) if held else encode(text))
    if not content.is_error:
        return WrittenResult(ToolResult(encoded, call_id), rest)
    head = [("type", b'"tool_result"'), ("tool_use_id", encode(call_id or "")), ("content", encoded)]
    return WrittenResult(ToolResult(encoded, call_id, None, Raw(object_of([*head, ("is_error", b"true")]))), rest)
