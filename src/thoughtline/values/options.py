"""The options of a request, everything except its conversation, in values that all formats share.

Each format reads its members into `Options` and writes `Options` into its members; options that it has no member for
are named, so that no loss is silent. `media` values are the pictures and files of a conversation, `ResultPart`s the
content of a tool result.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.values.items import ToolResult
from thoughtline.values.turns import ThinkingSwitch

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class FunctionTool(Struct, frozen=True, gc=False):
    """A function that the client runs. `parameters` is a JSON schema, `namespace` the group that it is in.

    `is_search`: it finds more tools, and the client's format has a kind of its own for it. `cache_mark`: the prompt may
    be cached up to here. `is_deferred`: the model sees it only after a search has found it.
    """

    name: str
    description: str | None = None
    parameters: Raw | None = None
    strict: bool | None = None
    namespace: str | None = None
    is_search: bool = False
    cache_mark: Raw | None = None
    is_deferred: bool = False


class CustomTool(Struct, frozen=True, gc=False):
    """A tool whose input is free text."""

    name: str
    description: str | None = None
    grammar: Raw | None = None
    namespace: str | None = None


class BuiltInTool(Struct, frozen=True, gc=False):
    """A tool that the provider runs. `kind` is a shared name if there is one, else the provider's own.

    `place` is its position; `is_cached`: it must not access anything outside a cache, which only its own provider
    guarantees.
    """

    kind: str
    raw: Raw
    place: str = ""
    is_cached: bool = False


Tool: TypeAlias = FunctionTool | CustomTool | BuiltInTool

WEB_SEARCH = "web_search"


class ToolRange(Struct, frozen=True, gc=False):
    """Which tools besides functions a server accepts, by kind, and which related items a conversation may have.

    A name that ends in `_` stands for all of its versions.
    """

    has: tuple[str, ...] = ("*",)
    lacks: tuple[str, ...] = ()

    def takes(self, kind: str) -> bool:
        return not _is_among(kind, self.lacks) and _is_among(kind, self.has)

    def having(self, kind: str) -> ToolRange:
        """The same without this kind among the lacking ones."""
        return replace(self, lacks=tuple(one for one in self.lacks if one != kind))


def _is_among(kind: str, names: tuple[str, ...]) -> bool:
    return any(name in ("*", kind) or (name.endswith("_") and kind.startswith(name)) for name in names)


ALL_TOOLS = ToolRange()
FUNCTIONS_ONLY = ToolRange(has=())

MissingTools: TypeAlias = Literal["leave_out", "refuse", "pass_on"]
"""What to do with a tool that the upstream lacks. `pass_on` is for a server of the client's own format, which may have
it after all; a tool that another format can't express can only be left out.
"""


class ToolChoice(Struct, frozen=True, gc=False):
    """Whether a tool must be called, and which. `allowed` narrows the choice to some of the tools."""

    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None
    allowed: tuple[str, ...] = ()

    @property
    def is_forced(self) -> bool:
        return self.mode in ("required", "named")


class StructuredOutput(Struct, frozen=True, gc=False):
    """The answer must be JSON: any object, or one that matches a schema."""

    schema: Raw | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class Thinking(Struct, frozen=True, gc=False):
    """How much a model is to think. `budget` is in tokens, -1 if the model decides; `is_shown`: whether the client
    wants to see it; `display` is Anthropic's own value for that, passed on unchanged.
    """

    switch: ThinkingSwitch = "unsaid"
    effort: Effort | None = None
    budget: int | None = None
    is_shown: bool | None = None
    display: str | None = None


class Options(Struct, frozen=True, gc=False):
    """The options of a request. `cache_mark` is one for the whole prompt: it stands for a mark on the last block."""

    model: str = ""
    is_streaming: bool = False
    wants_usage: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: Raw | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output: StructuredOutput | None = None
    thinking: Thinking = Thinking()
    verbosity: str | None = None
    service_tier: str | None = None
    metadata: Raw | None = None
    user: str | None = None
    store: bool | None = None
    include: tuple[str, ...] = ()
    previous_response_id: str | None = None
    truncation: str | None = None
    cache_key: str | None = None
    cache_mark: Raw | None = None


class ReadOptions(NamedTuple):
    """The options in a body, the position of each, and the unknown members (JSON pointers)."""

    options: Options
    places: dict[str, str]
    leftovers: tuple[str, ...] = ()


class WrittenOptions(NamedTuple):
    """The members for options, and the names of the options this format has no member for."""

    members: tuple[tuple[str, bytes], ...]
    dropped: tuple[str, ...] = ()


# --- pictures, files, sounds -----------------------------------------------------------------------------------------

MediaKind = Literal["image", "document", "audio", "video"]


class Media(Struct, frozen=True, gc=False):
    """Content that is not text: by URL, as base64, or by the provider's id."""

    kind: MediaKind
    media_type: str = ""
    url: str | None = None
    data: str | None = None
    file_id: str | None = None
    name: str | None = None
    detail: str | None = None


class JsonPart(Struct, frozen=True, gc=False):
    """A result that is a JSON value, not text."""

    value: Raw


ResultPart: TypeAlias = str | Media | JsonPart


class ResultContent(Struct, frozen=True, gc=False):
    """The content of a tool result, part by part."""

    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False


class WrittenResult(NamedTuple):
    """A result for the wire, and the media it can't hold."""

    item: ToolResult
    rest: tuple[Media, ...] = ()
