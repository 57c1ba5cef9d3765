"""What a gateway learned from refusals, as an overlay for review and sharing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import fields, replace

from thoughtline.facts.sheets import KINDS, Entry, Sheets, plain
from thoughtline.formats import USUAL
from thoughtline.providers import facts
from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.replay.detection import host_of, resolve
from thoughtline.replay.learning import corrected
from thoughtline.replay.refusals import Correction
from thoughtline.values.destination import Destination

_CHANGES_OF_ONE_ACCOUNT = "it holds for one account alone"


def overlay_of(corrections: Iterable[Correction], now: float) -> tuple[Sheets, list[str]]:
    """Return the overlay, and a sentence on everything that did not fit into it."""
    sheets: Sheets = {kind: {} for kind in KINDS}
    left: list[str] = []
    by_target: dict[tuple[str, str, str], list[Correction]] = {}
    for one in corrections:
        if one.account:
            left.append(f"{one.provider}/{one.model}: {one.change}: {_CHANGES_OF_ONE_ACCOUNT}")
        elif one.holds_at(now):
            by_target.setdefault((one.provider, one.endpoint, one.model), []).append(one)
    for (provider, endpoint, model), some in sorted(by_target.items()):
        number = len(sheets["models"]) + 1
        left += _add(sheets, Destination(provider, endpoint, model, USUAL.name), some, number=number, now=now)
    return sheets, left


def _add(sheets: Sheets, target: Destination, some: list[Correction], *, number: int, now: float) -> list[str]:
    host = host_of(target)
    if not host.name:
        return [f"{target.provider}/{target.model}: no row names this provider; settings can give it a contract"]
    names = []
    for api in host.formats:
        here = replace(target, format=api)
        before = resolve(here)
        after = corrected(before, some, here, now)
        if after != before and before.name in facts().contracts:
            name = f"learned-{number}-{api.replace('_', '-')}"
            day = datetime.fromtimestamp(max(one.learned_at for one in some), UTC).date().isoformat()
            origin = {"source": f"a refusal by {target.provider}", "read": day, "says": _says(some)}
            sheets["contracts"][name] = {"like": before.name, "name": before.name, **_changes(before, after), **origin}
            names.append(name)
    if not names:
        return [f"{target.provider}/{target.model}: {one.change} changes no contract" for one in some]
    sheets["models"][f"learned-{number}"] = {
        "provider": host.name,
        "models": f"^{re.escape(target.model.lower())}$",
        "contracts": names,
        "unverified": True,
        "says": _says(some),
    }
    return []


def _says(some: list[Correction]) -> str:
    return ", ".join(dict.fromkeys(f"{one.change} {one.field}".strip() for one in some))


def _changes(before: Contract, after: Contract) -> Entry:
    found: Entry = {}
    for field in fields(Contract):
        value = getattr(after, field.name)
        if value != getattr(before, field.name):
            found[field.name] = value.name if isinstance(value, Dialect) else plain(value)
    return found
