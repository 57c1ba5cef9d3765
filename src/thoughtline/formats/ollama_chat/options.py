"""The options of an Ollama request, and its pictures and tool results, as shared values and back."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.bodies import thinking_switch
from thoughtline.formats.json_text import NULL, array, decode, encode, object_of, read_or_none
from thoughtline.formats.media import failed, no_media, split_result
from thoughtline.formats.option_members import ANY_OBJECT, OptionWriter, Reader, described, effort_named, given, member
from thoughtline.providers import Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
    BuiltInTool,
    FunctionTool,
    Media,
    Options,
    ReadOptions,
    ResultContent,
    StructuredOutput,
    Thinking,
    Tool,
    WrittenOptions,
    WrittenResult,
)

_INSIDE = (
    member("max_tokens", int, "num_predict"),
    member("temperature", float),
    member("top_p", float),
    member("top_k", int),
    member("seed", int),
    member("frequency_penalty", float),
    member("presence_penalty", float),
    member("stop", tuple),
)
_READ = (member("model", str), member("logprobs", bool), member("top_logprobs", int))


class _Function(Struct, gc=False):
    name: str = ""
    description: str | None = None
    parameters: Raw = NULL


class _Tool(Struct, gc=False):
    type: str = ""
    function: _Function | None = None


_tool_decoder = msgspec.json.Decoder(_Tool)
_string_decoder = msgspec.json.Decoder(str)


def decode_options(body: bytes) -> ReadOptions:
    """The options of an Ollama request; it streams by default."""
    reader = Reader(body)
    reader.skip("messages", "prompt", "system", "images")
    inner = reader.inner("options")
    options = Options(
        **reader.read(_READ),
        **inner.read(_INSIDE),
        is_streaming=reader.take(bool, "is_streaming", "stream") is not False,
        wants_usage=True,
        tools=tuple(_decode_tool(raw, f"/tools/{at}") for at, raw in enumerate(reader.elements("tools"))),
        output=_decode_output(reader.raw("output", "format")),
        thinking=_decode_thinking(reader.raw("thinking", "think")),
    )
    if options.max_tokens is not None and options.max_tokens <= 0:  # -1 is "no limit"
        options = replace(options, max_tokens=None)
    return reader.done(options, inner)


def _decode_tool(raw: Raw, place: str) -> Tool:
    tool = decode(_tool_decoder, raw, place)
    if tool.function is None:
        return BuiltInTool(tool.type, raw, place)
    return FunctionTool(tool.function.name, tool.function.description, given(tool.function.parameters))


def _decode_output(raw: Raw | None) -> StructuredOutput | None:
    if raw is None:
        return None
    return StructuredOutput(raw) if bytes(raw)[:1] == b"{" else StructuredOutput() if bytes(raw) == b'"json"' else None


def _decode_thinking(raw: Raw | None) -> Thinking:
    if raw is None:
        return Thinking()
    word = decode(_string_decoder, raw, "/think") if bytes(raw)[:1] == b'"' else ""
    return Thinking(thinking_switch(raw), effort_named(word), None, True)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    writer = OptionWriter(options)
    writer.put("model", "model", options.model)
    writer.put_json("stream", b"true" if options.is_streaming else b"false")
    writer.put_object("options", writer.inner(_INSIDE))
    forbids = options.tool_choice is not None and options.tool_choice.mode == "none"
    tools = [_encode_tool(tool) for tool in options.tools if isinstance(tool, FunctionTool) and not forbids]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    if options.tool_choice is not None and not options.tool_choice.is_forced:
        writer.carry("tool_choice")  # the model may call, or no tools were offered
    if options.parallel_tool_calls is True:
        writer.carry("parallel_tool_calls")
    if options.output is not None:
        writer.put("output", "format", options.output.schema if options.output.schema is not None else "json")
    return writer.done()


def _encode_tool(tool: FunctionTool) -> bytes:
    parameters = tool.parameters if tool.parameters is not None else ANY_OBJECT
    function = described(replace(tool, description=tool.description or ""), ("parameters", parameters))
    return object_of([("type", b'"function"'), ("function", function)])


# --- media and results ------------------------------------------------------------------------------------------------

_text_decoder = msgspec.json.Decoder(str)


def decode_media(item: Unknown) -> Media | None:
    """A picture: only its base64."""
    data = read_or_none(_text_decoder, item.raw) if item.kind == "image" else None
    return Media("image", _media_type(data), data=data) if data is not None else None


def _media_type(data: str) -> str:
    """The media type, from the first bytes in base64."""
    heads = {"/9j/": "image/jpeg", "iVBORw": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}
    return next((kind for head, kind in heads.items() if data.startswith(head)), "image/png")


def encode_media(media: Media) -> Unknown | None:
    """A picture with its bytes; Ollama fetches nothing."""
    if media.kind != "image" or media.data is None:
        return None
    return Unknown("image", Raw(encode(media.data)))


def decode_result(item: ToolResult) -> ResultContent:
    return ResultContent((msgspec.json.decode(item.content, type=str),))


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    text, _, rest = split_result(content, no_media)
    return WrittenResult(ToolResult(Raw(encode(failed(text) if content.is_error else text)), call_id, name), rest)
