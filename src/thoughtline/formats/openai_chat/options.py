"""The options of a chat request, and its media and tool results, as shared values and back."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.cache_marks import CACHE_CONTROL
from thoughtline.formats.json_text import NULL, array, decode, encode, object_of, read_or_none
from thoughtline.formats.media import (
    data_url,
    decode_parts,
    failed,
    media_at,
    no_media,
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
from thoughtline.providers import COHERE, MISTRAL, NO_REASONING, Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
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
    member("temperature", float),
    member("top_p", float),
    member("top_k", int),
    member("seed", int),
    member("frequency_penalty", float),
    member("presence_penalty", float),
    member("n", int),
    member("logit_bias", Raw),
    member("verbosity", str),
    member("service_tier", str),
    member("metadata", Raw),
    member("user", str),
    member("store", bool),
    member("stop", tuple),
)
_READ = (
    *_PLAIN,
    member("model", str),
    member("is_streaming", bool, "stream"),
    member("max_tokens", int, "max_completion_tokens", "max_tokens"),
    member("logprobs", bool),
    member("top_logprobs", int),
    member("parallel_tool_calls", bool),
    member("cache_key", str, "prompt_cache_key"),
    member("cache_mark", Raw, CACHE_CONTROL),
)


class _Named(Struct, gc=False):
    name: str = ""
    description: str | None = None
    parameters: Raw = NULL
    strict: bool | None = None
    format: Raw = NULL


class _Tool(Struct, gc=False):
    type: str = ""
    function: _Named | None = None
    custom: _Named | None = None
    cache_control: Raw = NULL


class _Schema(Struct, gc=False):
    name: str | None = None
    description: str | None = None
    schema: Raw = NULL
    strict: bool | None = None


class _Output(Struct, gc=False):
    type: str = ""
    json_schema: _Schema | None = None


class _Allowed(Struct, gc=False):
    mode: str = "auto"
    tools: list[_Tool] | None = None


class _Choice(Struct, gc=False):
    type: str = ""
    function: _Named | None = None
    custom: _Named | None = None
    allowed_tools: _Allowed | None = None


_named_decoder = msgspec.json.Decoder(_Named)
_tool_decoder = msgspec.json.Decoder(_Tool)
_choice_decoder: msgspec.json.Decoder[str | _Choice] = msgspec.json.Decoder(str | _Choice)


def decode_options(body: bytes) -> ReadOptions:
    """The options of a chat request."""
    reader = Reader(body)
    reader.skip("messages")
    streaming = reader.inner("stream_options")
    tools = tuple(decode_tool(raw, f"/tools/{at}") for at, raw in enumerate(reader.elements("tools")))
    tools += tuple(_decode_function(raw, at) for at, raw in enumerate(reader.elements("tools", "functions")))
    options = Options(
        **reader.read(_READ),
        wants_usage=bool(streaming.take(bool, "wants_usage", "include_usage")),
        tools=tools,
        tool_choice=_decode_choice(reader.raw("tool_choice"))
        or _decode_old_choice(reader.raw("tool_choice", "function_call")),
        output=_decode_output(reader.take(_Output, "output", "response_format")),
        thinking=_decode_thinking(reader),
    )
    return reader.done(options)


def decode_tool(raw: Raw, place: str) -> Tool:
    """One tool: a function, a free-text tool, or one that the provider runs."""
    tool = decode(_tool_decoder, raw, place)
    if tool.function is not None:
        named = tool.function
        mark = given(tool.cache_control)
        return FunctionTool(named.name, named.description, given(named.parameters), named.strict, cache_mark=mark)
    if tool.custom is not None:
        return CustomTool(tool.custom.name, tool.custom.description, given(tool.custom.format))
    return BuiltInTool(tool.type, raw, place)


def _decode_function(raw: Raw, at: int) -> FunctionTool:
    """A function of the API before tools."""
    named = decode(_named_decoder, raw, f"/functions/{at}")
    return FunctionTool(named.name, named.description, given(named.parameters))


def _decode_old_choice(raw: Raw | None) -> ToolChoice | None:
    """`function_call` of that API: a word, or an object with a name."""
    if raw is None or bytes(raw)[:1] == b'"':
        return _decode_choice(raw)
    return ToolChoice("named", decode(_named_decoder, raw, "/function_call").name)


def _decode_choice(raw: Raw | None) -> ToolChoice | None:
    if raw is None:
        return None
    choice = decode(_choice_decoder, raw, "/tool_choice")
    if isinstance(choice, str):
        return ToolChoice("none" if choice == "none" else "required" if choice in ("required", "any") else "auto")
    if choice.allowed_tools is not None:
        named = [tool.function or tool.custom for tool in choice.allowed_tools.tools or ()]
        names = tuple(one.name for one in named if one)
        return ToolChoice("required" if choice.allowed_tools.mode == "required" else "auto", None, names)
    one = choice.function or choice.custom
    return ToolChoice("named", one.name) if one is not None else ToolChoice("auto")


def _decode_output(output: _Output | None) -> StructuredOutput | None:
    if output is None or output.type not in ("json_object", "json_schema"):
        return None
    schema = output.json_schema or _Schema()
    return StructuredOutput(given(schema.schema), schema.name, schema.description, schema.strict)


_SWITCHES = ("thinking", "enable_thinking", "reasoning", "reasoning_effort", "chat_template_kwargs", "think")
_OTHER_EFFORTS = {"ultra": "max", "off": "none", "disabled": "none"}


def _decode_thinking(reader: Reader) -> Thinking:
    """All known switches: those of OpenAI, OpenRouter, DeepSeek and Kimi, Qwen, local servers."""
    inner = reader.inner("reasoning")
    switches = reader.inner("thinking")
    switch = reader.switch(*_SWITCHES)
    effort = inner.take(str, "thinking", "effort") or switches.take(str, "thinking", "effort")
    flat_effort = reader.raw("thinking", "reasoning_effort")
    if effort is None and flat_effort is not None and bytes(flat_effort)[:1] == b'"':
        effort = msgspec.json.decode(flat_effort, type=str)
    budget = inner.take(int, "thinking", "max_tokens") or switches.take(int, "thinking", "budget_tokens")
    budget = budget or reader.take(int, "thinking", "thinking_budget")
    hidden = inner.take(bool, "thinking", "exclude")
    effort = _OTHER_EFFORTS.get(effort or "", effort)
    return Thinking(switch, effort_named(effort), budget, None if hidden is None else not hidden)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a chat request."""
    writer = OptionWriter(options)
    writer.put("model", "model", options.model)
    if options.is_streaming:
        writer.put_json("stream", b"true")
        if dialect not in (MISTRAL, COHERE):  # they always send the usage and have no such member
            writer.put_json("stream_options", b'{"include_usage":true}')
    # OpenAI's reasoning models reject `max_tokens`; most others know no other name.
    writer.put("max_tokens", "max_completion_tokens" if dialect == NO_REASONING else "max_tokens", options.max_tokens)
    writer.write(_PLAIN)
    writer.put("cache_key", "prompt_cache_key", options.cache_key if dialect == NO_REASONING else None)
    tools = [encode_tool(tool) for tool in options.tools if not isinstance(tool, BuiltInTool)]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    writer.put("tool_choice", "tool_choice", _encode_choice(options.tool_choice) if tools else None)
    writer.put("parallel_tool_calls", "parallel_tool_calls", options.parallel_tool_calls if tools else None)
    writer.put("output", "response_format", _encode_output(options.output))
    return writer.done()


