"""The options of a request to Command Code, and its media and tool results, as shared values and back."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.command_code_generate.parts import Output, output_decoder
from thoughtline.formats.json_text import NULL, array, as_text, decode, encode, object_of, read_or_none
from thoughtline.formats.media import data_url, decode_parts, media_at, no_media, split_result
from thoughtline.formats.option_members import ANY_OBJECT, OptionWriter, Reader, described, effort_named, given, member
from thoughtline.providers import Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
    FunctionTool,
    JsonPart,
    Media,
    Options,
    ReadOptions,
    ResultContent,
    Thinking,
    ToolChoice,
    WrittenOptions,
    WrittenResult,
)

MAX_TOKENS = 200_000
""""Too big: expected number to be <=200000 at params.max_tokens" (OmniRoute's `executors/commandCode.ts`, 2026-11)."""

_PLAIN = (
    member("max_tokens", int),
    member("temperature", float),
    member("top_p", float),
    member("top_k", int),
    member("stop", tuple),
    member("seed", int),
    member("frequency_penalty", float),
    member("presence_penalty", float),
)
_READ = (*_PLAIN, member("model", str))
_CHOICES: dict[str, Literal["auto", "none", "required", "named"]] = {"any": "required", "tool": "named", "none": "none"}
_WRITTEN_CHOICES = {"auto": "auto", "required": "any", "named": "tool"}


class _Tool(Struct, gc=False):
    name: str = ""
    description: str | None = None
    input_schema: Raw = NULL


class _Choice(Struct, gc=False):
    type: str = "auto"
    name: str | None = None


_tool_decoder = msgspec.json.Decoder(_Tool)


def decode_options(body: bytes) -> ReadOptions:
    """The options of the request in the envelope."""
    reader = Reader(body)
    reader.skip("messages", "system")
    choice = reader.take(_Choice, "tool_choice")
    effort = reader.take(str, "thinking", "reasoning_effort")
    options = Options(
        **reader.read(_READ),
        is_streaming=reader.take(bool, "is_streaming", "stream") is not False,
        wants_usage=True,
        tools=tuple(_decode_tool(raw, f"/tools/{at}") for at, raw in enumerate(reader.elements("tools"))),
        tool_choice=_typed_choice(choice) if choice is not None else None,
        thinking=Thinking("on" if effort else "unsaid", effort_named(effort), None, True if effort else None),
    )
    return reader.done(options)


def _decode_tool(raw: Raw, place: str) -> FunctionTool:
    tool = decode(_tool_decoder, raw, place)
    return FunctionTool(tool.name, tool.description, given(tool.input_schema))


def _typed_choice(choice: _Choice) -> ToolChoice:
    mode = _CHOICES.get(choice.type, "auto")
    return ToolChoice(mode, choice.name if mode == "named" else None)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a request; it always streams. If the model may call nothing, no tools are offered."""
    if options.max_tokens is not None:
        options = replace(options, max_tokens=min(options.max_tokens, MAX_TOKENS))
    writer = OptionWriter(options)
    writer.put("model", "model", options.model)
    writer.put_json("stream", b"true")
    writer.write(_PLAIN)
    choice = options.tool_choice
    forbids = choice is not None and choice.mode == "none"
    tools = [_encode_tool(tool) for tool in options.tools if isinstance(tool, FunctionTool) and not forbids]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    if tools and choice is not None:
        named = {"name": choice.name} if choice.mode == "named" else {}
        writer.put("tool_choice", "tool_choice", {"type": _WRITTEN_CHOICES[choice.mode]} | named)
    writer.carry("tool_choice")
    if options.parallel_tool_calls is True:
        writer.carry("parallel_tool_calls")
    return writer.done()


def _encode_tool(tool: FunctionTool) -> bytes:
    parameters = tool.parameters if tool.parameters is not None else ANY_OBJECT
    return described(replace(tool, description=tool.description or ""), ("input_schema", parameters))


# --- media and results ------------------------------------------------------------------------------------------------


class _Source(Struct, gc=False):
    type: str = ""
    media_type: str = ""
    data: str | None = None
    url: str | None = None


class _Part(Struct, gc=False):
    type: str = ""
    image: str | None = None
    source: _Source | None = None


_part_decoder = msgspec.json.Decoder(_Part)


def decode_media(item: Unknown) -> Media | str | None:
    """A picture in `image`, or a picture or file in Anthropic's `source`."""
    part = read_or_none(_part_decoder, item.raw) or _Part()
    if part.type == "image" and part.image is not None:
        return media_at("image", part.image)
    source = part.source
    if part.type not in ("image", "document") or source is None:
        return None
    return Media("image" if part.type == "image" else "document", source.media_type, source.url, data=source.data)


def encode_media(media: Media) -> Unknown | None:
    """A picture as a URL or inline; a file with its bytes; None if there is no part of this kind."""
    if media.kind == "image" and (media.url is not None or media.data is not None):
        held = media if media.media_type or media.url else replace(media, media_type="image/png")
        return Unknown("image", Raw(encode({"type": "image", "image": data_url(held)})))
    if media.kind == "document" and media.data is not None:
        source = {"type": "base64", "media_type": media.media_type or "application/pdf", "data": media.data}
        return Unknown("document", Raw(encode({"type": "document", "source": source})))
    return None


def decode_result(item: ToolResult) -> ResultContent:
    """The content of an `output`: a text, JSON, or parts, and whether the tool failed."""
    text = bytes(item.content)
    if text[:1] != b"{":
        return ResultContent(decode_parts(item.content, decode_media))
    output = read_or_none(output_decoder, item.content) or Output()
    is_error = output.type.startswith("error")
    if output.type in ("json", "error-json"):
        return ResultContent((JsonPart(output.value),), is_error)
    if output.type in ("error-text", "content"):
        return ResultContent(decode_parts(output.value, decode_media), is_error)
    return ResultContent((as_text(text),))


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Text; `error-text` if the tool failed."""
    text, _, rest = split_result(content, no_media)
    value = encode(text)
    if content.is_error:
        value = object_of([("type", b'"error-text"'), ("value", value)])
    return WrittenResult(ToolResult(Raw(value), call_id, name), rest)
