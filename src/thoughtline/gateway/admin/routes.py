"""Routes with the health of their targets, the results of handoffs, and the available providers."""

from __future__ import annotations

from thoughtline import providers
from thoughtline.clients import example_models
from thoughtline.continuity.handoffs import report
from thoughtline.gateway.admin.answers import HandoffReport, HandoffRow, moment
from thoughtline.gateway.admin.requests import AdminRequest, Whole
from thoughtline.gateway.admin.status_answers import ProviderAbout, ProvidersView, RoutesView, RouteTarget, RouteView
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.state import State
from thoughtline.providers import canonical_name
from thoughtline.settings import RouteSettings
from thoughtline.stores import Filter
from thoughtline.stores.base import MAX_PAGE
from thoughtline.values.destination import Destination
from thoughtline.values.records import Record

_CALLERS = " for "
"""In the name of a target that is asked with its caller's own key, followed by the caller's tenant."""


async def routes_view(request: AdminRequest) -> Whole:
    """The view of this process; on a shared store, it includes what the others found."""
    state = request.state
    named = {target for row in state.settings.routes.values() for target in row.targets}
    others = sorted({_target_name(name) for name in state.health.breakers.known} - named)
    open_targets = [target for name in others if (target := _target(state, name, None)).breaker != "closed"]
    return Whole(RoutesView([_route(state, row) for row in state.settings.routes.values()], open_targets))


async def providers_view(request: AdminRequest) -> Whole:
    state = request.state
    return Whole(ProvidersView([_provider(state, name) for name in sorted(state.settings.providers)]))


def _route(state: State, row: RouteSettings) -> RouteView:
    weights = row.weights or (None,) * len(row.targets)
    targets = [_target(state, name, weight) for name, weight in zip(row.targets, weights, strict=True)]
    return RouteView(row.name, targets, row.continuity)


def _target(state: State, name: str, weight: int | None) -> RouteTarget:
    breakers, now = state.health.breakers, state.clock()
    mine = [one for one in breakers.known if _target_name(one) == name]
    worst = max(mine, key=lambda one: (breakers.opens_at(one), breakers.failures(one)), default=name)
    opens_at = breakers.opens_at(worst)
    prefix, _, model = name.partition("/")
    provider = state.settings.providers.get(canonical_name(prefix))
    return RouteTarget(
        name,
        canonical_name(prefix),
        model,
        weight=weight,
        breaker=breakers.state(worst, now),
        failures=breakers.failures(worst),
        opens_at=moment(opens_at) if opens_at > now else None,
        has_key=provider is not None and not provider.needs_callers_key,
    )


def _target_name(health_name: str) -> str:
    return health_name.partition(_CALLERS)[0]


def _provider(state: State, name: str) -> ProviderAbout:
    row, built_in = state.settings.providers[name], providers.host_named(name)
    model, wire = example_models().get(name, ""), row.formats[0]
    endpoint = row.bases.get(wire, row.base_url)
    contract = state.replayer.contract_for(Destination(name, endpoint, model, wire))
    return ProviderAbout(
        name,
        list(built_in.aliases) if built_in is not None else [],
        masked_url(row.base_url),
        formats=list(row.formats),
        auth=row.auth,
        has_key=bool(row.api_keys),
        is_configured=name in state.settings.configured,
        is_default=name == state.settings.default_provider,
        example_model=model,
        contract=contract.name,
        contract_source=str(contract.source),
    )


# --- the results of handoffs, from stored records: the same on every worker and replica -------------------------------


MAX_TURNS = 2000
"""Maximum number of turns read, newest first: ten pages of the store."""


async def handoff_report(request: AdminRequest) -> Whole:
    records: list[Record] = []
    cursor: str | None = None
    while len(records) < MAX_TURNS:
        page = await request.state.store.list_entries(Filter(), MAX_PAGE, cursor)
        records += [entry.record for entry in page.entries]
        cursor = page.cursor
        if cursor is None:
            break
    rows = [HandoffRow.of(one) for one in report(records)]
    return Whole(HandoffReport(rows, len(records), cursor is None))
