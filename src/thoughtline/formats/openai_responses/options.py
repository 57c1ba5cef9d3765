"""The options of a Responses request, and its media and tool results, as shared values and back."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.json_text import NULL, array, as_text, decode, elements, encode, read_or_none
from thoughtline.formats.media import (
    data_url,
    decode_parts,
    failed,
    split_data_url,
    split_result,
)
from thoughtline.formats.option_members import (
    OptionWriter,
    Reader,
    described,
    effort_named,
    given,
    member,
    schema_members,
)
from thoughtline.providers import Dialect
from thoughtline.values.items import Text, ToolResult, Unknown
from thoughtline.values.options import (
    WEB_SEARCH,
    BuiltInTool,
    CustomTool,
    FunctionTool,
    Media,
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
    member("max_tokens", int, "max_output_tokens"),
    member("temperature", float),
    member("top_p", float),
    member("metadata", Raw),
    member("user", str),
    member("truncation", str),
)
_TIER = member("service_tier", str)
_KEPT = (member("previous_response_id", str), member("cache_key", str, "prompt_cache_key"))
_READ = (
    *(*_PLAIN, _TIER, *_KEPT),
    member("model", str),
    member("is_streaming", bool, "stream"),
    member("top_logprobs", int),
    member("parallel_tool_calls", bool),
    member("store", bool),
)
_LOGPROBS = "message.output_text.logprobs"
_ASKED_ANYWAY = (_LOGPROBS, "reasoning.encrypted_content")
_TIERS = ("auto", "default", "flex", "scale", "priority")
_SHARED_BUILT_IN = {"web_search": WEB_SEARCH, "web_search_preview": WEB_SEARCH, "web_search_2025_08_26": WEB_SEARCH}


class _Tool(Struct, gc=False):
    type: str = ""
    name: str | None = None
    description: str | None = None
    parameters: Raw = NULL
    strict: bool | None = None
    format: Raw = NULL
    tools: list[Raw] | None = None
    external_web_access: bool | None = None
    execution: str | None = None


class _Format(Struct, gc=False):
    type: str = ""
    name: str | None = None
    description: str | None = None
    schema: Raw = NULL
    strict: bool | None = None


class _Choice(Struct, gc=False):
    type: str = ""
    name: str | None = None
    mode: str = "auto"
    tools: list[_Tool] | None = None


class _Kind(Struct, gc=False):
    type: str = ""


TOOL_SEARCH = "tool_search"
TOOL_ITEMS = ("additional_tools", "tool_search_output")
"""Elements of a conversation that offer more tools."""

_OFFERS_LATER = re.compile(rb'"(?:additional_tools|tool_search_output)"')
_kind_decoder = msgspec.json.Decoder(_Kind)
_tool_decoder = msgspec.json.Decoder(_Tool)
_choice_decoder: msgspec.json.Decoder[str | _Choice] = msgspec.json.Decoder(str | _Choice)


def decode_options(body: bytes) -> ReadOptions:
    """The options of a Responses request."""
    reader = _Reader(body)
    reader.skip("input", "instructions")
    text, reasoning = reader.inner("text"), reader.inner("reasoning")
    tools = decode_tools(reader.elements("tools"), reader.later_tools())
    include = reader.names("include")
    if _LOGPROBS in include:
        reader.places["logprobs"] = reader.places["include"]
    options = Options(
        **reader.read(_READ),
        wants_usage=True,
        logprobs=True if _LOGPROBS in include else None,
        tools=tools,
        tool_choice=_decode_choice(reader.raw("tool_choice")),
        output=_decode_output(text.take(_Format, "output", "format")),
        thinking=_decode_thinking(reader, reasoning),
        verbosity=text.take(str, "verbosity"),
        include=tuple(name for name in include if name not in _ASKED_ANYWAY),
    )
    return reader.done(options, text, reasoning)


class _Reader(Reader):
    """The members of a Responses request; tools may also be in its conversation."""

    def later_tools(self) -> tuple[tuple[str, Raw], ...]:
        """Tools that Codex offers by an item of `input`, or that its own search found; each with its position."""
        raw = self._members.get("input", NULL)
        if bytes(raw)[:1] != b"[" or not _OFFERS_LATER.search(bytes(raw)):
            return ()
        found: list[tuple[str, Raw]] = []
        for at, element in enumerate(elements(raw)):
            if kind_of(element) in TOOL_ITEMS:
                inner = Reader(element, f"/input/{at}").elements("tools")
                found += [(f"/input/{at}/tools/{number}", one) for number, one in enumerate(inner)]
        return tuple(found)


def kind_of(element: Raw) -> str:
    """The `type` of an element of a list."""
    try:
        return _kind_decoder.decode(element).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def decode_tools(raws: tuple[Raw, ...], later: tuple[tuple[str, Raw], ...] = ()) -> tuple[Tool, ...]:
    """All tools offered: a namespace yields the tools in it. Of a tool offered twice the first definition counts."""
    places = [*((f"/tools/{at}", raw) for at, raw in enumerate(raws)), *later]
    found: dict[object, Tool] = {}
    for place, raw in places:
        for tool in decode_tool(raw, place):
            name = (tool.kind, tool.place) if isinstance(tool, BuiltInTool) else (tool.namespace, tool.name)
            found.setdefault(name, tool)
    return tuple(found.values())


def decode_tool(raw: Raw, place: str, namespace: str | None = None) -> list[Tool]:
    """One tool: a function, a free-text tool, one that the provider runs; or several in a namespace."""
    tool = decode(_tool_decoder, raw, place)
    match tool.type:
        case "function":
            return [FunctionTool(tool.name or "", tool.description, given(tool.parameters), tool.strict, namespace)]
        case "custom":
            return [CustomTool(tool.name or "", tool.description, given(tool.format), namespace)]
        case "namespace" if namespace is None:
            inner = [(f"{place}/tools/{at}", one) for at, one in enumerate(tool.tools or ())]
            found = [one for where, raw in inner for one in decode_tool(raw, where, tool.name or "")]
            return _introduced(found, tool.name or "", tool.description)
        case "tool_search" if tool.execution == "client":
            return [FunctionTool(TOOL_SEARCH, tool.description, given(tool.parameters), is_search=True)]
        case kind:
            is_cached = tool.external_web_access is False
            return [BuiltInTool(_SHARED_BUILT_IN.get(kind, kind), raw, place, is_cached)]


def _introduced(tools: list[Tool], namespace: str, description: str | None) -> list[Tool]:
    """The description of a namespace is added to the first of its tools."""
    first = tools[0] if tools else None
    if not description or first is None or isinstance(first, BuiltInTool):
        return tools
    own = f"{first.description}\n\n" if first.description else ""
    return [replace(first, description=f"{own}About {namespace}: {description}"), *tools[1:]]


def _decode_choice(raw: Raw | None) -> ToolChoice | None:
    if raw is None:
        return None
    choice = decode(_choice_decoder, raw, "/tool_choice")
    if isinstance(choice, str):
        return ToolChoice("none" if choice == "none" else "required" if choice == "required" else "auto")
    if choice.type == "allowed_tools":
        names = tuple(tool.name for tool in choice.tools or () if tool.name)
        return ToolChoice("required" if choice.mode == "required" else "auto", None, names)
    return ToolChoice("named", choice.name or _SHARED_BUILT_IN.get(choice.type, choice.type))


def _decode_output(output: _Format | None) -> StructuredOutput | None:
    if output is None or output.type not in ("json_object", "json_schema"):
        return None
    return StructuredOutput(given(output.schema), output.name, output.description, output.strict)


def _decode_thinking(reader: Reader, inner: Reader) -> Thinking:
    inner.skip("enabled")
    inner.skip_default("context", b'"all_turns"', b'"auto"')
    inner.skip_default("mode", b'"standard"')
    switch = reader.switch("reasoning")
    effort = inner.take(str, "thinking", "effort")
    shown = inner.take(str, "thinking", "summary") or inner.take(str, "thinking", "generate_summary")
    budget = inner.take(int, "thinking", "max_tokens")
    return Thinking("unsaid" if effort is None else switch, effort_named(effort), budget, True if shown else None)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a Responses request. The provider stores nothing unless the client asks for it."""
    writer = OptionWriter(options)
    writer.put("model", "model", options.model)
    if options.is_streaming:
        writer.put_json("stream", b"true")
    writer.write(_PLAIN)
    if options.service_tier in _TIERS:
        writer.write((_TIER,))
    writer.write(_KEPT)
    tools = [encode_tool(tool) for tool in options.tools]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    writer.put("tool_choice", "tool_choice", _encode_choice(options.tool_choice) if tools else None)
    writer.put("parallel_tool_calls", "parallel_tool_calls", options.parallel_tool_calls if tools else None)
    _write_text(writer, options)
    writer.put("store", "store", bool(options.store))
    writer.put("include", "include", list(options.include) or None)
    return writer.done()


