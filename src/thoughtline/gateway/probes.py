"""Health and readiness checks for load balancers and clients."""

from __future__ import annotations

from thoughtline.gateway.admin.answers import Health, Readiness
from thoughtline.gateway.admin.requests import AdminRequest, Whole
from thoughtline.gateway.state import State
from thoughtline.terminal import counted

_SHUT = (
    "Requests with client keys get 503: the keys are not known, because the store can't be reached or is not the one "
    "that has them."
)


async def health(request: AdminRequest) -> Whole:
    return Whole(Health("ok"))


async def readiness(request: AdminRequest) -> Whole:
    """Report `ready` while requests can be served, even if the store fails, which is reported. Report `crowded` while
    abandoned requests use many of the descriptors."""
    store, detail = _store_status(request.state)
    state, in_flight = request.state, request.state.in_flight
    if _is_shut(state):
        return Whole(Readiness("not_ready", store, _SHUT), 503)
    if problem := in_flight.problem(state.settings.server):
        return Whole(Readiness("not_ready", store, problem), 503)
    if in_flight.is_crowded:
        detail = f"{in_flight.abandoned} requests whose clients have left are still under way. {detail}".rstrip()
        return Whole(Readiness("crowded", store, detail))
    return Whole(Readiness("ready", store, detail))


def _is_shut(state: State) -> bool:
    """Whether all callers with a client key are refused, as are those that need a gateway key for a provider."""
    keys = state.keys
    if keys.are_known or keys.are_required is False:
        return False
    return keys.are_required is True or any(row.api_keys for row in state.settings.providers.values())


def _store_status(state: State) -> tuple[str, str]:
    """Return the store's status, with a sentence if it is not well."""
    late = state.background.late
    if state.durable is not None and not state.durable.is_settled:
        waiting = state.durable.health.waiting
        return (
            "degraded",
            f"The store fails: turns are kept in memory only. Not yet written: {counted(waiting, 'turn')}.",
        )
    if late.are_recent:
        detail = f"{late.total} saves took longer than hold_ms since the start; {late.under_way} are still under way."
        return "slow", detail
    return "ok", ""
