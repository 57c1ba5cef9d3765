"""Requests that are forwarded unchanged because replay is off or only observed (`modes.py`)."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import NOTHING_CARRIED, Carried, Original, Prepared, edited
from thoughtline.formats import FORMATS
from thoughtline.formats.weighing import decode_bounded
from thoughtline.gateway.attempt import Attempt
from thoughtline.providers import Contract
from thoughtline.translation.passages import Written
from thoughtline.values.turns import Transcript


async def pass_on(attempt: Attempt) -> None:
    """Forward a request unchanged, without lookups or capture."""
    original = original_of(attempt)
    body = await as_it_came(attempt.state.replayer, original, attempt.incoming.model)
    attempt.send_instead(unplanned(attempt.state.replayer, original, body))


def original_of(attempt: Attempt, carried: Carried = NOTHING_CARRIED) -> Original:
    """Return the request as it came, with the changes that its address requires in any mode."""
    provider, destination, incoming = attempt.target.provider, attempt.destination, attempt.incoming
    edits = attempt.member_edits if provider.is_located else ()
    if provider.streams_only and "streamed_by_address" not in FORMATS[destination.format].quirks:
        edits = (("stream", b"true"), *edits)
    model = attempt.target.model if not incoming.route.model else ""
    return Original(incoming.body, destination, incoming.identity, model=model, edits=edits, carried=carried)


async def translate_only(attempt: Attempt, transcript: Transcript, contract: Contract, carried: Carried) -> None:
    """Send the request in the provider's format, without restoring anything; in `observe` mode, note what would have
    been done."""
    replayer, destination, identity = attempt.state.replayer, attempt.destination, attempt.incoming.identity
    body = FORMATS[destination.format].bodies.encode_request(transcript, contract.dialect)
    if attempt.replay == "off":
        attempt.send_instead(unplanned(replayer, original_of(attempt, carried), body, transcript))
        return
    written = Written.of(transcript)
    planned = await replayer.prepare_translated(written, destination, identity, contract=contract, carried=carried)
    send_observed(attempt, planned, body)


def send_observed(attempt: Attempt, planned: Prepared, body: bytes) -> None:
    """Send the request unchanged, and note what would have been done for each turn."""
    prepared, attempt.would = observed(planned, body)
    attempt.send_instead(prepared)
    attempt.notes = planned.plan.notes if planned.plan is not None else None


async def as_it_came(replayer: Replayer, original: Original, came: str) -> bytes:
    """Return the client's bytes with only the changes that an address requires: the model's name, if a route or a
    prefix is in its place (`came`), and members that the provider's own address needs."""
    if not original.edits and (not original.model or original.model == came):
        return original.body
    wire = FORMATS[original.destination.format]
    dialect = replayer.contract_for(original.destination).dialect
    work = replayer.work_for(original.body)
    transcript = await work(partial(decode_bounded, original.body, wire.name, dialect))
    return wire.bodies.encode_request(edited(transcript, original), dialect)


def unplanned(replayer: Replayer, original: Original, body: bytes, transcript: Transcript | None = None) -> Prepared:
    """Return a request without restored turns. Without a transcript, its response is not read either."""
    contract = replayer.contract_for(original.destination)
    carried = original.carried
    return Prepared(original.destination, original.identity, body, contract, transcript=transcript, carried=carried)


def observed(prepared: Prepared, body: bytes) -> tuple[Prepared, str]:
    """Return the request as it came, and what would have been done for it: `restored=2, blank=1`."""
    done = {**prepared.counts.counted, "checkpoints": len(prepared.quotation.quotes) if prepared.quotation else 0}
    would = ", ".join(f"{name}={count}" for name, count in done.items() if count)
    return replace(prepared, body=body, plan=None, trace=None, quotation=None), would