def encode_tool(tool: Tool) -> bytes:
    """One tool; one that the provider runs is unchanged."""
    match tool:
        case FunctionTool():
            strict = encode(tool.strict) if tool.strict is not None else None
            function = described(tool, ("parameters", tool.parameters), ("strict", strict))
            return object_of([("type", b'"function"'), ("function", function), (CACHE_CONTROL, tool.cache_mark)])
        case CustomTool():
            return object_of([("type", b'"custom"'), ("custom", described(tool, ("format", tool.grammar)))])
        case BuiltInTool():
            return bytes(tool.raw)


def _encode_choice(choice: ToolChoice | None) -> object:
    if choice is None:
        return None
    if choice.allowed:
        tools = [{"type": "function", "function": {"name": name}} for name in choice.allowed]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    if choice.mode == "named":
        return {"type": "function", "function": {"name": choice.name}}
    return choice.mode


def _encode_output(output: StructuredOutput | None) -> object:
    if output is None:
        return None
    if output.schema is None:
        return {"type": "json_object"}
    schema = schema_members(output) | ({"strict": output.strict} if output.strict is not None else {})
    return {"type": "json_schema", "json_schema": schema}


# --- media and results ------------------------------------------------------------------------------------------------


class _Image(Struct, gc=False):
    url: str = ""
    detail: str | None = None


class _Audio(Struct, gc=False):
    data: str = ""
    format: str = ""


class _File(Struct, gc=False):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _Part(Struct, gc=False):
    type: str = ""
    text: str | None = None
    image_url: _Image | str | None = None
    input_audio: _Audio | None = None
    file: _File | None = None
    video_url: _Image | None = None


_part_decoder = msgspec.json.Decoder(_Part)


def decode_media(item: Unknown) -> Media | None:
    """The picture, sound or file in a part; None if it is none of them."""
    part = read_or_none(_part_decoder, item.raw) or _Part()
    if part.image_url is not None:
        image = part.image_url if isinstance(part.image_url, _Image) else _Image(part.image_url)
        return media_at("image", image.url, image.detail)
    if part.video_url is not None:
        return media_at("video", part.video_url.url)
    if part.input_audio is not None:
        return Media("audio", f"audio/{part.input_audio.format or 'wav'}", data=part.input_audio.data)
    return _decode_file(part.file) if part.file is not None else None


def _decode_file(file: _File) -> Media:
    media_type, data = split_data_url(file.file_data or "")
    if data is not None:
        return Media("document", media_type, data=data, name=file.filename)
    return Media("document", data=file.file_data, file_id=file.file_id, name=file.filename)


def encode_media(media: Media) -> Unknown | None:
    """A part of a chat message; None if there is none of this kind."""
    match media:
        case Media(kind="image", file_id=None):
            image = {"url": data_url(media)} | ({"detail": media.detail} if media.detail else {})
            return Unknown("image_url", Raw(encode({"type": "image_url", "image_url": image})))
        case Media(kind="audio", data=str()):
            sound = {"data": media.data, "format": media.media_type.removeprefix("audio/").replace("mpeg", "mp3")}
            return Unknown("input_audio", Raw(encode({"type": "input_audio", "input_audio": sound})))
        case Media(kind="document", data=str()):
            file = {"filename": media.name or "file", "file_data": data_url(media)}
            return Unknown("file", Raw(encode({"type": "file", "file": file})))
        case Media(kind="video", url=str()):
            return Unknown("video_url", Raw(encode({"type": "video_url", "video_url": {"url": media.url}})))
        case _:
            return None


def decode_result(item: ToolResult) -> ResultContent:
    """The content of a tool message: text, or parts."""
    return ResultContent(decode_parts(item.content, decode_media))


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """Only text: a tool message holds nothing else."""
    text, _, rest = split_result(content, no_media)
    return WrittenResult(ToolResult(Raw(encode(failed(text) if content.is_error else text)), call_id, name), rest)
