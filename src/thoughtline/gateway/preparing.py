"""The stages of a request on its way up. Each does nothing, at no cost, where it does not apply.

The first ones are for the request, whoever will be asked; the others for each target that is.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from functools import partial

from thoughtline.continuity.terms import HEADER, Terms, setting_for, tag_mode_for, terms_for
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import check_weight, decode_bounded
from thoughtline.gateway.access import let_in
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.choosing import choices_of, conversation_of
from thoughtline.gateway.estimating import counted_request, estimate_body
from thoughtline.gateway.held_state import check_held
from thoughtline.gateway.incoming import Incoming
from thoughtline.gateway.stored_responses import unfolded
from thoughtline.replay.carrying import Carried
from thoughtline.replay.remembering import Cut
from thoughtline.replayer import Recalls
from thoughtline.translation import translate_request
from thoughtline.translation.own_format import Adapted, adapt
from thoughtline.values.errors import ThoughtlineError


def admit(incoming: Incoming) -> None:
    """Who sends it, if its head may be taken at all."""
    state = incoming.state
    incoming.caller = let_in(incoming.scope, incoming.headers, incoming.query, state.keys, state.settings.server)


def limit(incoming: Incoming) -> None:
    """Raises where the caller's key has asked too often."""
    incoming.state.limits.admit(incoming.caller.key, time.monotonic())


def route(incoming: Incoming) -> Awaitable[None] | None:
    """Whom to ask: one, or the targets of a route."""
    if incoming.route.action not in ("generate", "count_tokens"):
        return None
    choices = incoming.choices = choices_of(incoming)
    return _conversation(incoming) if choices.are_several else None


async def _conversation(incoming: Incoming) -> None:
    incoming.conversation = await conversation_of(incoming.choices, incoming)


def held_state(attempt: Attempt) -> None:
    """Raises if a request counts on messages that its provider does not have."""
    if attempt.is_generating:
        provider, client = attempt.target.provider, attempt.client
        check_held(attempt.incoming.short, provider, client.format, is_translated=attempt.is_translated)


def stored_responses(attempt: Attempt) -> Awaitable[None] | None:
    """A translated request of Responses has its whole conversation in `input`."""
    is_named = attempt.is_translated and "stored_responses" in FORMATS[attempt.client.format].quirks
    return _with_stored(attempt) if is_named else None


async def _with_stored(attempt: Attempt) -> None:
    body, state = attempt.body, attempt.state
    work = state.replayer.work_for(body)
    await work(partial(check_weight, body))
    attempt.body = attempt.conversation = await unfolded(state.store, attempt.incoming.caller.tenant, body, work)


def continuity(attempt: Attempt) -> None:
    """On which terms other models' thoughts are quoted; that is done where reasoning is restored."""
    incoming, settings = attempt.incoming, attempt.state.settings
    if not attempt.is_generating:
        return
    of_all = settings.continuity
    terms = Terms(of_all.mode, of_all.count, of_all.max_chars, of_all.after_compaction)
    header = incoming.headers.get(HEADER, b"")
    route = settings.routes.get(attempt.target.route)
    of_model = setting_for(attempt.target.name, of_all.models)
    narrower = (route.continuity if route else None, of_model, attempt.target.provider.continuity)
    attempt.terms = terms_for(terms, of_all.enabled, header, *narrower)


def translate(attempt: Attempt) -> Awaitable[None] | None:
    if not attempt.is_translated:
        return None
    return _translated(attempt) if attempt.is_generating else _estimated(attempt)


async def _estimated(attempt: Attempt) -> None:
    """Tokens that nobody counts in this format: of what would be sent; where that can't be made, of what came."""
    attempt.body = counted_request(attempt.body)
    try:
        await _translated(attempt)
    except ThoughtlineError:
        attempt.prepared = None
    body = attempt.prepared.body if attempt.prepared is not None else attempt.body
    attempt.estimate = estimate_body(body, attempt.client.format)


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
    carried = Carried(request.records, request.findings, request.call_ids)
    attempt.prepared = await replayer.prepare_decoded(
        request.transcript, destination, identity, contract=contract, carried=carried, recall=_recall(attempt)
    )
    attempt.client = client._replace(
        is_streaming=streams,
        wants_usage=request.options.wants_usage,
        call_ids=request.call_ids,
        tools=request.tools,
    )
    attempt.is_streaming, attempt.is_rewritten = streams, True


def _recall(attempt: Attempt) -> Recalls | None:
    """How to fetch what other models thought, if it is to be quoted."""
    if attempt.terms is None:
        return None
    return partial(attempt.state.memory.recall, target=attempt.destination, terms=attempt.terms)


def restore(attempt: Attempt) -> Awaitable[None] | None:
    return _restored(attempt) if not attempt.is_translated else None


async def _restored(attempt: Attempt) -> None:
    """In its own format."""
    incoming, state = attempt.incoming, attempt.state
    streams_only, destination = attempt.target.provider.streams_only, attempt.destination
    in_body = "streamed_by_address" not in FORMATS[destination.format].quirks
    cut, adapted = _adapted(attempt)
    attempt.names = adapted.names
    attempt.client = attempt.client._replace(tools=adapted.names)
    prepared = attempt.prepared = await state.replayer.prepare(
        attempt.body if cut is not None else adapted.body,
        destination,
        incoming.identity,
        model=attempt.target.model if not incoming.route.model else "",
        edits=(("stream", b"true"),) if streams_only and in_body else (),
        recall=_recall(attempt),
        carried=Carried(findings=adapted.findings),
        cut=cut,
    )
    if prepared.transcript is not None:
        attempt.is_streaming = attempt.is_streaming or prepared.transcript.is_streaming
        attempt.is_rewritten = streams_only and not attempt.is_streaming


def _adapted(attempt: Attempt) -> tuple[Cut | None, Adapted]:
    """The body as the server takes it. If it takes what is new of a conversation as it came, then all of it."""
    incoming, state, destination = attempt.incoming, attempt.state, attempt.destination
    cut = state.replayer.cut_for(incoming.cuts, destination, incoming.identity)
    change = partial(
        adapt,
        format=attempt.client.format,
        contract=state.replayer.contract_for(destination),
        missing=state.settings.translation.missing_tools,
    )
    if cut is not None and (adapted := change(cut.short)) == Adapted(cut.short):
        return cut, adapted
    return None, change(attempt.body)


def tags(attempt: Attempt) -> None:
    """What becomes of thinking tags in the answer."""
    if attempt.prepared is None:
        return
    set_to = attempt.target.provider.tags
    set_to = set_to if set_to is not None else attempt.state.settings.tags
    attempt.tags = tag_mode_for(set_to, attempt.terms is not None, attempt.prepared.contract.dialect)