def _write_text(writer: OptionWriter, options: Options) -> None:
    output = options.output
    text: dict[str, object] = {"verbosity": options.verbosity} if options.verbosity else {}
    if output is not None and output.schema is None:
        text["format"] = {"type": "json_object"}
    elif output is not None:
        text["format"] = {"type": "json_schema"} | schema_members(output) | {"strict": bool(output.strict)}
    writer.put("output", "text", text or None)
    writer.carry("verbosity")


def encode_tool(tool: Tool) -> bytes:
    """One tool. A function is strict here by default."""
    match tool:
        case FunctionTool():
            parameters = tool.parameters if tool.parameters is not None else b'{"type":"object"}'
            return _typed("function", tool, ("parameters", parameters), ("strict", encode(bool(tool.strict))))
        case CustomTool():
            return _typed("custom", tool, ("format", tool.grammar))
        case BuiltInTool():
            return b'{"type":"web_search"}' if tool.kind == WEB_SEARCH else bytes(tool.raw)


def _typed(kind: str, tool: FunctionTool | CustomTool, *rest: tuple[str, bytes | Raw | None]) -> bytes:
    return b'{"type":"%b",%b' % (kind.encode(), described(tool, *rest)[1:])


def _encode_choice(choice: ToolChoice | None) -> object:
    if choice is None:
        return None
    if choice.allowed:
        tools = [{"type": "function", "name": name} for name in choice.allowed]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
    return {"type": "function", "name": choice.name} if choice.mode == "named" else choice.mode


