"""The options of a Messages request, and its pictures, files and results, in shared words and back."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_content,
    encode,
    is_given,
    members,
    object_of,
    set_members,
)
from thoughtline.formats.option_members import Reader, Writer, hold_media, text_of
from thoughtline.formats.thinking import thinking_switch
from thoughtline.providers import Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
    EFFORTS,
    WEB_SEARCH,
    BuiltInTool,
    CustomTool,
    FunctionTool,
    Media,
    Options,
    ReadOptions,
    ResultContent,
    ResultPart,
    StructuredOutput,
    Thinking,
    Tool,
    ToolChoice,
    WrittenOptions,
    WrittenResult,
)

_ANY_OBJECT = b'{"type":"object","properties":{}}'
_NOT_AT_THE_TOP = ("oneOf", "allOf", "anyOf", "$schema")
"""Keywords that Anthropic refuses at the top of an input schema ("does not support oneOf, allOf, or anyOf")."""


class _Tool(Struct, gc=False):
    type: str | None = None
    name: str = ""
    description: str | None = None
    input_schema: Raw = NULL
    strict: bool | None = None


class _Choice(Struct, gc=False):
    type: str = "auto"
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class _Format(Struct, gc=False):
    type: str = ""
    schema: Raw = NULL


_tool_decoder = msgspec.json.Decoder(_Tool)


def decode_options(body: bytes) -> ReadOptions:
    """What a Messages request asks for."""
    reader = Reader(body)
    reader.skip("messages", "system", "cache_control")
    config = reader.inner("output_config")
    choice = reader.take(_Choice, "tool_choice")
    parallel = (
        None if choice is None or choice.disable_parallel_tool_use is None else not choice.disable_parallel_tool_use
    )
    user = reader.inner("metadata").take(str, "user", "user_id")
    tools = tuple(decode_tool(raw, f"/tools/{at}") for at, raw in enumerate(reader.elements("tools")))
    output = config.take(_Format, "output", "format") or reader.take(_Format, "output", "output_format")
    options = Options(
        model=reader.take(str, "model") or "",
        is_streaming=bool(reader.take(bool, "is_streaming", "stream")),
        wants_usage=True,
        max_tokens=reader.take(int, "max_tokens"),
        temperature=reader.take(float, "temperature"),
        top_p=reader.take(float, "top_p"),
        top_k=reader.take(int, "top_k"),
        stop=reader.names("stop", "stop_sequences"),
        tools=tools,
        tool_choice=_typed_choice(choice),
        parallel_tool_calls=parallel,
        output=StructuredOutput(output.schema, strict=True) if output is not None and is_given(output.schema) else None,
        thinking=_decode_thinking(reader, config.take(str, "thinking", "effort")),
        service_tier=reader.take(str, "service_tier"),
        user=user,
    )
    return reader.done(options, config)


def decode_tool(raw: Raw, place: str) -> Tool:
    """One tool: a function, or one of the provider's."""
    tool = decode(_tool_decoder, raw, place)
    if tool.type in (None, "custom"):
        parameters = tool.input_schema if is_given(tool.input_schema) else None
        return FunctionTool(tool.name, tool.description, parameters, tool.strict)
    return BuiltInTool(WEB_SEARCH if (tool.type or "").startswith("web_search_") else tool.type or "", raw, place)


def _typed_choice(choice: _Choice | None) -> ToolChoice | None:
    if choice is None:
        return None
    match choice.type:
        case "any":
            return ToolChoice("required")
        case "tool":
            return ToolChoice("named", choice.name)
        case "none":
            return ToolChoice("none")
        case _:
            return ToolChoice("auto")


