"""The options of a `generateContent` request, and its media and tool results, as shared values and back.

Both spellings of every member are read, as Google's servers do; camelCase is written.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from thoughtline.formats.gemini_generate.parts import function_response
from thoughtline.formats.json_text import (
    NULL,
    array,
    as_text,
    decode,
    encode,
    is_given,
    members,
    object_of,
    read_or_none,
    set_members,
)
from thoughtline.formats.media import split_result
from thoughtline.formats.option_members import OptionWriter, Reader, described, effort_named, given, member
from thoughtline.providers import Dialect
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import (
    WEB_SEARCH,
    BuiltInTool,
    FunctionTool,
    Media,
    MediaKind,
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

_JSON = "application/json"
CONFIGS = ("generationConfig", "generation_config")
_CONFIG = (
    member("max_tokens", int, "maxOutputTokens", "max_output_tokens"),
    member("temperature", float),
    member("top_p", float, "topP", "top_p"),
    member("top_k", float, "topK", "top_k"),
    member("stop", tuple, "stopSequences", "stop_sequences"),
    member("seed", int),
    member("frequency_penalty", float, "frequencyPenalty", "frequency_penalty"),
    member("presence_penalty", float, "presencePenalty", "presence_penalty"),
    member("n", int, "candidateCount", "candidate_count"),
)
_LOGPROBS = (
    member("logprobs", bool, "responseLogprobs", "response_logprobs"),
    member("top_logprobs", int, "logprobs"),
)
_READ = (
    member("model", str),
    member("service_tier", str, "serviceTier", "service_tier"),
    member("metadata", Raw, "labels"),
)


class _Function(Struct, gc=False, rename="camel"):
    name: str = ""
    description: str | None = None
    parameters: Raw = NULL
    parameters_json_schema: Raw = NULL
    snake_schema: Raw = field(default=NULL, name="parameters_json_schema")


_functions_decoder = msgspec.json.Decoder(list[_Function])
_members_decoder = msgspec.json.Decoder(dict[str, Raw])


def decode_options(body: bytes) -> ReadOptions:
    reader = Reader(body)
    reader.skip("contents", "systemInstruction", "system_instruction")
    config = reader.inner(*CONFIGS)
    calling = reader.inner("toolConfig", "tool_config").inner("functionCallingConfig", "function_calling_config")
    options = Options(
        **reader.read(_READ),
        **config.read((*_CONFIG, *_LOGPROBS)),
        wants_usage=True,
        tools=_decode_tools(reader.elements("tools")),
        tool_choice=_decode_choice(calling),
        output=_decode_output(config),
        thinking=_decode_thinking(config.inner("thinkingConfig", "thinking_config")),
    )
    if options.top_k is not None:
        options = replace(options, top_k=int(options.top_k))
    return reader.done(options, config)


def _decode_tools(raws: tuple[Raw, ...]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for at, raw in enumerate(raws):
        place = f"/tools/{at}"
        for name, value in decode(_members_decoder, raw, place).items():
            if name in ("functionDeclarations", "function_declarations"):
                tools += [_typed(one) for one in decode(_functions_decoder, value, f"{place}/{name}")]
            elif is_given(value):
                shared = name in ("googleSearch", "google_search")
                own = Raw(object_of([(name, value)]))
                tools.append(BuiltInTool(WEB_SEARCH if shared else name, own, f"{place}/{name}"))
    return tuple(tools)


def _typed(function: _Function) -> FunctionTool:
    plain = given(function.parameters_json_schema) or given(function.snake_schema)
    if plain is None and is_given(function.parameters):
        plain = _json_schema(function.parameters)
    return FunctionTool(function.name, function.description, plain)


def _decode_choice(calling: Reader) -> ToolChoice | None:
    mode = (calling.take(str, "tool_choice", "mode") or "").upper()
    names = calling.names("tool_choice", "allowedFunctionNames", "allowed_function_names")
    if mode == "ANY":
        return ToolChoice("named", names[0]) if len(names) == 1 else ToolChoice("required", None, names)
    if mode == "NONE":
        return ToolChoice("none")
    return ToolChoice("auto") if mode in ("AUTO", "VALIDATED") else None


def _decode_output(config: Reader) -> StructuredOutput | None:
    kind = config.take(str, "output", "responseMimeType", "response_mime_type")
    plain = config.raw("output", "responseJsonSchema", "response_json_schema")
    own = config.raw("output", "responseSchema", "response_schema")
    schema = plain if plain is not None else _json_schema(own) if own is not None else None
    return StructuredOutput(schema) if kind == _JSON or schema is not None else None


def _decode_thinking(inner: Reader) -> Thinking:
    budget = inner.take(int, "thinking", "thinkingBudget", "thinking_budget")
    level = (inner.take(str, "thinking", "thinkingLevel", "thinking_level") or "").lower()
    shown = inner.take(bool, "thinking", "includeThoughts", "include_thoughts")
    effort = effort_named(level)
    if budget is None and effort is None:
        return Thinking(is_shown=shown)
    return Thinking("off" if budget == 0 else "on", effort, budget, shown)


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    """The members of a request; model and streaming are in the URL."""
    writer = OptionWriter(options)
    declared = [_encode_function(tool) for tool in options.tools if isinstance(tool, FunctionTool)]
    tools = [object_of([("functionDeclarations", array(declared))])] if declared else []
    others = [tool for tool in options.tools if isinstance(tool, BuiltInTool)]
    tools += [b'{"googleSearch":{}}' if tool.kind == WEB_SEARCH else bytes(tool.raw) for tool in others]
    writer.put("tools", "tools", Raw(array(tools)) if tools else None)
    calling = _encode_choice(options.tool_choice) if declared else None
    writer.put("tool_choice", "toolConfig", {"functionCallingConfig": calling} if calling else None)
    if options.parallel_tool_calls is True:
        writer.carry("parallel_tool_calls")
    writer.put_json("generationConfig", writer.inner(_CONFIG, *_encode_output(options.output)))
    writer.carry("output")
    return writer.done()


def _encode_output(output: StructuredOutput | None) -> list[tuple[str, object]]:
    if output is None:
        return []
    return [("responseMimeType", _JSON), *([("responseJsonSchema", output.schema)] if output.schema else [])]


def _encode_function(tool: FunctionTool) -> bytes:
    """A declaration. `parametersJsonSchema` accepts any JSON schema, without `$schema`."""
    schema = tool.parameters
    if schema is not None and b'"$schema"' in bytes(schema):
        schema = Raw(set_members(schema, [("$schema", None)]))
    return described(tool, ("parametersJsonSchema", schema))


def _encode_choice(choice: ToolChoice | None) -> dict[str, object] | None:
    match choice:
        case None:
            return None
        case ToolChoice(mode="named"):
            return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
        case ToolChoice(mode="required"):
            return {"mode": "ANY"} | ({"allowedFunctionNames": list(choice.allowed)} if choice.allowed else {})
        case _:
            return {"mode": "NONE" if choice.mode == "none" else "AUTO"}


# --- media and results ------------------------------------------------------------------------------------------------


class _Blob(Struct, gc=False, rename="camel"):
    mime_type: str | None = None
    snake_type: str | None = field(default=None, name="mime_type")
    data: str | None = None
    file_uri: str | None = None
    snake_uri: str | None = field(default=None, name="file_uri")
    display_name: str | None = None


class _Part(Struct, gc=False, rename="camel"):
    inline_data: _Blob | None = None
    snake_inline: _Blob | None = field(default=None, name="inline_data")
    file_data: _Blob | None = None
    snake_file: _Blob | None = field(default=None, name="file_data")


_part_decoder = msgspec.json.Decoder(_Part)


def decode_media(item: Unknown) -> Media | None:
    """The picture, sound or file in a part; None if it is none of them."""
    part = read_or_none(_part_decoder, item.raw) or _Part()
    blob = part.inline_data or part.snake_inline or part.file_data or part.snake_file
    if blob is None:
        return None
    kind = blob.mime_type or blob.snake_type or ""
    return Media(
        _kind_of(kind), kind, blob.file_uri or blob.snake_uri, data=blob.data, file_id=None, name=blob.display_name
    )


_LIKELY: dict[MediaKind, str] = {
    "image": "image/png",
    "document": "application/pdf",
    "audio": "audio/wav",
    "video": "video/mp4",
}


def _kind_of(media_type: str) -> MediaKind:
    return next((kind for kind in _LIKELY if media_type.split("/")[0] == kind), "document")


def encode_media(media: Media) -> Unknown | None:
    """A part; None for media that only their provider stores."""
    kind = media.media_type or _LIKELY[media.kind]
    if media.data is not None:
        return Unknown("inlineData", Raw(encode({"inlineData": {"mimeType": kind, "data": media.data}})))
    if media.url is not None:
        return Unknown("fileData", Raw(encode({"fileData": {"mimeType": kind, "fileUri": media.url}})))
    return None


_ONE_TEXT = ("result", "output", "content", "error")


def decode_result(item: ToolResult) -> ResultContent:
    """A `functionResponse`: an object, and the parts next to it."""
    response = _decode_response(item.content)
    return ResultContent((*response.parts, *_decode_beside(item.raw)), response.is_error)


def _decode_response(content: Raw) -> ResultContent:
    """An object that is only a text under a usual name becomes that text."""
    if bytes(content)[:1] != b"{":
        return ResultContent((as_text(content),) if is_given(content) else ("",))
    held = members(content)
    if len(held) == 1:
        name, value = next(iter(held.items()))
        if name in _ONE_TEXT and bytes(value)[:1] == b'"':
            return ResultContent((msgspec.json.decode(value, type=str),), name == "error")
    return ResultContent((as_text(content),))


class _Beside(Struct, gc=False):
    parts: list[Raw] = []


class _Result(Struct, gc=False, rename="camel"):
    function_response: _Beside | None = None
    snake_result: _Beside | None = field(default=None, name="function_response")


_result_decoder = msgspec.json.Decoder(_Result)


def _decode_beside(raw: Raw) -> list[ResultPart]:
    """Pictures and files of a result; any other part as its JSON."""
    known = _result_decoder.decode(raw) if raw else _Result()
    held = known.function_response or known.snake_result
    return [decode_media(Unknown("", part)) or as_text(part) for part in (held.parts if held else ())]


def encode_result(content: ResultContent, call_id: str | None, name: str | None) -> WrittenResult:
    """An object with the text under `result` (or `error`), pictures and files in parts next to it."""
    text, held, rest = split_result(content, encode_media)
    response = encode({"error" if content.is_error else "result": text})
    if not held:
        return WrittenResult(ToolResult(Raw(response), call_id, name), rest)
    raw = Raw(function_response(call_id, name, response, array(held)))
    return WrittenResult(ToolResult(Raw(response), call_id, name, raw), rest)


# --- Gemini's own schema (a subset of OpenAPI 3.0) as a JSON schema: types in lower case, `nullable` as a type
# ----------


_INNER = ("items", "additionalProperties")
_LISTS = ("anyOf", "prefixItems")
_NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_MAX_DEPTH = 64


def _json_schema(own: Raw) -> Raw:
    """The equivalent JSON schema; a value that is no schema stays unchanged."""
    value = msgspec.json.decode(own)
    return Raw(msgspec.json.encode(_plain(value, 0))) if isinstance(value, dict) else own


def _plain(schema: Any, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            plain[key] = value.lower()
        elif key == "properties" and isinstance(value, dict):
            plain[key] = {name: _plain(inner, depth + 1) for name, inner in value.items()}
        elif key in _INNER:
            plain[key] = _plain(value, depth + 1)
        elif key in _LISTS and isinstance(value, list):
            plain[key] = [_plain(inner, depth + 1) for inner in value]
        elif key in _NUMBERS and isinstance(value, str) and value.isdigit():
            plain[key] = int(value)  # 64-bit numbers are strings in Google's JSON
        elif key not in ("nullable", "propertyOrdering", "property_ordering", "example"):
            plain[key] = value
    if schema.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain
