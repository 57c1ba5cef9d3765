"""The stages of a request for one target. Each takes the request, and gives it back as the next one finds it.

    as_it_came         replay is off: only what the address demands is changed, and nothing is looked up
    server_state       a conversation that the client left at its provider
    continuity         on which terms other models' reasoning is quoted
    stored_responses   the conversation behind `previous_response_id`
    compaction         compactions that the server can't read, or can't make
    tools              tools that the server lacks, in the client's own format
    restore            reasoning put back, in the client's own format
    translate          in the provider's format, and restored there
    token_count        tokens that the provider counts in no format of the client's
    token_estimate     what the provider's own count is compared with
    tags               what becomes of thinking tags in the answer

`prepare` has the list with the conditions. Which endpoint of a provider is asked (`doors.py`) is settled before.
"""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.continuity.memory import Memory
from thoughtline.continuity.terms import HEADER, tag_mode_for
from thoughtline.destinations.addresses import passthrough_address
from thoughtline.engine.replayer import Recalls, Replayer
from thoughtline.engine.request import (
    NOTHING_CARRIED,
    Carried,
    MemberEdits,
    Original,
    Prepared,
    as_signed,
    edited,
    with_finding,
)
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight, decode_bounded
from thoughtline.gateway.choosing import terms_of
from thoughtline.gateway.estimating import TokenRatios, counted_request, estimate_tokens
from thoughtline.gateway.outgoing import Observed, Outgoing
from thoughtline.gateway.server_templates import Templates
from thoughtline.gateway.stored_responses import held_state, unfolded
from thoughtline.providers import Dialect
from thoughtline.replay.findings import Finding
from thoughtline.settings import Settings
from thoughtline.stores import Store
from thoughtline.translation import Sealer, TranslatedRequest, translate_request
from thoughtline.translation.compactions import may_compact, read_compactions
from thoughtline.translation.own_format import Adapted, adapt
from thoughtline.translation.passages import Direction, Written
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.options import ALL_TOOLS, FUNCTIONS_ONLY
from thoughtline.values.turns import Transcript


class Services(Struct, frozen=True, gc=False):
    """What the stages work with. `envelope_key` seals envelopes for clients of another format."""

    settings: Settings
    store: Store
    replayer: Replayer
    memory: Memory
    templates: Templates
    ratios: TokenRatios
    envelope_key: bytes = b""


async def prepare(request: Outgoing, use: Services) -> Outgoing:
    """Return the request to send to a target. Raises if the provider's format can't carry it."""
    ask, client, came = request.ask, FORMATS[request.client.format], request.came
    target = ask.target
    if ask.replay == "off" and not ask.is_translated:
        return await as_it_came(request, use)
    if request.is_generating and client.held is not None:
        request = server_state(request)
    if request.is_generating and ask.replay == "on" and (target.terms is not None or HEADER in came.headers):
        request = continuity(request, use)
    if ask.is_translated and "stored_responses" in client.quirks:
        request = await stored_responses(request, use)
    if client.tool_shapes == "namespaces":
        request = await compaction(request, use)
    if not ask.is_translated:
        if client.tool_shapes != "functions" and ask.replay == "on" and not ask.is_signed:
            request = tools(request, use)
        request = await restore(request, use)
    elif request.is_generating:
        request = await translate(request, use)
    else:
        request = await token_count(request, use)
    if use.ratios.targets and request.is_generating and use.ratios.wants(target.health_name):
        request = await token_estimate(request, use)
    if ask.replay == "on" and (request.continuity is not None or target.tags is not None):
        request = tags(request)
    return request


async def as_it_came(request: Outgoing, use: Services) -> Outgoing:
    """Send the request without looking anything up or capturing the answer."""
    original = _original(request)
    body = await _unchanged(request, original, use.replayer)
    return replace(request, prepared=_unplanned(use.replayer, original, body))


