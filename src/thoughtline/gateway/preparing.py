"""What a request becomes for one target: restored in its own format, or translated; and on which terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.catalogue import PROVIDERS
from thoughtline.continuity.terms import HEADER, tag_mode_for
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, is_given, members
from thoughtline.formats.weighing import check_weight, decode_bounded
from thoughtline.formats.wire import HeldConversation
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.choosing import terms_of
from thoughtline.gateway.estimating import counted_request, estimate_tokens
from thoughtline.gateway.stored_responses import unfolded
from thoughtline.prepared import NOTHING_CARRIED, Carried, MemberEdits, Prepared, as_signed, with_finding
from thoughtline.providers import Dialect
from thoughtline.replay.findings import Finding
from thoughtline.replay.remembering import Cut
from thoughtline.replayer import Recalls
from thoughtline.translation import translate_request
from thoughtline.translation.compactions import may_compact, read_compactions
from thoughtline.translation.own_format import Adapted, adapt
from thoughtline.translation.tools import NO_NAMES
from thoughtline.values.errors import Declined, ThoughtlineError
from thoughtline.values.options import ALL_TOOLS, FUNCTIONS_ONLY
from thoughtline.values.turns import Transcript


async def prepare(attempt: Attempt) -> None:
    """What to send to a target. Raises where the request can't be carried into the provider's format.

    held state, continuity, stored responses, then translated or restored, and tags: each only where it applies.
    """
    client, target, incoming = FORMATS[attempt.client.format], attempt.target, attempt.incoming
    if attempt.is_generating:
        if client.held is not None and f'"{client.held.member}"'.encode() in incoming.short:
            attempt.found = _held(attempt, client.held)
        header = incoming.headers.get(HEADER)
        if header or target.terms is not None:
            attempt.terms = terms_of(target, attempt.state.settings, header) if header else target.terms
    is_stored = attempt.is_translated and "stored_responses" in client.quirks
    if is_stored:
        await _with_stored(attempt)
    if client.tool_shapes == "namespaces":
        new = attempt.body if attempt.is_translated else incoming.short  # what is remembered has none to change
        if incoming.route.action == "compact" or may_compact(new):
            await _compacted(attempt)
    if not attempt.is_translated:
        await _restored(attempt)
    else:
        await (_translated(attempt) if attempt.is_generating else _estimated(attempt))
    ratios = attempt.state.caches.ratios
    if ratios.targets and attempt.is_generating and attempt.prepared is not None and ratios.wants(target.health_name):
        body = attempt.prepared.body
        attempt.guess = await attempt.state.replayer.work_for(body)(partial(estimate_tokens, body))
    is_continued = attempt.terms is not None
    if attempt.prepared is not None and (is_continued or target.tags is not None):
        attempt.tags = tag_mode_for(target.tags, is_continued, attempt.prepared.contract.dialect)


async def _with_stored(attempt: Attempt) -> None:
    """A translated request of Responses has its whole conversation in `input`."""
    body, state = attempt.body, attempt.state
    work = state.replayer.work_for(body)
    await work(partial(check_weight, body))
    attempt.body = attempt.conversation = await unfolded(state.store, attempt.incoming.caller.tenant, body, work)


async def _compacted(attempt: Attempt) -> None:
    """Without compactions that the server can't read; one that it can't make is asked for in words."""
    tools = attempt.state.replayer.contract_for(attempt.destination).tools
    takes = FUNCTIONS_ONLY if attempt.is_translated else tools
    if attempt.state.settings.translation.missing_tools == "pass_on" and not attempt.is_translated:
        takes = ALL_TOOLS
    is_ordered = attempt.incoming.route.action == "compact" and not takes.takes("compaction")
    work = attempt.state.replayer.work_for(attempt.body)
    read = await work(partial(read_compactions, attempt.body, attempt.sealer, takes, is_ordered=is_ordered))
    if is_ordered:
        attempt.retained = read.users
    attempt.body = read.body
    if read.is_ordered:
        attempt.compacts = attempt.is_generating = True
    if read.findings:
        attempt.found = (*attempt.found, *read.findings)


async def _estimated(attempt: Attempt) -> None:
    """Tokens that nobody counts in this format: of what would be sent; where that can't be made, of what came."""
    attempt.body = counted_request(attempt.body, FORMATS[attempt.client.format])
    try:
        await _translated(attempt)
    except ThoughtlineError:
        attempt.prepared = None
    attempt.uncounted = attempt.prepared.body if attempt.prepared is not None else attempt.body


async def _translated(attempt: Attempt) -> None:
    """In the provider's format, and restored there."""
    replayer, client, destination = attempt.state.replayer, attempt.client, attempt.destination
    identity, contract = attempt.incoming.identity, replayer.contract_for(destination)
    work, own = replayer.work_for(attempt.body), FORMATS[client.format]
    transcript = await work(partial(decode_bounded, attempt.body, own.name, own.dialect))
    streams = client.is_streaming or transcript.is_streaming
    request = await work(
        partial(
            translate_request,
            transcript,
            destination.format,
            contract,
            model=destination.model,
            identity=identity,
            sealer=attempt.sealer,
            is_streaming=streams or attempt.target.provider.streams_only,
            missing_tools=attempt.state.settings.translation.missing_tools,
        )
    )
    carried = Carried(request.records, (*attempt.found, *request.findings), request.call_ids)
    recall = _recall(attempt) if attempt.terms is not None else None
    final = request.transcript
    if attempt.target.provider.is_located:
        final = _with_members(final, attempt.member_edits, contract.dialect)
    prepared = await replayer.prepare_translated(
        final, destination, identity, contract=contract, carried=carried, recall=recall
    )
    attempt.send_instead(prepared)
    attempt.client = replace(
        client,
        is_streaming=streams,
        wants_usage=request.options.wants_usage,
        call_ids=request.call_ids,
        tools=request.tools,
    )
    attempt.is_streaming, attempt.is_rewritten = streams, True


