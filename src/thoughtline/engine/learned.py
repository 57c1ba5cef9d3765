"""Corrections learned from errors, stored for every replica and the next start.

    Correction   a contract differs from what we believed, for one provider, endpoint and model
    refused seal a signature or ciphertext that its provider rejected for an account: not sent again for it

Neither has content: seals are stored as digests. Reads never query the store; `refresh` does, periodically.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from thoughtline.formats.json_text import read_or_none
from thoughtline.providers import Contract
from thoughtline.replay.learning import corrected
from thoughtline.replay.refusals import Correction
from thoughtline.stores import Clock, LayeredStore, Note, Store
from thoughtline.values.destination import Destination
from thoughtline.values.errors import StoreError
from thoughtline.values.records import Key, digest

CONTRACTS = "learned-contracts"
SEALS = "refused-seals"
TTL_SECONDS = 7 * 86400.0
"""Same as a record: providers change their rules by the week, not by the hour."""

MAX_CORRECTIONS = 1000
MAX_SEALS = 10_000
"""Callers choose models' names and can invent seals, and every replica keeps these in memory."""

_decoder = msgspec.json.Decoder(Correction)


class Lessons:
    """Corrections by target, and rejected seals."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.by_target: dict[tuple[str, str, str], tuple[Correction, ...]] = {}
        self.refused: frozenset[Key] = frozenset()
        self._by_account: dict[str, frozenset[Key]] = {}

    @property
    def corrections(self) -> tuple[Correction, ...]:
        return tuple(one for some in self.by_target.values() for one in some)

    def apply(self, contract: Contract, target: Destination) -> Contract:
        """The contract with the corrections learned for this target."""
        known = self.by_target.get((target.provider, target.endpoint, target.model))
        return corrected(contract, known, target, self._clock()) if known else contract

    def refused_for(self, account: str) -> frozenset[Key]:
        """The seals that were rejected for an account: they may have been made for another one."""
        if not self.refused:
            return self.refused
        found = self._by_account.get(account)
        if found is None:
            ending = f"@{account}"
            found = frozenset(Key(one.removesuffix(ending)) for one in self.refused if one.endswith(ending))
            self._by_account[account] = found
        return found

    async def refresh(self) -> None:
        """Load what other replicas have learned, and drop expired or reset corrections.

        If the store fails, the current state stays.
        """
        try:
            notes = await self._store.notes(CONTRACTS)
            seals = await self._store.notes(SEALS)
        except StoreError:
            return
        # An unreadable note, of another version, is ignored.
        corrections = {key_of(one): one for note in notes if (one := read_or_none(_decoder, note.value)) is not None}
        refused = frozenset(Key(note.key) for note in seals)
        if isinstance(self._store, LayeredStore) and not self._store.is_settled:
            # Only memory has answered: it has what was learned here, but not what was reset.
            corrections = {key_of(one): one for one in self.corrections} | corrections
            refused |= self.refused
        self.by_target = _by_target(corrections.values())
        self.refused, self._by_account = refused, {}

    async def keep(self, corrections: tuple[Correction, ...], refused: frozenset[Key]) -> None:
        """Apply these from now on. If the store fails, only the other replicas miss them.

        At the limit nothing more is learned until something expires: each request is healed separately.
        """
        known = self.corrections
        corrections = corrections if len(known) < MAX_CORRECTIONS else ()
        refused = refused if len(self.refused) < MAX_SEALS else frozenset()
        kept = {key_of(one): one for one in (*known, *corrections)}
        self.by_target = _by_target(kept.values())
        self.refused, self._by_account = self.refused | refused, {}
        expires = self._clock() + TTL_SECONDS
        try:
            for one in corrections:
                await self._store.put_note(Note(CONTRACTS, key_of(one), msgspec.json.encode(one), one.expires_at))
            for seal in refused:
                await self._store.put_note(Note(SEALS, seal, b"", expires))
        except StoreError:
            pass  # the store counts and reports it; the next error teaches it again

    async def forget(self, key: str | None = None) -> int:
        """Reset one correction, or all."""
        gone = await self._store.delete_notes(CONTRACTS, key)
        if key is None:
            gone += await self._store.delete_notes(SEALS)
        await self.refresh()
        return gone


def key_of(one: Correction) -> str:
    """The name for resetting a correction."""
    parts = [one.provider, one.endpoint, one.model, one.change, one.field, one.scope, one.filler or ""]
    if one.rule is not None:
        parts += [one.rule.path, one.rule.do, one.rule.when]
    if one.account:
        parts.append(one.account)
    return digest(msgspec.json.encode(parts)).hex()


def _by_target(corrections: Iterable[Correction]) -> dict[tuple[str, str, str], tuple[Correction, ...]]:
    found: dict[tuple[str, str, str], tuple[Correction, ...]] = {}
    for one in corrections:
        where = (one.provider, one.endpoint, one.model)
        found[where] = (*found.get(where, ()), one)
    return found