def server_state(request: Outgoing) -> Outgoing:
    """Raises if the request relies on messages that its provider does not have; reports that it has some."""
    held, came = FORMATS[request.client.format].held, request.came
    if held is None or f'"{held.member}"'.encode() not in came.short:
        return request
    ask = request.ask
    found = held_state(came.short, held, ask.target.provider, is_translated=ask.is_translated)
    return replace(request, findings=(*request.findings, *found)) if found else request


def continuity(request: Outgoing, use: Services) -> Outgoing:
    """Choose the terms: the request's own header decides, else the settings."""
    header, target = request.came.headers.get(HEADER), request.ask.target
    return replace(request, continuity=terms_of(target, use.settings, header) if header else target.terms)


async def stored_responses(request: Outgoing, use: Services) -> Outgoing:
    """Put the whole conversation of a translated Responses request into `input`."""
    work = use.replayer.work_for(request.body)
    await work(partial(check_weight, request.body))
    body = await unfolded(use.store, request.came.identity.tenant, request.body, work)
    return replace(request, body=body, conversation=body)


async def compaction(request: Outgoing, use: Services) -> Outgoing:
    """Remove compactions that the server can't read, and ask a server that can't compact for one in a prompt."""
    ask, is_asked_for = request.ask, request.came.route.action == "compact"
    new = request.body if ask.is_translated else request.came.short  # what is remembered has none to change
    if not is_asked_for and not may_compact(new):
        return request
    takes = FUNCTIONS_ONLY if ask.is_translated else use.replayer.contract_for(ask.destination).tools
    if use.settings.translation.missing_tools == "pass_on" and not ask.is_translated:
        takes = ALL_TOOLS
    is_ordered = is_asked_for and not takes.takes("compaction")
    work, sealer = use.replayer.work_for(request.body), Sealer(use.envelope_key, request.came.identity.tenant)
    read = await work(partial(read_compactions, request.body, sealer, takes, is_ordered=is_ordered))
    return replace(
        request,
        body=read.body,
        cuts=request.cuts if read.body is request.body else (),
        kept_user_messages=read.users if is_ordered else None,
        makes_compaction=read.is_ordered,
        is_generating=request.is_generating or read.is_ordered,
        findings=(*request.findings, *read.findings),
    )


def tools(request: Outgoing, use: Services) -> Outgoing:
    """Adapt tools to what the server accepts. If it accepts a conversation's new part unchanged, it accepts all of
    it."""
    ask, cuts = request.ask, request.cuts
    cut = use.replayer.cut_for(cuts, ask.destination, request.came.identity) if cuts else None
    contract, missing = use.replayer.contract_for(ask.destination), use.settings.translation.missing_tools
    change = partial(adapt, format=request.client.format, contract=contract, missing=missing)
    if cut is not None and change(cut.short) == Adapted(cut.short):
        return replace(request, cuts=[cut])
    adapted = change(request.body)
    return replace(
        request,
        body=adapted.body,
        cuts=None,
        client=replace(request.client, tools=adapted.names),
        renamed_tools=adapted.names,
        findings=(*request.findings, *adapted.findings),
    )


async def restore(request: Outgoing, use: Services) -> Outgoing:
    """Restore the model's reasoning, in the client's own format."""
    ask, original = request.ask, _original(request)
    plan = partial(
        use.replayer.prepare,
        request.body,
        ask.destination,
        request.came.identity,
        model=original.model,
        edits=original.edits,
        recall=_recall(request, use.memory) if request.continuity is not None else None,
        carried=Carried(findings=request.findings) if request.findings else NOTHING_CARRIED,
        cuts=request.cuts,
    )
    prepared = await plan()
    if prepared.counts.restored and request.asks_template:
        has_learned = await use.templates.learn(ask, use.replayer, use.settings.replay)
        prepared = await plan() if has_learned else prepared
    transcript, observed = prepared.transcript, None
    if ask.is_signed:
        prepared = _as_signed(request, prepared)
    elif ask.replay == "observe":
        prepared, observed = _observed(prepared, await _unchanged(request, original, use.replayer))
    if transcript is None:
        return replace(request, prepared=prepared, observed=observed)
    is_streaming = request.is_streaming or transcript.is_streaming
    is_whole = ask.target.streams_only and not is_streaming  # for the client, made of a stream
    client = request.client
    return replace(
        request,
        client=replace(client, is_streaming=is_streaming) if request.makes_compaction else client,
        is_streaming=is_streaming,
        is_rewritten=request.makes_compaction or is_whole,
        prepared=prepared,
        observed=observed,
    )


