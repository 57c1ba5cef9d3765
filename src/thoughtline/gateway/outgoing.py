"""A request for one target: a frozen value that each stage of `request_stages.py` takes and gives back.

ClientRequest   what the stages see of the request as it came
AskedTarget             whom it asks, with which key, and what settings say of that: fixed before the first stage
Outgoing        both, and what the stages have made of the request so far
Observed        what would have been done to a request that goes up as it came
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Raw, Struct

from thoughtline.continuity.tags import TagMode
from thoughtline.continuity.terms import Terms
from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.destinations.credentials import account_of
from thoughtline.engine.request import MemberEdits, Prepared
from thoughtline.formats import FORMATS, USUAL
from thoughtline.gateway.choosing import Target
from thoughtline.gateway.modes import HEADER as MODE_HEADER
from thoughtline.gateway.modes import mode_of
from thoughtline.gateway.plain_content import HEADER as CONTENT_HEADER
from thoughtline.gateway.plain_content import is_plain
from thoughtline.gateway.routing import Route
from thoughtline.gateway.translating import ClientFormat
from thoughtline.replay.findings import Finding
from thoughtline.replay.remembering import Cut
from thoughtline.translation.tools import NO_NAMES, ToolNames
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.outcome import NoteChain

if TYPE_CHECKING:
    from thoughtline.gateway.incoming import Incoming


class ClientRequest(Struct, frozen=True, gc=False):
    """A request as it came. `short` is its body without what `cuts` remember of its conversation. `raw_path` is the
    path as it was written."""

    body: bytes
    short: bytes
    cuts: tuple[Cut, ...]
    identity: Identity
    model: str
    headers: dict[bytes, bytes]
    route: Route
    query: str
    raw_path: bytes = b""


class AskedTarget(Struct, frozen=True, gc=False):
    """The target of a request. `key` is one of ours; `credential` is the caller's own, if this target may see it.

    `may_use_callers_key`: the caller's credential is no key of ours and no other provider's. `is_signed`: the caller's
    signature is sent, and so are the bytes that it covers. `is_plain`: a chat client expects `content` to be text.
    `replay`: whether reasoning is restored.
    """

    target: Target
    destination: Destination
    key: str
    credential: str
    may_use_callers_key: bool
    is_translated: bool
    is_signed: bool
    is_plain: bool
    replay: ReplayMode

    @property
    def shown_key(self) -> str:
        """The key that the target sees: one of ours, or the caller's own."""
        return self.key or self.credential


class Observed(Struct, frozen=True, gc=False):
    """What would have been done to a request, in words and turn by turn."""

    would: str
    notes: NoteChain | None


class Outgoing(Struct, frozen=True, gc=False):
    """A request for one target, as far as the stages have come.

    `body` is the client's, with what stages changed; `cuts` are where it begins as recent requests did, None if that
    is not known. `prepared` has what is sent. `findings` are what stages report.
    `continuity`: on which terms other models' reasoning is quoted. `conversation`: a request of Responses with its
    whole conversation, for its answer to be stored with.
    `makes_compaction`: its answer becomes one compaction of ours, with the `kept_user_messages` if there are any.
    `renamed_tools`: the client's names of tools that its own format has other names for here.
    `is_rewritten`: its answer is written by us. `body_to_count`: its tokens are asked for, in a format that its
    provider does not count in. `estimated_tokens`: what its provider's count is compared with.
    """

    came: ClientRequest
    ask: AskedTarget
    client: ClientFormat
    body: bytes
    cuts: Sequence[Cut] | None
    is_generating: bool
    is_streaming: bool
    findings: tuple[Finding, ...] = ()
    continuity: Terms | None = None
    conversation: bytes = b""
    makes_compaction: bool = False
    kept_user_messages: tuple[Raw, ...] | None = None
    renamed_tools: ToolNames = NO_NAMES
    is_rewritten: bool = False
    body_to_count: bytes | None = None
    tags: TagMode = "off"
    prepared: Prepared | None = None
    observed: Observed | None = None
    estimated_tokens: int = 0

    @property
    def member_edits(self) -> MemberEdits:
        """The members that a body needs that was made for another address than this one with a project and a
        location."""
        published = FORMATS[self.ask.target.format].published
        is_at_home = self.came.route.place and not self.ask.is_translated
        return published.members(names_model=self.is_generating) if published is not None and not is_at_home else ()

    @property
    def asks_template(self) -> bool:
        """Whether the server can be asked which reasoning its chat template reads."""
        return bool(self.ask.target.provider.template_at) and self.ask.replay == "on" and self.is_generating


NOTHING = ClientRequest(
    b"", b"", (), Identity(""), model="", headers={}, route=Route("passthrough", None, None, ""), query=""
)
"""Replaces a request that was released from memory."""


def ask_of(incoming: Incoming, target: Target, key: str) -> AskedTarget:
    """Return the target of a request with its key. Raises if its headers ask for an unknown mode."""
    route, provider, caller, state = incoming.route, target.provider, incoming.caller, incoming.state
    is_translated = target.format != route.format
    signs = caller.is_signed and not key
    is_elsewhere = signs and is_translated and route.format is not None
    may_use_callers_key = target.is_callers and caller.key is None and not is_elsewhere
    credential = caller.credential if may_use_callers_key else ""
    accounts, shown = state.caches.accounts, key or credential
    account = accounts.get(shown) or accounts.keep(shown, account_of(shown), len(shown))
    endpoint = provider.bases.get(target.format, provider.base_url)
    of_header, of_key = incoming.headers.get(CONTENT_HEADER, b""), caller.key.content if caller.key else None
    has_plain = False
    if route.format is not None and "content_in_parts" in FORMATS[route.format].quirks:
        of_all = (provider.content, state.settings.content)
        has_plain = is_plain(of_header, of_key, *of_all) if of_header or of_key else target.is_plain
    of_request, of_caller = incoming.headers.get(MODE_HEADER, b""), caller.key.replay if caller.key else None
    return AskedTarget(
        target,
        Destination(provider.name, endpoint, target.model, target.format, account),
        key,
        credential,
        may_use_callers_key,
        is_translated=is_translated,
        is_signed=signs and may_use_callers_key,
        is_plain=has_plain,
        replay=mode_of(of_request, of_caller, target.replay) if of_request or of_caller else target.replay,
    )


def outgoing(incoming: Incoming, target: Target, key: str) -> Outgoing:
    """A request for a target, before the first stage."""
    route, query = incoming.route, incoming.query
    wire = FORMATS[route.format] if route.format is not None else USUAL
    came = ClientRequest(
        incoming.body,
        incoming.short,
        incoming.cuts,
        incoming.identity,
        model=incoming.model,
        headers=incoming.headers,
        route=route,
        query=query,
        raw_path=incoming.scope.get("raw_path", b""),
    )
    return Outgoing(
        came,
        ask_of(incoming, target, key),
        ClientFormat(wire.name, route.is_streaming, wire.stream_query not in query),
        came.body,
        cuts=came.cuts,
        is_generating=route.action == "generate",
        is_streaming=route.is_streaming,
    )
