"""What differs between wire formats, as one value of each: `Wire`.

Every fact is a required argument: a new format that leaves one out does not type-check. Whoever needs to know how a
format does something asks its `Wire`; nobody compares names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, Protocol

from msgspec import Raw, Struct

from thoughtline.formats.bodies import reading
from thoughtline.formats.cache_marks import CacheMarks
from thoughtline.formats.counting import CountBody
from thoughtline.formats.json_text import is_given
from thoughtline.formats.paths import FindsPath, PublishedMethods
from thoughtline.formats.texts import Texts
from thoughtline.formats.thinking import MemberEdit, SettingPlace, ThinkingModes
from thoughtline.providers import Dialect
from thoughtline.values.errors import ErrorReply, FailureKind
from thoughtline.values.events import Event
from thoughtline.values.items import Text, ToolResult, Unknown
from thoughtline.values.notes import NO_NOTES, Notes
from thoughtline.values.options import Media, Options, ReadOptions, ResultContent, WrittenOptions, WrittenResult
from thoughtline.values.turns import FormatName, Reply, Transcript


class DecodesStream(Protocol):
    """Bytes cut anywhere in, events out."""

    def feed(self, data: bytes) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class EncodesStream(Protocol):
    """Events in, bytes out."""

    def encode(self, event: Event) -> bytes: ...

    def pulse(self) -> bytes: ...

    def finish(self) -> bytes: ...


class BodyCodec(NamedTuple):
    """The four functions for whole bodies."""

    decode_request: Callable[[bytes, Dialect], Transcript]
    encode_request: Callable[[Transcript, Dialect], bytes]
    decode_response: Callable[[bytes, Dialect], Reply]
    encode_response: Callable[[Reply, Dialect], bytes]


class BodyModule(Protocol):
    """A module that reads and writes requests and responses."""

    def decode_request(self, body: bytes, dialect: Dialect, /) -> Transcript: ...

    def encode_request(self, transcript: Transcript, dialect: Dialect, /) -> bytes: ...

    def decode_response(self, body: bytes, dialect: Dialect, /) -> Reply: ...

    def encode_response(self, reply: Reply, dialect: Dialect, /) -> bytes: ...


def body_codec(module: BodyModule) -> BodyCodec:
    """The codec of a module, which reads requests with lone surrogates too."""
    return BodyCodec(
        reading(module.decode_request),
        module.encode_request,
        module.decode_response,
        module.encode_response,
    )


class OptionModule(Protocol):
    """A module that turns a format's options, media and results of tools into shared values, and back."""

    def decode_options(self, body: bytes, /) -> ReadOptions: ...

    def encode_options(self, options: Options, dialect: Dialect, /) -> WrittenOptions: ...

    def decode_media(self, item: Unknown, /) -> Media | str | None: ...

    def encode_media(self, media: Media, /) -> Unknown | None: ...

    def decode_result(self, item: ToolResult, /) -> ResultContent: ...

    def encode_result(self, content: ResultContent, id: str | None, tool: str | None, /) -> WrittenResult: ...


class IdRule(NamedTuple):
    """Which ids of calls a wire takes. `is_unique`: one that stands twice in a conversation is refused.

    `chars`: how many letters and digits an id has, where that is fixed; those that are made then depend on `salt`.
    """

    pattern: re.Pattern[str]
    is_required: bool = True
    is_unique: bool = False
    chars: int = 0
    salt: str = ""


class MessagePlace(NamedTuple):
    """The model's message: the `path` to it in a response, and in a request its `role` and where its `content` stands.

    No `content`: a list of elements stands for the message.
    """

    path: tuple[str | int, ...]
    role: str
    content: str


class NotePlace(NamedTuple):
    """Where a format has notes on an answer. `decode` and `encode` are for those that stand on the words themselves,
    and `mark` tells words that have some; the others stand beside the answer, where its codec reads and writes them.

    `places` says whether a citation must name its words, may, or is about all that it stands on. `wants` tells a
    document of a request that asks for citations, `in_history` where a history has notes that no item shows.
    """

    has_citations: bool = False
    has_quotes: bool = False
    places: Literal["needed", "kept", "none"] = "kept"
    decode: Callable[[Text], Notes] = lambda item: NO_NOTES
    mark: re.Pattern[bytes] = re.compile(rb"(?!)")
    encode: Callable[[str, Notes], Text] | None = None
    wants: Callable[[Unknown], bool] = lambda item: False
    in_history: Callable[[bytes], tuple[str, ...]] | None = None