async def translate(request: Outgoing, use: Services) -> Outgoing:
    """Translate to the provider's format, and restore there."""
    ask, client, identity, replayer = request.ask, request.client, request.came.identity, use.replayer
    destination, contract, own = ask.destination, replayer.contract_for(ask.destination), FORMATS[client.format]
    work, body, terms = replayer.work_for(request.body), request.body, use.settings.translation
    if own.in_lists is not None:
        body = await work(partial(own.in_lists, body))
    asks_to_think = terms.think and ask.replay == "on"
    rules = (terms.missing_tools, terms.cache_marks, asks_to_think)
    direction = Direction(identity.tenant, own.name, destination.format, contract, model=destination.model, rules=rules)

    def translate_it(transcript: Transcript) -> TranslatedRequest:
        return translate_request(
            transcript,
            destination.format,
            contract,
            model=destination.model,
            identity=identity,
            sealer=Sealer(use.envelope_key, identity.tenant),
            is_streaming=client.is_streaming or transcript.is_streaming or ask.target.streams_only,
            missing_tools=terms.missing_tools,
            marks_prompts=terms.cache_marks,
            asks_to_think=asks_to_think,
        )

    translated = await replayer.translated(body, direction, translate_it)
    streams = client.is_streaming or translated.is_streaming
    findings = (*request.findings, *translated.findings)
    carried = Carried((), findings, translated.call_ids, opened=translated.records)
    written, observed = translated.written, None
    if ask.target.provider.is_located and request.member_edits:
        written = Written.of(_with_members(written.read(), request.member_edits, contract.dialect))
    if ask.replay == "off":
        final = written.read()
        sent = FORMATS[destination.format].bodies.encode_request(final, contract.dialect)
        prepared = _unplanned(replayer, _original(request, carried), sent, final)
    else:
        recall = _recall(request, use.memory)
        prepared = await replayer.prepare_translated(
            written, destination, identity, contract=contract, carried=carried, recall=recall
        )
        if ask.replay == "observe":
            sent = FORMATS[destination.format].bodies.encode_request(written.read(), contract.dialect)
            prepared, observed = _observed(prepared, sent)
        elif prepared.counts.restored and request.asks_template:
            await use.templates.learn(ask, replayer, use.settings.replay)  # for the requests that follow
    return replace(
        request,
        body=body,
        client=replace(
            client,
            is_streaming=streams,
            wants_usage=translated.short.options.wants_usage,
            call_ids=translated.call_ids,
            tools=translated.short.tools,
        ),
        is_streaming=streams,
        is_rewritten=True,
        prepared=prepared,
        observed=observed,
    )


async def token_count(request: Outgoing, use: Services) -> Outgoing:
    """Count the tokens of the request that would be sent; if it can't be made, of the client's."""
    body = counted_request(request.body, FORMATS[request.client.format])
    request = replace(request, body=body)
    try:
        request = await translate(request, use)
    except ThoughtlineError:
        return replace(request, body_to_count=body)
    return replace(request, body_to_count=request.prepared.body if request.prepared is not None else body)


async def token_estimate(request: Outgoing, use: Services) -> Outgoing:
    """Estimate by characters, for a model whose way of counting is not known well yet."""
    if request.prepared is None:
        return request
    body = request.prepared.body
    return replace(request, estimated_tokens=await use.replayer.work_for(body)(partial(estimate_tokens, body)))


