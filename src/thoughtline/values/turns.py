"""Conversations as values: a request is a `Transcript` of turns, a response is a `Reply` of candidates.

Both keep the bytes they were decoded from. An edit creates a new value that knows which turns differ, so that
encoding changes only the bytes of those turns.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Literal

from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.values.items import NO_RAW, Item, Role
from thoughtline.values.notes import NO_NOTES, Notes

FormatName = Literal[
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini_generate",
    "gemini_code_assist",
    "gemini_interactions",
    "ollama_chat",
    "bedrock_converse",
    "bedrock_invoke",
    "command_code_generate",
]
"""The names of the formats that clients and providers speak; each one's facts are in its `Wire`."""

ThinkingSwitch = Literal["unsaid", "on", "adaptive", "off"]
"""The setting of thinking in a request; `unsaid` leaves it to the model's default."""

NOWHERE = -2
"""A turn that was never on a wire."""

SYSTEM_MEMBER = -1
"""A turn in a member of its own outside the conversation, such as Anthropic's `system`."""


UNNAMED_SESSION = "~"
"""How a session's name begins if no client named it: it is for display, and finds nothing."""


class Turn(Struct, frozen=True, gc=False):
    """One step of a conversation.

    `at` is the index of its first element in the wire's list, `spans` the number of its elements there (more than one
    only in Responses, where each item of a model step is an element). `carriers` names the members that hold reasoning,
    in formats that have several for it; `carrier` the one to write it to, if that is not the dialect's. `original` are
    the items of an edited turn before the edit. `speaker` is the name that a message gives to who says it.
    """

    role: Role
    items: tuple[Item, ...]
    at: int = NOWHERE
    spans: int = 1
    is_edited: bool = False
    carriers: tuple[str, ...] = ()
    moves_reasoning: bool = False
    original: tuple[Item, ...] | None = None
    carrier: str = ""
    speaker: str = ""

    def with_items(self, items: tuple[Item, ...]) -> Turn:
        """This turn with other items: the one way to edit a turn."""
        original = self.original if self.is_edited else self.items
        moves = self.moves_reasoning
        return Turn(
            self.role,
            items,
            self.at,
            spans=self.spans,
            is_edited=True,
            carriers=self.carriers,
            moves_reasoning=moves,
            original=original,
            carrier=self.carrier,
            speaker=self.speaker,
        )

    def with_reasoning_moved(self) -> Turn:
        """This turn with its reasoning in the member that the dialect reads, wherever it was."""
        return replace(self, is_edited=True, moves_reasoning=True)


_is_edited = attrgetter("is_edited")


class Transcript(Struct, frozen=True, gc=False):
    """A request: the conversation so far, and the body it came in.

    `switches` are the members that switch thinking, in formats that have several, with the value of each; `thinking` is
    the value of the first one set. `is_stored` says whether the provider is to store the answer (Responses' `store`),
    `includes` what the request asks for besides the answer. `has_lone_surrogates`: they are spelled differently here,
    see `formats/lone_surrogates.py`. `around`: the bytes before and after it, if it came inside of another body. `user`
    is a digest of the end user that the request names (`formats/end_users.py`); empty if it names none.

    `references` are the members that refer to content outside the request that the model reads: a stored prompt, a
    cached one, the conversation stored at its provider.
    """

    format: FormatName
    turns: tuple[Turn, ...]
    body: bytes = b"{}"
    model: str = ""
    is_streaming: bool = False
    tools: tuple[Raw, ...] = ()
    thinking: ThinkingSwitch = "unsaid"
    switches: tuple[tuple[str, ThinkingSwitch], ...] = ()
    is_stored: bool | None = None
    includes: tuple[str, ...] = ()
    member_edits: tuple[tuple[str, bytes | None], ...] = ()
    is_reshaped: bool = False
    drops_system: bool = False
    has_lone_surrogates: bool = False
    around: tuple[bytes, bytes] | None = None
    user: str = ""
    references: tuple[Raw, ...] = ()

    @property
    def whole(self) -> bytes:
        """The body including the bytes around it."""
        head, tail = self.around or (b"", b"")
        return head + self.body + tail if head else self.body

    @property
    def is_edited(self) -> bool:
        return self.is_reshaped or bool(self.member_edits) or any(map(_is_edited, self.turns))

    def with_items(self, position: int, items: tuple[Item, ...]) -> Transcript:
        """The same request with the items of one turn replaced."""
        edited = self.turns[position].with_items(items)
        return replace(self, turns=(*self.turns[:position], edited, *self.turns[position + 1 :]))

    def with_turns(self, turns: tuple[Turn, ...]) -> Transcript:
        """The same request with turns added, removed or moved."""
        had, has = (any(turn.at == SYSTEM_MEMBER for turn in some) for some in (self.turns, turns))
        return replace(self, turns=turns, is_reshaped=True, drops_system=self.drops_system or (had and not has))

    def with_member(self, name: str, value: bytes | None) -> Transcript:
        """The same request with one top-level member set to this JSON, or removed (`None`)."""
        return replace(self, member_edits=(*self.member_edits, (name, value)))


FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]


class Finish(Struct, frozen=True, gc=False):
    """Why a turn ended: as a value that all formats share, and as the provider's own."""

    reason: FinishReason
    native: str


class Usage(Struct, frozen=True, gc=False):
    """Tokens of one exchange. `output` includes `reasoning`; `input` includes `cached`, read from the prompt cache, and
    `cache_written`, written to it. `raw` is the usage on the wire.

    `dropped` are the positions of reasoning that the provider reports as ignored.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cached: int = 0
    raw: Raw = NO_RAW
    dropped: tuple[str, ...] = ()
    cache_written: int = 0


class Candidate(Struct, frozen=True, gc=False):
    """One answer of a response; most have one, `n > 1` has several. `finish` is missing if the answer was cut off.

    `notes` are those on the whole answer, not on its text items.
    """

    turn: Turn
    index: int = 0
    finish: Finish | None = None
    notes: Notes = NO_NOTES


class Reply(Struct, frozen=True, gc=False):
    """A whole response. `error` is the body's error, if any; such a reply has no candidates.

    `created` is in seconds since the epoch; a decoded reply has it in its body.
    """

    format: FormatName
    candidates: tuple[Candidate, ...]
    body: bytes = b""
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    error: Raw | None = None
    created: int = 0

    @property
    def is_edited(self) -> bool:
        return any(candidate.turn.is_edited for candidate in self.candidates)

    def with_items(self, position: int, items: tuple[Item, ...]) -> Reply:
        """The same response with the items of one candidate replaced."""
        candidate = self.candidates[position]
        edited = replace(candidate, turn=candidate.turn.with_items(items))
        return replace(self, candidates=(*self.candidates[:position], edited, *self.candidates[position + 1 :]))


class Provenance(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a turn came from, and so who may get it back and where its seals may go.

    `carrier` is the place of its reasoning, in formats that have several.
    """

    tenant: str
    provider: str
    endpoint: str
    account: str
    model_asked: str
    model_answered: str
    format: FormatName
    dialect: str
    session: str | None = None
    agent: str | None = None
    carrier: str = ""

    @property
    def named_session(self) -> str | None:
        """The session as a client named it; None if we generated a name for display."""
        return None if self.session is None or self.session.startswith(UNNAMED_SESSION) else self.session
