"""What continuity would quote of a session, if a model took over now: for people who decide whether to switch it on.

It goes by the stored turns. In a real request only turns that its history still has, or that were quoted before, count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from thoughtline.continuity.checkpoints import MAX_CHECKPOINTS, checkpoint_of, quoted
from thoughtline.destinations.catalogue import ContinuityMode
from thoughtline.gateway.admin.answers import AdminAnswer, moment
from thoughtline.gateway.admin.cache import entries_page
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.admin.sessions import find_tenant, unknown_session
from thoughtline.gateway.state import State
from thoughtline.providers import canonical_name
from thoughtline.stores import Filter
from thoughtline.stores.base import MAX_PAGE
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined
from thoughtline.values.items import ReasoningText
from thoughtline.values.records import Record

CHARS_PER_TOKEN = 4
"""About, in English."""

WhyNot = Literal[
    "own",  # the target made it, and gets it natively
    "native",  # the target accepts it natively
    "older",  # there are newer ones, as many as are quoted
    "too_long",  # longer than `max_chars`
    "unreadable",  # encrypted, or no reasoning
]


class PreviewQuery(Struct, frozen=True, rename="camel"):
    """Which session, and for which model, as `provider/model`. Without `count` (or with 0) and `mode`, those in force;
    `count` is brought into 1 to 100."""

    session: str
    target: str
    tenant: str | None = None
    count: int = 0
    mode: ContinuityMode | None = None


class PreviewCheckpoint(AdminAnswer, frozen=True):
    """Reasoning that would be quoted. `record` is the turn's id in `/api/sessions/{id}`."""

    record: str
    model: str
    created_at: datetime
    chars: int
    text: str


class PreviewLeftOut(AdminAnswer, frozen=True):
    """A turn that would not be quoted, and why: the target made it (`own`) or accepts it natively (`native`), newer
    ones are quoted (`older`), it is longer than `maxChars` (`too_long`), or can't be read (`unreadable`).
    """

    record: str
    model: str
    why: WhyNot


class ContinuityPreview(AdminAnswer, frozen=True):
    """What a model would be told of a session, oldest first. `text` is what goes into its system prompt; empty if
    nothing is quoted. `addedTokens` is estimated from the characters. `isEnabled`: whether continuity is on.
    """

    session: str
    tenant: str
    target: str
    is_enabled: bool
    mode: ContinuityMode
    count: int
    quotes: list[PreviewCheckpoint]
    left_out: list[PreviewLeftOut]
    text: str
    added_chars: int
    added_tokens: int


async def preview(request: AdminRequest) -> Whole:
    """Raises if there is no such session or provider."""
    state, query = request.state, decode_query(request.query, PreviewQuery)
    if "\0" in query.session:
        raise unknown_session(query.session)
    terms = state.settings.continuity
    count, mode = min(max(query.count or terms.count, 1), MAX_CHECKPOINTS), query.mode or terms.mode
    target = _target(state, query.target)
    tenant = await find_tenant(state, query.session) if query.tenant is None else query.tenant
    page = await entries_page(state, Filter(tenant=tenant, session=query.session), MAX_PAGE, None)
    if not page.entries:
        raise unknown_session(query.session)
    records = [entry.record for entry in page.entries[::-1]]
    takes = state.replayer.contract_for(target).takes
    found = [
        (record, _why_not(record, target, takes if mode == "handoff" else "", terms.max_chars)) for record in records
    ]
    fitting = [record for record, why in found if why is None]
    chosen = {record.id for record in fitting[-count:]}
    left_out = [
        PreviewLeftOut(record.id, _maker(record), why or "older") for record, why in found if record.id not in chosen
    ]
    checkpoints = [one for record in fitting[-count:] if (one := checkpoint_of(record)) is not None]
    text = quoted(checkpoints) if checkpoints else ""
    return Whole(
        ContinuityPreview(
            query.session,
            tenant,
            f"{target.provider}/{target.model}",
            is_enabled=terms.enabled,
            mode=mode,
            count=count,
            quotes=[
                PreviewCheckpoint(record.id, _maker(record), moment(record.created_at), len(one.text), one.text)
                for record, one in zip(fitting[-count:], checkpoints, strict=True)
            ],
            left_out=left_out,
            text=text,
            added_chars=len(text),
            added_tokens=len(text) // CHARS_PER_TOKEN,
        )
    )


def _why_not(record: Record, target: Destination, takes: str, max_chars: int) -> WhyNot | None:
    """Return why a turn is not quoted; with `takes`, what the target gets natively is not."""
    checkpoint, made = checkpoint_of(record), record.provenance
    if checkpoint is None:
        return "unreadable"
    if takes and made.provider == target.provider and target.model in (made.model_asked, made.model_answered):
        return "own"
    if takes == "text" and any(isinstance(item, ReasoningText) for item in record.items):
        return "native"
    return "too_long" if len(checkpoint.text) > max_chars else None


def _target(state: State, name: str) -> Destination:
    prefix, _, model = name.partition("/")
    provider = state.settings.providers.get(canonical_name(prefix))
    if provider is None or not model:
        raise Declined(
            400,
            "unknown_target",
            f"There is no target {name[:80]!r}.",
            "Name it as provider/model, such as kimi/kimi-k3.",
        )
    wire = provider.formats[0]
    return Destination(provider.name, provider.bases.get(wire, provider.base_url), model, wire)


def _maker(record: Record) -> str:
    return f"{record.provenance.provider}/{record.model}"
