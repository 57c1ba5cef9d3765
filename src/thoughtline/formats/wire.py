"""The differences between wire formats, as one value of each: `Wire`.

Every fact is a required argument: a new format that leaves one out does not type-check. Code that depends on a format
asks its `Wire`; it never compares names.
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
    """Decodes bytes, split anywhere, to events."""

    def feed(self, data: bytes) -> list[Event]: ...

    def finish(self) -> list[Event]: ...


class EncodesStream(Protocol):
    """Encodes events to bytes."""

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
    """A module that decodes and encodes requests and responses."""

    def decode_request(self, body: bytes, dialect: Dialect, /) -> Transcript: ...

    def encode_request(self, transcript: Transcript, dialect: Dialect, /) -> bytes: ...

    def decode_response(self, body: bytes, dialect: Dialect, /) -> Reply: ...

    def encode_response(self, reply: Reply, dialect: Dialect, /) -> bytes: ...


def body_codec(module: BodyModule) -> BodyCodec:
    """The codec of a module; it also accepts requests with lone surrogates."""
    return BodyCodec(
        reading(module.decode_request),
        module.encode_request,
        module.decode_response,
        module.encode_response,
    )


class OptionModule(Protocol):
    """A module that converts a format's options, media and tool results to shared values and back."""

    def decode_options(self, body: bytes, /) -> ReadOptions: ...

    def encode_options(self, options: Options, dialect: Dialect, /) -> WrittenOptions: ...

    def decode_media(self, item: Unknown, /) -> Media | str | None: ...

    def encode_media(self, media: Media, /) -> Unknown | None: ...

    def decode_result(self, item: ToolResult, /) -> ResultContent: ...

    def encode_result(self, content: ResultContent, id: str | None, tool: str | None, /) -> WrittenResult: ...


class IdRule(NamedTuple):
    """Which ids of calls a format accepts. `is_unique`: an id that occurs twice in a conversation is rejected.

    `chars`: the number of letters and digits of an id, if it is fixed; generated ids then depend on `salt`.
    """

    pattern: re.Pattern[str]
    is_required: bool = True
    is_unique: bool = False
    chars: int = 0
    salt: str = ""


class MessagePlace(NamedTuple):
    """The model's message: the `path` to it in a response, and in a request its `role` and the member with its
    `content`.

    No `content`: the message is a list of elements.
    """

    path: tuple[str | int, ...]
    role: str
    content: str


class NotePlace(NamedTuple):
    """Where a format has notes on an answer. `decode` and `encode` are for those on a text item, and `mark` finds texts
    that have some; the others belong to the whole answer and are handled by its codec.

    `places` says whether a citation must have a range, may have one, or refers to the whole item. `wants` finds a
    document of a request that asks for citations, `in_history` the places of notes in a history that no item has.
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
    """A member that names a conversation stored at the provider. `kept_as` is a provider's name for such storage;
    `is_usual`: unknown servers are assumed to have it. `code` and `remedy` are for one that is not stored. `goes_on`:
    whether the member's value names an existing conversation.
    """

    member: str
    kept_as: Literal["threads", "conversations", "interactions"]
    is_usual: bool
    title: str
    code: str
    remedy: str
    goes_on: Callable[[Raw], bool] = is_given


class Inclusion(NamedTuple):
    """A member that asks for additional output, and its value for encrypted reasoning."""

    member: str
    seals: str


class ErrorCodec(NamedTuple):
    """Decodes and encodes errors, the provider's and ours. `object` is the error itself, as an event has it.

    `failures` are words in its errors, in lower case, that blame the server instead of the request.
    """

    read: Callable[[int, bytes], ErrorReply]
    object: Callable[[ErrorReply], object]
    write: Callable[[ErrorReply], bytes]
    failures: Mapping[str, FailureKind]


class ModelList(NamedTuple):
    """The list of models that clients of a format read. `query` asks for a page large enough for all; `path` and
    `header` identify such a client: the beginning of its path, a header that only it sends.
    """

    encode: Callable[[tuple[str, ...]], bytes]
    query: str
    path: str
    header: bytes


Quirk = Literal[
    "answers_in_pieces",  # clients keep each chunk of a stream as a message of its own
    "any_path_is_a_version",  # of a base: it stands in place of `/v1`
    "attribution",  # its main client begins the system prompt with a line about itself
    "bearer_key",  # its servers accept a key as a bearer token, whatever their other APIs require
    "chat_templates",  # servers of open models write its messages by a template, which may leave reasoning out
    "choices",  # a response may have several answers
    "claude_finishes",  # Anthropic's finish reasons: formats that share them pass them on
    "content_in_parts",  # some servers write visible text as parts, where clients expect a string
    "dialects",  # servers differ in where they keep reasoning
    "goes_on_after_finish",  # a turn may continue after a finish reason (Gemini's code execution)
    "items_are_elements",  # each item of a turn is an element of the list, has an id, and pairs with others by it
    "key_in_query",  # servers read a key there
    "max_tokens_needed",  # a request must have a limit
    "models_elsewhere",  # the list of models is at another host
    "no_failed_finish",  # no finish reason for a failed answer
    "no_off_switch",  # a model stops thinking when no member asks for it
    "not_last",  # no turn may end in reasoning
    "one_text",  # a message has one field for all its text and one for all its reasoning
    "seals_on_items",  # signatures stand on calls and text
    "shared_address",  # other formats share the URL: its own bodies have one of its distinctive members
    "signed_requests",  # for a host: unknown servers are assumed not to speak it
    "single_prompt",  # a body with `prompt` is one, and has its system prompt in another member
    "stored_responses",  # an answer has an id that the next request may refer to
    "streamed_by_address",  # the URL says whether to stream, not the body
    "streams_only",  # every answer is a stream, whatever a request says
    "thinks_unasked",  # its own models think by default
    "thoughts_in_pieces",  # clients may send the text of a thought in pieces or not at all: its signatures count
    "tools_needed",  # calls in the history require tools, and no option forbids calls
    "tools_unmixed",  # tools that the provider runs can't be mixed with functions
    "unsigned_refused",  # where signatures are checked, thinking without one is refused
    "untranslated",  # forwarded in its own format only
    "usage_last",  # after everything else, and only on request
    "usual_tier",  # has a value for the default service tier
    "websocket",  # also spoken over a WebSocket: each message is the body of a request
]
"""What some formats do and most don't."""


