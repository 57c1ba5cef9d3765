"""The options of a Converse request, and its media and tool results, as shared values and back.

Options of a single model are in `additionalModelRequestFields`, under the model's own names.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.bedrock_converse.blocks import cache_point, mark_of
from thoughtline.formats.bodies import thinking_switch
from thoughtline.formats.json_text import (
    NULL,
    array,
    as_text,
    decode,
    decode_list,
    encode,
    is_given,
    members,
    object_of,
    read_or_none,
)
from thoughtline.formats.media import split_result
from thoughtline.formats.option_members import ANY_OBJECT, OptionWriter, Reader, described, given, member
from thoughtline.formats.thinking import MemberEdit
from thoughtline.providers import Dialect
from thoughtline.values.items import ANTHROPIC_CLAUDE_V1, CACHE_POINT, ToolResult, Unknown
from thoughtline.values.options import (
    BuiltInTool,
    FunctionTool,
    JsonPart,
    Media,
    MediaKind,
    Options,
    ReadOptions,
    ResultContent,
    ResultPart,
    Thinking,
    Tool,
    ToolChoice,
    WrittenOptions,
    WrittenResult,
)

_FIELDS = "additionalModelRequestFields"
_SWITCHES = ("thinking", "reasoning_config", "reasoningConfig")
_INFERENCE = (
    member("max_tokens", int, "maxTokens"),
    member("temperature", float),
    member("top_p", float, "topP"),
    member("stop", tuple, "stopSequences"),
)


class _Named(Struct, gc=False):
    name: str = ""


class _Choice(Struct, gc=False):
    tool: _Named | None = None
    any: Raw = NULL
    auto: Raw = NULL


_choice_decoder = msgspec.json.Decoder(_Choice)


class _Spec(Struct, gc=False, rename="camel"):
    name: str = ""
    description: str | None = None
    input_schema: dict[str, Raw] | None = None


class _Tool(Struct, gc=False, rename="camel"):
    tool_spec: _Spec | None = None


_tool_decoder = msgspec.json.Decoder(_Tool)


def decode_options(body: bytes) -> ReadOptions:
    reader = Reader(body)
    reader.skip("messages", "system", "modelId")
    inference, config = reader.inner("inferenceConfig"), reader.inner("toolConfig")
    own = reader.inner(_FIELDS)
    raw = own.raw("thinking", *_SWITCHES)
    tools = _decode_tools(config.elements("tools"))
    options = Options(
        **inference.read(_INFERENCE),
        wants_usage=True,
        top_k=own.take(int, "top_k"),
        tools=tuple(tools),
        tool_choice=_decode_choice(config.raw("tool_choice", "toolChoice")),
        thinking=Thinking(thinking_switch(raw) if raw is not None else "unsaid"),
        metadata=reader.raw("metadata", "requestMetadata"),
    )
    return reader.done(options, inference, config, own)


def _decode_tools(raws: tuple[Raw, ...]) -> list[Tool]:
    """The tools; a `cachePoint` marks the one before it."""
    tools: list[Tool] = []
    for at, raw in enumerate(raws):
        tool = _decode_tool(raw, f"/toolConfig/tools/{at}")
        last = tools[-1] if tools else None
        if not isinstance(tool, BuiltInTool) or tool.kind != CACHE_POINT:
            tools.append(tool)
        elif isinstance(last, FunctionTool):
            tools[-1] = replace(last, cache_mark=mark_of(Unknown(CACHE_POINT, raw)))
    return tools


def _decode_tool(raw: Raw, place: str) -> Tool:
    spec = decode(_tool_decoder, raw, place).tool_spec
    if spec is None:
        return BuiltInTool(next(iter(members(raw)), ""), raw, place)
    return FunctionTool(spec.name, spec.description, given((spec.input_schema or {}).get("json", NULL)))


def _decode_choice(raw: Raw | None) -> ToolChoice | None:
    known = decode(_choice_decoder, raw, "/toolConfig/toolChoice") if raw is not None else _Choice()
    if known.tool is not None:
        return ToolChoice("named", known.tool.name)
    if is_given(known.any):
        return ToolChoice("required")
    return ToolChoice("auto") if is_given(known.auto) else None


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a Converse request; model and streaming are in the URL."""
    if options.temperature is not None:
        options = replace(options, temperature=min(options.temperature, 1.0))
    writer = OptionWriter(options)
    writer.put_object("inferenceConfig", writer.inner(_INFERENCE))
    if dialect.reasoning_format == ANTHROPIC_CLAUDE_V1 and options.top_k is not None:
        writer.put("top_k", _FIELDS, {"top_k": options.top_k})
    _write_tools(writer, options)
    writer.put("metadata", "requestMetadata", _texts(options.metadata))
    return writer.done()


