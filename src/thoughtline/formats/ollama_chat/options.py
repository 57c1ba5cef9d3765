"""The options of an Ollama request, and its pictures and results, in shared words and back."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, array, decode, encode, is_given, object_of
from thoughtline.formats.option_members import Reader, Writer, media_of, said_of
from thoughtline.formats.thinking import thinking_switch
from thoughtline.providers import Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
    EFFORTS,
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

_PLAIN = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")


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
    """What an Ollama request asks for; it streams unless told not to."""
    reader = Reader(body)
    reader.skip("messages", "prompt", "system", "images")
    inner = reader.inner("options")
    limit = inner.take(int, "max_tokens", "num_predict")
    options = Options(
        model=reader.take(str, "model") or "",
        is_streaming=reader.take(bool, "is_streaming", "stream") is not False,
        wants_usage=True,
        max_tokens=limit if limit is not None and limit > 0 else None,  # -1 is "no limit"
        temperature=inner.take(float, "temperature"),
        top_p=inner.take(float, "top_p"),
        top_k=inner.take(int, "top_k"),
        stop=inner.names("stop"),
        seed=inner.take(int, "seed"),
        frequency_penalty=inner.take(float, "frequency_penalty"),
        presence_penalty=inner.take(float, "presence_penalty"),
        logprobs=reader.take(bool, "logprobs") or None,
        top_logprobs=reader.take(int, "top_logprobs") or None,
        tools=tuple(_decode_tool(raw, f"/tools/{at}") for at, raw in enumerate(reader.elements("tools"))),
        output=_decode_output(reader.raw("output", "format")),
        thinking=_decode_thinking(reader.raw("thinking", "think")),
    )
    return reader.done(options, inner)


def _decode_tool(raw: Raw, place: str) -> Tool:
    tool = decode(_tool_decoder, raw, place)
    if tool.function is None:
        return BuiltInTool(tool.type, raw, place)
    parameters = tool.function.parameters if is_given(tool.function.parameters) else None
    return FunctionTool(tool.function.name, tool.function.description, parameters)


def _decode_output(raw: Raw | None) -> StructuredOutput | None:
    if raw is None:
        return None
    return StructuredOutput(raw) if bytes(raw)[:1] == b"{" else StructuredOutput() if bytes(raw) == b'"json"' else None


def _decode_thinking(raw: Raw | None) -> Thinking:
    if raw is None:
        return Thinking()
    word = decode(_string_decoder, raw, "/think") if bytes(raw)[:1] == b'"' else ""
    effort = next((known for known in EFFORTS if known == word), None)
    return Thinking(thinking_switch(raw), effort, None, True)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of an Ollama request."""
    writer, inner = Writer(options), Writer(options)
    writer.put("model", "model", options.model)
    writer.put_json("stream", b"true" if options.is_streaming else b"false")
    inner.put("max_tokens", "num_predict", options.max_tokens)
    inner.same(*_PLAIN)
    inner.put("stop", "stop", list(options.stop) or None)
    writer.carry("max_tokens", "stop", *_PLAIN)
    if inner.members:
        writer.put_json("options", object_of(inner.members))
    forbids = options.tool_choice is not None and options.tool_choice.mode == "none"
    tools = [_encode_tool(tool) for tool in options.tools if isinstance(tool, FunctionTool) and not forbids]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    if options.tool_choice is not None and not options.tool_choice.is_forced:
        writer.carry("tool_choice")  # the model may call, or it was offered nothing to call
    if options.parallel_tool_calls is True:
        writer.carry("parallel_tool_calls")
    if options.output is not None:
        writer.put("output", "format", options.output.schema if options.output.schema is not None else "json")
    return writer.done()


def _encode_tool(tool: FunctionTool) -> bytes:
    function = object_of(
        [
            ("name", encode(tool.name)),
            ("description", encode(tool.description or "")),
            ("parameters", tool.parameters if tool.parameters is not None else b'{"type":"object","properties":{}}'),
        ]
    )
    return object_of([("type", b'"function"'), ("function", function)])


# --- media and results -----------------------------------------------------------------------------------------------


def decode_media(item: Unknown) -> Media | None:
    """A picture: base64 by itself."""
    if item.kind != "image" or bytes(item.raw)[:1] != b'"':
        return None
    data = msgspec.json.decode(item.raw, type=str)
    return Media("image", _media_type(data), data=data)


def _media_type(data: str) -> str:
    """What the first bytes say, in base64."""
    heads = {"/9j/": "image/jpeg", "iVBORw": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}
    return next((kind for head, kind in heads.items() if data.startswith(head)), "image/png")


def encode_media(media: Media) -> Unknown | None:
    """A picture that came with its bytes; Ollama fetches nothing."""
    if media.kind != "image" or media.data is None:
        return None
    return Unknown("image", Raw(encode(media.data)))


def decode_result(item: ToolResult) -> ResultContent:
    return ResultContent((msgspec.json.decode(item.content, type=str),))


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Text alone."""
    return WrittenResult(ToolResult(Raw(encode(said_of(content))), call_id, name), media_of(content))
