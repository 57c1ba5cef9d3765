"""Contracts, built in and overridden, and what refusals taught beyond them."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.answers import ContractsView, ContractView, CorrectionView, EvidenceView, moment
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.state import State
from thoughtline.lessons import key_of
from thoughtline.providers import CONTRACTS, Contract
from thoughtline.replay.refusals import Correction


class ContractsFilter(Struct, frozen=True):
    """Which correction; all of them without it."""

    key: str | None = None


async def contracts_view(state: State) -> ContractsView:
    """With what other replicas have learned by now."""
    await state.lessons.refresh()
    now, overrides = state.clock(), state.settings.contracts
    rows = {**CONTRACTS, **overrides}
    return ContractsView(
        [_contract(row, name in overrides) for name, row in rows.items()],
        [_correction(one) for one in state.lessons.corrections if one.holds_at(now)],
        len(state.lessons.refused),
    )


def _contract(row: Contract, is_overridden: bool) -> ContractView:
    return ContractView(
        name=row.name,
        kind=row.kind,
        scope=row.scope,
        takes=row.takes,
        dialect=row.dialect.name,
        carrier=row.dialect.carrier,
        format=row.format,
        ladder=list(row.ladder),
        thinks_by_default=row.thinks_by_default,
        only_when_thinking=row.only_when_thinking,
        binds_prefix=row.binds_prefix,
        binds_model=row.binds_model,
        source=str(row.source),
        is_overridden=is_overridden,
    )


def _correction(one: Correction) -> CorrectionView:
    evidence = one.evidence
    return CorrectionView(
        key=key_of(one),
        provider=one.provider,
        endpoint=masked_url(one.endpoint),
        model=one.model,
        change=one.change,
        field=one.field,
        scope=one.scope,
        filler=one.filler,
        evidence=EvidenceView(evidence.status, evidence.code, evidence.fingerprint, evidence.is_wrapped),
        learned_at=moment(one.learned_at),
        expires_at=moment(one.expires_at),
    )
