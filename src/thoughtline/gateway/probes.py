"""What load balancers and clients ask before anything else."""

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
    """Ready while requests can be served, which a failing store does not prevent: it is told. Crowded while abandoned
    requests take much of the descriptors."""
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
    """Whether everybody is refused who comes with a client key, or to be served with a provider's key of ours."""
    keys = state.keys
    if keys.are_known or keys.are_required is False:
        return False
    return keys.are_required is True or any(row.api_keys for row in state.settings.providers.values())


def _store_status(state: State) -> tuple[str, str]:
    """How the store is in a word, and in a sentence where it is not well."""
    late = state.late
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