def _write_tools(writer: OptionWriter, options: Options) -> None:
    tools = [one for tool in options.tools if isinstance(tool, FunctionTool) for one in _encode_tool(tool)]
    choice = options.tool_choice
    if not tools:
        writer.carry("tools", "tool_choice")
        return
    if choice is None or choice.mode != "none":
        writer.carry("tool_choice")
    if options.parallel_tool_calls is True:
        writer.carry("parallel_tool_calls")
    known = [("tools", array(tools)), ("toolChoice", _encode_choice(choice))]
    writer.put("tools", "toolConfig", Raw(object_of(known)))


def _encode_choice(choice: ToolChoice | None) -> bytes | None:
    if choice is None or choice.mode == "none":
        return None
    if choice.mode == "named":
        return encode({"tool": {"name": choice.name}})
    return encode({"any" if choice.mode == "required" else "auto": {}})


def _encode_tool(tool: FunctionTool) -> list[bytes]:
    schema = object_of([("json", tool.parameters if tool.parameters is not None else ANY_OBJECT)])
    named = replace(tool, description=tool.description or None)
    spec = object_of([("toolSpec", described(named, ("inputSchema", schema)))])
    return [spec, bytes(cache_point(tool.cache_mark))] if tool.cache_mark is not None else [spec]


def _texts(metadata: Raw | None) -> dict[str, str] | None:
    """Metadata if all values are text; Converse accepts no other."""
    if metadata is None:
        return None
    known = msgspec.json.decode(metadata)
    return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) and known else None


# --- media and results ------------------------------------------------------------------------------------------------


class _Source(Struct, gc=False):
    bytes: str | None = None


class _Blob(Struct, gc=False):
    format: str = ""
    name: str | None = None
    source: _Source | None = None


class _Block(Struct, gc=False):
    image: _Blob | None = None
    document: _Blob | None = None
    video: _Blob | None = None
    audio: _Blob | None = None


_block_decoder = msgspec.json.Decoder(_Block)
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}


def decode_media(item: Unknown) -> Media | None:
    """The picture or file in a block; None if it is neither."""
    block = read_or_none(_block_decoder, item.raw)
    kinds: tuple[MediaKind, ...] = ("image", "document", "video", "audio")
    for kind in kinds:
        blob: _Blob | None = getattr(block, kind, None)
        if blob is not None and blob.source is not None:
            return Media(kind, _media_type(kind, blob.format), data=blob.source.bytes, name=blob.name)
    return None


def _media_type(kind: MediaKind, format: str) -> str:
    if kind == "document":
        return next((name for name, short in _DOCUMENTS.items() if short == format), f"application/{format}")
    return f"{kind}/{format}"


def encode_media(media: Media) -> Unknown | None:
    """A block for media with their bytes; Converse fetches only from S3."""
    if media.data is None or media.kind == "audio":
        return None
    source = {"source": {"bytes": media.data}}
    if media.kind == "document":
        known: dict[str, object] = {"format": _DOCUMENTS.get(media.media_type, "pdf"), "name": _title(media.name)}
        return Unknown("document", Raw(encode({"document": known | source})))
    spelled = media.media_type.partition("/")[2].replace("jpg", "jpeg") or "png"
    return Unknown(media.kind, Raw(encode({media.kind: {"format": spelled} | source})))


def _title(name: str | None) -> str:
    """Converse allows only letters, digits, spaces, hyphens and brackets in the name of a document."""
    kept = "".join(one if one.isalnum() or one in "-()[]" else " " for one in name or "document")
    return " ".join(kept.split()) or "document"


class _Part(Struct, gc=False):
    text: str | None = None
    json: Raw = NULL


_result_decoder = msgspec.json.Decoder(_Part)


def decode_result(item: ToolResult) -> ResultContent:
    is_error = b'"status":"error"' in bytes(item.raw).replace(b" ", b"") if item.raw else False
    if bytes(item.content)[:1] != b"[":
        return ResultContent((as_text(item.content),), is_error)
    return ResultContent(tuple(_decode_part(raw) for raw in decode_list(item.content)), is_error)


def _decode_part(raw: Raw) -> ResultPart:
    part = decode(_result_decoder, raw)
    if part.text is not None:
        return part.text
    return JsonPart(part.json) if is_given(part.json) else decode_media(Unknown("", raw)) or as_text(raw)


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Blocks: text, then media with their bytes; `status` if the tool failed."""
    text, held, rest = split_result(content, encode_media)
    blocks = array([*([encode({"text": text})] if text or not held else []), *held])
    if not content.is_error:
        return WrittenResult(ToolResult(Raw(blocks), call_id), rest)
    known = [("toolUseId", encode(call_id or "")), ("content", blocks), ("status", b'"error"')]
    raw = object_of([("toolResult", object_of(known))])
    return WrittenResult(ToolResult(Raw(blocks), call_id, None, Raw(raw)), rest)


def unasked(body: bytes) -> list[MemberEdit]:
    """Edits that stop asking for thinking: the switch is among the model's own fields."""
    fields = msgspec.json.decode(body).get(_FIELDS)
    if not isinstance(fields, dict):
        return [(_FIELDS, None)]
    kept = {name: value for name, value in fields.items() if name not in _SWITCHES}
    return [(_FIELDS, msgspec.json.encode(kept) if kept else None)]