class HeldConversation(NamedTuple):
    """A member that names a conversation which the client left at its provider. `kept_as` is a provider's word for
    keeping such; `is_usual`, that a server nobody knows is taken to. `code` and `remedy` are for one that is not kept.
    `goes_on`: whether the member's value names one that is there already.
    """

    member: str
    kept_as: Literal["threads", "conversations", "interactions"]
    is_usual: bool
    title: str
    code: str
    remedy: str
    goes_on: Callable[[Raw], bool] = is_given


class Inclusion(NamedTuple):
    """A member that asks for more than the answer, and its word for encrypted reasoning."""

    member: str
    seals: str


class ErrorCodec(NamedTuple):
    """Errors read and written, the provider's and ours. `object` is the error itself, as it stands in an event.

    `failures` are words of its errors, in lower case, that speak against the server and not against the request.
    """

    read: Callable[[int, bytes], ErrorReply]
    object: Callable[[ErrorReply], object]
    write: Callable[[ErrorReply], bytes]
    failures: Mapping[str, FailureKind]


class ModelList(NamedTuple):
    """The list of models that clients of a format read. `query` asks for a page so large that one is enough; `path`
    and `header` tell such a client: how its path begins, what only it sends."""

    encode: Callable[[tuple[str, ...]], bytes]
    query: str
    path: str
    header: bytes


Quirk = Literal[
    "answers_in_pieces",  # clients keep each chunk of a stream as a message of its own
    "any_path_is_a_version",  # of a base: it stands where others have `/v1`
    "attribution",  # its main client writes a line about itself first into the system prompt
    "bearer_key",  # its servers take a key as a bearer token, whatever their other APIs want
    "chat_templates",  # servers of open models write its messages by a template, which may leave reasoning out
    "choices",  # a response may have several answers
    "claude_finishes",  # Anthropic's words say why a turn ended: formats that share them pass them on
    "content_in_parts",  # some servers write visible text as parts, where clients expect a string
    "dialects",  # servers differ in where they keep reasoning
    "goes_on_after_finish",  # a turn may be said to be over and then go on (Gemini's code execution)
    "items_are_elements",  # each item of a turn is an element of the list, has an id, and pairs with others by it
    "key_in_query",  # servers read a key there
    "max_tokens_needed",  # a request must say a limit
    "models_elsewhere",  # the list of models is at another host
    "no_failed_finish",  # no word says that an answer failed
    "no_off_switch",  # a model stops thinking when nothing asks it to
    "not_last",  # no turn may end in reasoning
    "one_text",  # a message has one field for all its text and one for all its reasoning
    "seals_on_items",  # signatures stand on calls and text
    "shared_address",  # bodies of others go there too: its own have one of its telling members
    "signed_requests",  # for a host: a server nobody knows is not taken to speak it
    "single_prompt",  # a body with `prompt` is one, and has its system prompt beside it
    "stored_responses",  # an answer has an id by which the next request may name it
    "streamed_by_address",  # the address says whether to stream, not the body
    "streams_only",  # every answer is a stream, whatever a request says
    "thinks_unasked",  # its own models think unless they are told not to
    "thoughts_in_pieces",  # clients may send the text of a thought in pieces or not at all: its signatures count
    "tools_needed",  # calls in the history want tools beside them, and nothing says that none is to be called
    "tools_unmixed",  # tools that the provider runs don't stand beside functions
    "unsigned_refused",  # where signatures are checked, thinking without one is refused
    "untranslated",  # passed on in its own format alone
    "usage_last",  # behind everything else, and only to those who asked
    "usual_tier",  # has a word for the usual service tier
    "websocket",  # spoken over one, too: each message is the body of a request
]
"""What some formats do and most don't."""