def _decode_thinking(reader: Reader, told: str | None) -> Thinking:
    inner = reader.inner("thinking")
    raw = reader.raw("thinking")
    switch = thinking_switch(raw) if raw is not None else "unsaid"
    display = inner.take(str, "thinking", "display")
    effort = next((known for known in EFFORTS if known == told), None)
    shown = None if switch in ("unsaid", "off") else display != "omitted"
    return Thinking(switch, effort, inner.take(int, "thinking", "budget_tokens"), shown, display)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a Messages request."""
    writer = Writer(options)
    writer.put("model", "model", options.model)
    if options.is_streaming:
        writer.put_json("stream", b"true")
    writer.same("max_tokens", "top_p", "top_k")
    temperature = options.temperature
    writer.put("temperature", "temperature", temperature if temperature is None else min(temperature, 1.0))
    writer.put("stop", "stop_sequences", list(options.stop) or None)
    tools = [encode_tool(tool) for tool in options.tools if not isinstance(tool, CustomTool)]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    if tools:
        writer.put("tool_choice", "tool_choice", encode_choice(options.tool_choice, options.parallel_tool_calls))
    writer.carry("tool_choice", "parallel_tool_calls")
    if options.output is not None and options.output.schema is not None:
        writer.put("output", "output_config", {"format": {"type": "json_schema", "schema": options.output.schema}})
    writer.put("user", "metadata", {"user_id": options.user} if options.user is not None else None)
    tier = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}.get(
        options.service_tier or ""
    )
    if options.service_tier is None or tier is not None:
        writer.put("service_tier", "service_tier", tier)
    return writer.done()


def encode_tool(tool: Tool) -> bytes:
    """One tool; of the provider's own, those that it has."""
    match tool:
        case FunctionTool():
            return object_of(
                [
                    ("name", encode(tool.name)),
                    ("description", encode(tool.description) if tool.description is not None else None),
                    ("input_schema", input_schema(tool.parameters)),
                ]
            )
        case BuiltInTool(kind="web_search"):
            return b'{"type":"web_search_20250305","name":"web_search"}'
        case _:
            return bytes(tool.raw) if isinstance(tool, BuiltInTool) else b"{}"


def input_schema(parameters: Raw | None) -> bytes:
    """A schema whose top is a plain object, which Anthropic insists on."""
    if parameters is None or bytes(parameters)[:1] != b"{":
        return _ANY_OBJECT
    known = members(parameters)
    changes: list[tuple[str, bytes | None]] = [(name, None) for name in _NOT_AT_THE_TOP if name in known]
    if bytes(known.get("type", NULL)) != b'"object"':
        changes.append(("type", b'"object"'))
    return set_members(parameters, changes) if changes else bytes(parameters)


def encode_choice(choice: ToolChoice | None, parallel: bool | None) -> object:
    """`tool_choice`, which also says whether calls may be parallel."""
    kinds = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
    if choice is None and parallel is not False:
        return None
    mode = choice.mode if choice is not None else "auto"
    told: dict[str, object] = {"type": kinds[mode]}
    if choice is not None and choice.mode == "named":
        told["name"] = choice.name
    if parallel is False and mode != "none":
        told["disable_parallel_tool_use"] = True
    return told


# --- media and results -----------------------------------------------------------------------------------------------


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
    """The picture or file that a block is, a file of plain text as its text; None if it is neither."""
    try:
        block = _block_decoder.decode(item.raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    source = block.source
    if block.type not in ("image", "document") or source is None or source.type == "content":
        return None
    if source.type == "text":
        return source.data
    kind = source.media_type or ("application/pdf" if block.type == "document" and source.data else "")
    which = Media("image" if block.type == "image" else "document")
    return Media(which.kind, kind, source.url, source.data, source.file_id, block.title)


def encode_media(media: Media) -> Unknown | None:
    """A block; None if there is none of this kind."""
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
    """What a `tool_result` holds: text or blocks, and whether the tool failed."""
    is_error = bool(item.raw) and bytes(members(item.raw).get("is_error", NULL)) == b"true"
    content = decode_content(item.content)
    if content is None or isinstance(content, str):
        return ResultContent((content or "",), is_error)
    return ResultContent(tuple(_decode_part(raw) for raw in content), is_error)


def _decode_part(raw: Raw) -> ResultPart:
    text = members(raw).get("text")
    if text is not None and bytes(text)[:1] == b'"':
        return msgspec.json.decode(text, type=str)
    return decode_media(Unknown("", raw)) or bytes(raw).decode()


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Text as a string; blocks where there are pictures or files; `is_error` where the tool failed."""
    said = text_of(content)
    held, rest = hold_media(content, encode_media)
    first = [encode({"type": "text", "text": said})] if said else []
    told = Raw(array([*first, *held]) if held else encode(said))
    if not content.is_error:
        return WrittenResult(ToolResult(told, call_id), rest)
    head = [("type", b'"tool_result"'), ("tool_use_id", encode(call_id or "")), ("content", told)]
    return WrittenResult(ToolResult(told, call_id, None, Raw(object_of([*head, ("is_error", b"true")]))), rest)