# --- media and results ------------------------------------------------------------------------------------------------


class _Audio(Struct, gc=False):
    data: str = ""
    format: str = ""


class _Part(Struct, gc=False):
    type: str = ""
    text: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    input_audio: _Audio | None = None


_part_decoder = msgspec.json.Decoder(_Part)


def decode_media(item: Unknown) -> Media | None:
    """The picture, sound or file in a part; None if it is none of them."""
    part = read_or_none(_part_decoder, item.raw) or _Part()
    match part.type:
        case "input_image":
            media_type, data = split_data_url(part.image_url or "")
            url = part.image_url if data is None else None
            return Media("image", media_type, url, data, part.file_id, detail=part.detail)
        case "input_file":
            media_type, data = split_data_url(part.file_data or "")
            data = part.file_data if data is None else data
            return Media("document", media_type, part.file_url, data=data, file_id=part.file_id, name=part.filename)
        case "input_audio" if part.input_audio is not None:
            return Media("audio", f"audio/{part.input_audio.format or 'wav'}", data=part.input_audio.data)
        case _:
            return None


def encode_media(media: Media) -> Unknown | None:
    """A part of a Responses message; None if there is none of this kind."""
    match media:
        case Media(kind="image", file_id=None):
            image = {"type": "input_image", "image_url": data_url(media), "detail": media.detail or "auto"}
            return Unknown("input_image", Raw(encode(image)))
        case Media(kind="document", url=str()):
            return Unknown("input_file", Raw(encode({"type": "input_file", "file_url": media.url})))
        case Media(kind="document", data=str()):
            file = {"type": "input_file", "filename": media.name or "file", "file_data": data_url(media)}
            return Unknown("input_file", Raw(encode(file)))
        case _:
            return None


def encode_words(text: str) -> Text:
    """Text of the model, for a request: a simple message, because one with parts must have an id."""
    return Text(text, raw=Raw(encode({"type": "message", "role": "assistant", "content": text})))


def decode_result(item: ToolResult) -> ResultContent:
    """The content of a call's output: text, or parts."""
    if bytes(item.content)[:1] == b"{":
        return ResultContent((as_text(item.content),))
    return ResultContent(decode_parts(item.content, decode_media))


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Text as a string; parts if there are pictures or files."""
    text, held, rest = split_result(content, encode_media)
    text = failed(text) if content.is_error else text
    if not held:
        return WrittenResult(ToolResult(Raw(encode(text)), call_id), rest)
    first = [encode({"type": "input_text", "text": text})] if text else []
    return WrittenResult(ToolResult(Raw(array([*first, *held])), call_id), rest)
