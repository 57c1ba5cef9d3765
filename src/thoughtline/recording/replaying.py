"""A recording through the library's engine, off the network and with its own memory: what came, what would be sent.

Each exchange in turn: its request is prepared as the gateway would, then its recorded answer is captured, or what it
says of a refusal is read.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.destinations.credentials import account_of, tenant_of
from thoughtline.destinations.request_url import UNLISTED
from thoughtline.engine.request import Prepared
from thoughtline.engine.sessions import who_asks
from thoughtline.gateway.admin.answers import Place
from thoughtline.gateway.admin.request_answers import TurnView
from thoughtline.gateway.explaining import turn_view
from thoughtline.library.line_engine import Engine
from thoughtline.library.reading import AnswerReader
from thoughtline.library.telling import Listeners
from thoughtline.providers import canonical_name
from thoughtline.recording.form import RecordedExchange, RecordingFile, model_of
from thoughtline.replay.refusal_words import meaning_of
from thoughtline.settings import Settings
from thoughtline.values.destination import Destination
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.turns import FormatName

NOW = 1_700_000_000.0
"""The time at which everything in a replay happens."""

ReplayResult = Literal["untouched", "changed", "unread", "skipped"]


class ReplayedExchange(Struct, frozen=True):
    """What was made of one exchange. `why` says it where nothing was, `remark` what to know of the rest.

    `sent` is the body where another one would be sent than the client's, `refusal` what a recorded refusal means;
    `healed`: the request would be corrected then.
    """

    number: int
    path: str
    provider: str
    model: str
    format: str
    status: int
    result: ReplayResult = "skipped"
    why: str = ""
    remark: str = ""
    counts: dict[str, int] = {}
    turns: tuple[TurnView, ...] = ()
    findings: tuple[Place, ...] = ()
    captured: int = 0
    refusal: str = ""
    healed: bool = False
    sent: Any = None


class ReplayTarget(NamedTuple):
    """The target that replaces the recorded one; empty to keep that."""

    provider: str = ""
    model: str = ""


async def replayed(file: RecordingFile, settings: Settings, target: ReplayTarget) -> list[ReplayedExchange]:
    """Replay every exchange of a recording. Never raises for an unreadable one: the result says so."""
    engine = Engine(replace(settings, store_url="memory://"), Listeners())
    try:
        return [await _replayed(engine, number, one, target) for number, one in enumerate(file.exchanges, 1)]
    finally:
        await engine.close()


async def _replayed(engine: Engine, number: int, exchange: RecordedExchange, target: ReplayTarget) -> ReplayedExchange:
    wire_name, address, body = exchange.format_name, exchange.address, exchange.request
    provider = canonical_name(target.provider or exchange.provider or UNLISTED)
    model = target.model or model_of(exchange)
    wire = wire_name or exchange.family
    made = ReplayedExchange(number, exchange.path, provider, model=model, format=wire, status=exchange.status)
    if wire_name is None:
        return replace(made, why="this wire is not known here")
    if body is None:
        return replace(made, why="its request was not recorded")
    if address is not None and address.action != "generate":
        return replace(made, why=f"it asks for no answer, but to {address.action.replace('_', ' ')}")
    credential = str(exchange.recorded.get("credential") or "")
    headers = {name.encode(): value.encode("utf-8") for name, value in exchange.headers.items()}
    identity, _ = who_asks(tenant_of(credential), headers, body)
    destination = Destination(
        provider, _endpoint(engine, provider, wire_name), model, wire_name, account_of(credential)
    )
    try:
        prepared = await engine.prepare(body, destination, identity)
    except ThoughtlineError as error:
        return replace(made, result="unread", why=str(error))
    if prepared.transcript is None:
        return replace(made, result="unread", why=str(prepared.problem or "its request could not be read"))
    made = _with_plan(made, prepared, body, wire_name)
    row = engine.settings.providers.get(provider)
    if row is not None and wire_name not in row.formats:
        made = replace(made, remark=f"{provider} is not known to speak {wire_name}: a gateway would translate")
    if exchange.status >= 400:
        return await _with_refusal(engine, made, prepared, exchange)
    return replace(made, captured=await _capture(engine, prepared, exchange))


def _endpoint(engine: Engine, provider: str, format: FormatName) -> str:
    row = engine.settings.providers.get(provider)
    return row.bases.get(format, row.base_url) if row is not None else f"https://{provider}.invalid"


def _with_plan(made: ReplayedExchange, prepared: Prepared, body: bytes, format: FormatName) -> ReplayedExchange:
    notes = sorted(prepared.plan.notes or (), key=lambda note: note.at) if prepared.plan is not None else ()
    is_changed = prepared.body != body
    outcome = prepared.outcome
    return replace(
        made,
        result="changed" if is_changed else "untouched",
        counts={name: count for name, count in outcome.counted.items() if count},
        turns=tuple(turn_view(note, format) for note in notes),
        findings=tuple(Place(rule, place) for rule, place in outcome.findings),
        sent=json.loads(prepared.body) if is_changed else None,
    )


async def _with_refusal(
    engine: Engine, made: ReplayedExchange, prepared: Prepared, exchange: RecordedExchange
) -> ReplayedExchange:
    """Return what a recorded error means. If it answers the request that would be sent today, also whether that would
    be corrected."""
    answer = exchange.response or exchange.stream or b""
    refusal, healed = await engine.heal(prepared, exchange.status, answer)
    meaning = meaning_of(refusal) if refusal is not None else "not about reasoning, as far as is known"
    if healed is None or made.result == "changed":
        return replace(made, refusal=meaning)
    return replace(made, refusal=meaning, healed=True, sent=json.loads(healed.body))


async def _capture(engine: Engine, prepared: Prepared, exchange: RecordedExchange) -> int:
    """Save the turns of a recorded answer, and return how many there were."""
    stream, response = exchange.stream, exchange.response
    reader = AnswerReader(prepared, is_stream=stream is not None)
    reader.feed(stream if stream is not None else response or b"")
    reader.end()
    records = reader.take(NOW, prepared.outcome)
    await engine.save(records)
    return len(records)
