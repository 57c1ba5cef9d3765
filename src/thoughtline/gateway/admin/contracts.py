"""Contracts, built in and overridden, and what refusals taught beyond them."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.gateway.admin.answers import ContractsView, ContractView, CorrectionView, EvidenceView, moment
from thoughtline.gateway.admin.requests import AdminRequest, Whole
from thoughtline.gateway.masking import masked_url
from thoughtline.lessons import key_of
from thoughtline.providers import CONTRACTS, Contract
from thoughtline.replay.refusals import Correction


class ContractsFilter(Struct, frozen=True):
    """Which correction; all of them without it."""

    key: str | None = None


async def contracts_view(request: AdminRequest) -> Whole:
    """With what other replicas have learned by now."""
    state = request.state
    await state.lessons.refresh()
    now, overrides = state.clock(), state.settings.contracts
    rows = {**CONTRACTS, **overrides}
    views = [_contract(row, name in overrides) for name, row in rows.items()]
    learned = [_correction(one) for one in state.lessons.corrections if one.holds_at(now)]
    return Whole(ContractsView(views, learned, len(state.lessons.refused)))


def _contract(row: Contract, is_overridden: bool) -> ContractView:
    return ContractView.of(
        row,
        dialect=row.dialect.name,
        carrier=row.dialect.carrier,
        ladder=list(row.ladder),
        source=str(row.source),
        is_overridden=is_overridden,
    )


def _correction(one: Correction) -> CorrectionView:
    return CorrectionView.of(
        one,
        key=key_of(one),
        endpoint=masked_url(one.endpoint),
        evidence=EvidenceView.of(one.evidence),
        learned_at=moment(one.learned_at),
        expires_at=moment(one.expires_at),
    )