class Wire(Struct, frozen=True, kw_only=True):
    """A format that clients and providers speak. `dialect` is that of a server nobody knows."""

    name: FormatName
    family: str
    """What a file of recorded exchanges calls it."""
    dialect: Dialect
    stream_decoder: Callable[[Dialect], DecodesStream]
    stream_encoder: Callable[[Dialect], EncodesStream]
    bodies: BodyCodec
    stream_type: bytes
    stream_query: str
    """The query that asks for server-sent events; without it a stream is a JSON array. Empty: there is one framing."""

    inside: str
    """The member of a body that the request itself stands in; empty where it is the body."""
    list_member: str
    item_member: str
    """Where the items of a message stand in it; empty where they have no places of their own."""
    message: MessagePlace
    system: Literal["messages", "blocks", "text"]
    """The system prompt: messages at the head of the list, or a member beside it, of blocks or of one text."""
    system_members: tuple[str, ...]
    """How that member may be spelled."""
    telling_members: tuple[str, ...]
    """Top-level members of a request that few other formats have: the format with most of its own is the likeliest."""
    telling_words: tuple[bytes, ...]
    """Words in its list that no other format has."""
    telling_element: str | None
    """A member of the list's elements that few other formats have."""

    client_path: FindsPath
    upstream_path: Callable[[str, str, bool], str]
    """Where a request goes, of a base, a model and whether it streams."""
    published: PublishedMethods | None
    """Its methods on Vertex."""
    count_path: Callable[[str, str], str] | None
    """Where tokens are counted."""
    count_body: CountBody | None
    """What of a request is sent there."""
    count_member: str
    """Where their number stands in the answer."""
    count_beside: Mapping[str, str]
    """What else stands there."""
    count_inside: str
    """The member that a request to be counted may stand in; empty where it is the body."""
    version: str
    headers: tuple[tuple[bytes, bytes], ...]
    """Headers that every request must have."""
    models: ModelList
    errors: ErrorCodec

    in_lists: Callable[[bytes], bytes] | None
    """A request with lists wherever its API also takes a single object; None where it takes none."""
    options: OptionModule
    has_openai_tools: bool
    """Tools of free text, strict tools, a choice among some, and a word for several calls at once."""
    built_in_tools: frozenset[str]
    tool_shapes: Literal["functions", "typed", "namespaces"]
    """How tools that a server may lack stand in a request: not at all, by type, or in namespaces too."""

    unasked: Callable[[bytes], list[MemberEdit]]
    """What to change in a request so that nothing asks the model to think."""
    switches: tuple[str, ...]
    """Members that switch thinking, the first that says anything counts."""
    thinking: SettingPlace
    """How what switches thinking is written."""
    thinking_modes: ThinkingModes | None
    """Words that say how to think, where some models refuse some of them."""
    inclusion: Inclusion | None
    """How encrypted reasoning is asked for; None where it comes by itself, or never."""
    call_ids: IdRule
    upstream_call_ids: IdRule
    """What a server nobody knows takes."""
    has_turns_of_blocks: bool
    """Results and words of a user share a turn, neighbours are one, and no system message stands between them."""
    has_object_arguments: bool
    """Arguments of a call are an object, not text."""
    encode_words: Callable[[str], Text]
    texts: Texts
    """Where visible text stands in its answers."""
    notes: NotePlace
    usual_sampling: tuple[tuple[str, float], ...] = (("temperature", 1), ("top_p", 1))
    """What its own models do unasked: clients that say so want nothing in particular."""
    effort: tuple[str, ...] = ()
    """The members that lead to a request's effort, one in the other; empty where it has no such word."""
    cache_marks: CacheMarks | None
    """How a request marks what to cache; None where providers cache by themselves."""
    response_prefix: str
    envelope_slot: Literal["block", "element", "call", "none"]
    """Where there is room for a sealed token: on a block or an element of reasoning, on a call, nowhere."""
    held: HeldConversation | None
    quirks: frozenset[Quirk]

    @property
    def list_place(self) -> str:
        """A JSON pointer to the list."""
        return f"/{self.inside}/{self.list_member}" if self.inside else f"/{self.list_member}"
