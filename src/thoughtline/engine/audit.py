"""Audits a request: what a provider would reject in it, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from thoughtline.destinations.catalogue import listed
from thoughtline.formats import FORMATS, USUAL, Wire
from thoughtline.formats.json_text import json_given
from thoughtline.providers import canonical_name
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.keys import walk
from thoughtline.replay.known import known_steps
from thoughtline.replay.plans import Needs
from thoughtline.replay.rules import Case, check
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import FormatName


def audit(
    request: bytes | str | dict[str, Any],
    provider: str,
    model: str = "",
    format: FormatName | None = None,
    records: Iterable[Record] = (),
    issuer: Destination | None = None,
) -> list[Finding]:
    """The problems with a request's reasoning. With records of its turns also what was altered or is foreign.

    Without `format` it is guessed from the body's members; without `model`, the body's.
    """
    body = json_given(request)
    row = FORMATS[format or guess_format(body, provider)]
    transcript = row.bodies.decode_request(body, row.dialect)
    name = model or transcript.model
    contract = resolve(Destination(provider, "", name, row.name))
    transcript = row.bodies.decode_request(body, contract.dialect)
    kept = list(records)
    identity = Identity(kept[0].provenance.tenant if kept else "")
    index: dict[Key, list[Record]] = {}
    for record in kept:
        for key in record.keys:
            index.setdefault(key, []).append(record)
    walked = walk(transcript, identity, bound_of(transcript) if contract.binds_prefix else b"")
    known = known_steps(Needs(identity, *walked), index)
    return check(Case(transcript, contract, issuer or Destination(provider, "", name, row.name), known))


def guess_format(request: bytes, provider: str = "") -> FormatName:
    """The format of a body: by its distinctive members, else the provider's if it speaks only one."""
    try:
        names = msgspec.json.decode(request, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return USUAL.name
    scores = {wire.name: _telling(wire, names) for wire in FORMATS.values()}
    likeliest = max(scores, key=lambda name: scores[name])
    if scores[likeliest]:
        return likeliest
    row = listed().get(canonical_name(provider))
    return row.formats[0] if row is not None and len(row.formats) == 1 else USUAL.name


def _telling(wire: Wire, names: dict[str, msgspec.Raw]) -> int:
    """How many of a body's members are distinctive for this format."""
    listed = bytes(names.get(wire.list_member, b""))
    own = [member in names for member in wire.telling_members]
    return sum([*own, *(word in listed for word in wire.telling_words)])