class Wire(Struct, frozen=True, kw_only=True):
    """A format that clients and providers speak. `dialect` is that of unknown servers."""

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
    """The member of a body that contains the request itself; empty if that is the body."""
    list_member: str
    item_member: str
    """The member of a message that contains its items; empty if they have no positions of their own."""
    message: MessagePlace
    system: Literal["messages", "blocks", "text"]
    """The system prompt: messages at the head of the list, or a separate member with blocks or a text."""
    system_members: tuple[str, ...]
    """The spellings of that member."""
    telling_members: tuple[str, ...]
    """Top-level members of a request that few other formats have: the format with most of its own is the likeliest."""
    telling_words: tuple[bytes, ...]
    """Words in its list that no other format has."""
    telling_element: str | None
    """A member of the list's elements that few other formats have."""

    client_path: FindsPath
    upstream_path: Callable[[str, str, bool], str]
    """The path of a request, from a base, a model and whether it streams."""
    published: PublishedMethods | None
    """Its methods on Vertex."""
    count_path: Callable[[str, str], str] | None
    """The path for counting tokens."""
    count_body: CountBody | None
    """The body for counting tokens."""
    count_member: str
    """The member with their number in the answer."""
    count_beside: Mapping[str, str]
    """Other members of that answer."""
    count_inside: str
    """The member of a counting request that may contain the request; empty if it is the body."""
    version: str
    headers: tuple[tuple[bytes, bytes], ...]
    """Headers that every request must have."""
    models: ModelList
    errors: ErrorCodec

    in_lists: Callable[[bytes], bytes] | None
    """A request with lists wherever the API also accepts a single object; None if it accepts none."""
    options: OptionModule
    has_openai_tools: bool
    """Free-text tools, strict tools, a choice among some, and an option for parallel calls."""
    built_in_tools: frozenset[str]
    tool_shapes: Literal["functions", "typed", "namespaces"]
    """Forms of tools that a server may lack: none, by type, or in namespaces too."""

    unasked: Callable[[bytes], list[MemberEdit]]
    """Edits after which a request no longer asks the model to think."""
    switches: tuple[str, ...]
    """Members that switch thinking; the first one set counts."""
    thinking: SettingPlace
    """How the switch of thinking is written."""
    thinking_modes: ThinkingModes | None
    """Values that select how to think, if some models reject some of them."""
    inclusion: Inclusion | None
    """How to ask for encrypted reasoning; None if it always comes, or never."""
    call_ids: IdRule
    upstream_call_ids: IdRule
    """The ids that unknown servers accept."""
    has_turns_of_blocks: bool
    """Results and text of a user share a turn, neighbours are joined, and no system message comes between them."""
    has_object_arguments: bool
    """Arguments of a call are an object, not text."""
    encode_words: Callable[[str], Text]
    texts: Texts
    """The positions of visible text in its answers."""
    notes: NotePlace
    usual_sampling: tuple[tuple[str, float], ...] = (("temperature", 1), ("top_p", 1))
    """The defaults of its own models: clients that set them have no preference."""
    effort: tuple[str, ...] = ()
    """The path of members to a request's effort; empty if there is no such member."""
    cache_marks: CacheMarks | None
    """How a request marks what to cache; None if providers cache by themselves."""
    response_prefix: str
    envelope_slot: Literal["block", "element", "call", "none"]
    """The place for a sealed token: a block or an element of reasoning, a call, or none."""
    held: HeldConversation | None
    quirks: frozenset[Quirk]

    @property
    def list_place(self) -> str:
        """A JSON pointer to the list."""
        return f"/{self.inside}/{self.list_member}" if self.inside else f"/{self.list_member}"