def tags(request: Outgoing) -> Outgoing:
    """Choose what happens to tags: by default they are removed from the answer if reasoning is quoted."""
    if request.prepared is None:
        return request
    dialect, is_continued = request.prepared.contract.dialect, request.continuity is not None
    return replace(request, tags=tag_mode_for(request.ask.target.tags, is_continued, dialect))


# --- what several stages need -----------------------------------------------------------------------------------------


def _original(request: Outgoing, carried: Carried = NOTHING_CARRIED) -> Original:
    """The client's request, and the changes that its address requires."""
    ask, came = request.ask, request.came
    provider, destination = ask.target.provider, ask.destination
    edits = request.member_edits if provider.is_located else ()
    if provider.streams_only and "streamed_by_address" not in FORMATS[destination.format].quirks:
        edits = (("stream", b"true"), *edits)
    model = ask.target.model if not came.route.model else ""
    return Original(came.body, destination, came.identity, model=model, edits=edits, carried=carried)


async def _unchanged(request: Outgoing, original: Original, replayer: Replayer) -> bytes:
    """The client's bytes, changed only as the address requires: the model's name, if it has a route or a prefix, and
    members that the provider's own address needs."""
    if not original.edits and (not original.model or original.model == request.came.model):
        return original.body
    wire = FORMATS[original.destination.format]
    dialect = replayer.contract_for(original.destination).dialect
    work = replayer.work_for(original.body)
    transcript = await work(partial(decode_bounded, original.body, wire.name, dialect))
    return wire.bodies.encode_request(edited(transcript, original), dialect)


def _unplanned(replayer: Replayer, original: Original, body: bytes, transcript: Transcript | None = None) -> Prepared:
    """A request into which nothing is restored. Without a transcript its response is not read either."""
    contract, carried = replayer.contract_for(original.destination), original.carried
    return Prepared(original.destination, original.identity, body, contract, transcript=transcript, carried=carried)


def _observed(planned: Prepared, body: bytes) -> tuple[Prepared, Observed]:
    """The unchanged request, and what would have been done to it: `restored=2, blank=1`, and turn by turn."""
    done = {**planned.counts.counted, "checkpoints": len(planned.quotation.quotes) if planned.quotation else 0}
    would = ", ".join(f"{name}={count}" for name, count in done.items() if count)
    notes = planned.plan.notes if planned.plan is not None else None
    return replace(planned, body=body, plan=None, trace=None, quotation=None), Observed(would, notes)


def _recall(request: Outgoing, memory: Memory) -> Recalls | None:
    """Return how to fetch other models' reasoning, if it is to be quoted."""
    if request.continuity is None:
        return None
    return partial(memory.recall, target=request.ask.destination, terms=request.continuity)


def _with_members(transcript: Transcript, edits: MemberEdits, dialect: Dialect) -> Transcript:
    """Put these members into the body of a request that we wrote."""
    if not edits:
        return transcript
    for name, value in edits:
        transcript = transcript.with_member(name, value)
    bodies = FORMATS[transcript.format].bodies
    written = bodies.decode_request(bodies.encode_request(transcript, dialect), dialect)
    return replace(written, model=transcript.model, is_streaming=transcript.is_streaming)


def _as_signed(request: Outgoing, prepared: Prepared) -> Prepared:
    """Leave the request as its client signed it. AWS refuses a signature for another host or path than the one
    requested."""
    came = request.came
    url = urlsplit(passthrough_address(request.ask.target.provider, came.route.path, came.query))
    signed_for = came.headers.get(b"host", b"").decode("latin-1"), came.raw_path.decode("latin-1")
    prepared = as_signed(prepared, came.body)
    if signed_for == (url.netloc, url.path):
        return prepared
    why = "signed for another address than it goes to, which AWS refuses"
    return with_finding(prepared, Finding("signed-elsewhere", url.netloc, why, 'set auth = "aws", and sign it here'))