def _with_members(transcript: Transcript, edits: MemberEdits, dialect: Dialect) -> Transcript:
    """A request that we wrote, with these members in its body."""
    if not edits:
        return transcript
    for name, value in edits:
        transcript = transcript.with_member(name, value)
    bodies = FORMATS[transcript.format].bodies
    written = bodies.decode_request(bodies.encode_request(transcript, dialect), dialect)
    return replace(written, model=transcript.model, is_streaming=transcript.is_streaming)


def _recall(attempt: Attempt) -> Recalls:
    """How to fetch what other models thought, which is to be quoted."""
    assert attempt.terms is not None
    return partial(attempt.state.memory.recall, target=attempt.destination, terms=attempt.terms)


async def _restored(attempt: Attempt) -> None:
    """In its own format."""
    incoming, state = attempt.incoming, attempt.state
    streams_only, destination = attempt.target.provider.streams_only, attempt.destination
    edits = attempt.member_edits if attempt.target.provider.is_located else ()
    if streams_only and "streamed_by_address" not in FORMATS[destination.format].quirks:
        edits = (("stream", b"true"), *edits)
    cuts: Sequence[Cut] | None = incoming.cuts
    adapted = Adapted(attempt.body)
    if not attempt.is_signed and FORMATS[attempt.client.format].tool_shapes != "functions":
        cuts, adapted = _adapted(attempt)
    findings = (*attempt.found, *adapted.findings)
    if adapted.names is not NO_NAMES:
        attempt.names = adapted.names
        attempt.client = replace(attempt.client, tools=adapted.names)
    prepared = await state.replayer.prepare(
        adapted.body,
        destination,
        incoming.identity,
        model=attempt.target.model if not incoming.route.model else "",
        edits=edits,
        recall=_recall(attempt) if attempt.terms is not None else None,
        carried=Carried(findings=findings) if findings else NOTHING_CARRIED,
        cuts=cuts,
    )
    attempt.send_instead(_as_signed(attempt, prepared) if attempt.is_signed else prepared)
    if prepared.transcript is not None:
        attempt.is_streaming = attempt.is_streaming or prepared.transcript.is_streaming
        if attempt.compacts:
            attempt.client = replace(attempt.client, is_streaming=attempt.is_streaming)
        if attempt.compacts or (streams_only and not attempt.is_streaming):
            attempt.is_rewritten = True


def _as_signed(attempt: Attempt, prepared: Prepared) -> Prepared:
    """As its client signed it; a signature for another host or path than it goes to is one that AWS refuses."""
    url, incoming = urlsplit(attempt.url), attempt.incoming
    came = incoming.headers.get(b"host", b"").decode("latin-1"), incoming.scope["raw_path"].decode("latin-1")
    prepared = as_signed(prepared, incoming.body)
    if came == (url.netloc, url.path):
        return prepared
    why = "signed for another address than it goes to, which AWS refuses"
    return with_finding(prepared, Finding("signed-elsewhere", url.netloc, why, 'set auth = "aws", and sign it here'))


def _adapted(attempt: Attempt) -> tuple[Sequence[Cut] | None, Adapted]:
    """The body as the server takes it. If it takes what is new of a conversation as it came, then all of it."""
    incoming, state, destination = attempt.incoming, attempt.state, attempt.destination
    cuts = incoming.cuts if attempt.body is incoming.body else ()
    cut = state.replayer.cut_for(cuts, destination, incoming.identity) if cuts else None
    contract, missing = state.replayer.contract_for(destination), state.settings.translation.missing_tools
    change = partial(adapt, format=attempt.client.format, contract=contract, missing=missing)
    if cut is not None and change(cut.short) == Adapted(cut.short):
        return [cut], Adapted(attempt.body)
    return None, change(attempt.body)


# --- conversations that a client leaves at its provider ---------------------------------------------------------------
#
#   Messages       "thread": {"type": "create"}, then {"type": "continue", "previous_message_id": …} with what is new
#   Responses      "conversation": "conv_…"
#   Interactions   "previous_interaction_id": "v1_…"
#
# A provider that ignores one would answer from the end of a conversation alone, with a 200. `thread` is refused as
# Anthropic refuses one that it can't keep: its SDK's tool runner and Claude Code then send the whole conversation.


def _held(attempt: Attempt, held: HeldConversation) -> tuple[Finding, ...]:
    """Raises if a request counts on messages that its provider does not have; tells of one that it has."""
    named, provider = _named(attempt.incoming.short, held.member), attempt.target.provider
    if not is_given(named):
        return ()
    is_kept = held.kept_as in provider.keeps or (held.is_usual and provider.name not in PROVIDERS)
    if attempt.is_translated or not is_kept:
        raise Declined(400, held.code, f"{provider.name} keeps no {held.title}.", held.remedy)
    if not held.goes_on(named):
        return ()
    return (Finding("held-state", f"/{held.member}", f"earlier turns are at the provider, in its {held.title}", ""),)


def _named(body: bytes, member: str) -> Raw:
    try:
        return members(body).get(member, NULL)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NULL  # whoever reads the whole body says what is wrong
