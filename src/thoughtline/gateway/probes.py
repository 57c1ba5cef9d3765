"""What load balancers, clients and people ask before anything else."""

from __future__ import annotations

from thoughtline.gateway.admin.answers import Health, Readiness
from thoughtline.gateway.admin.requests import AdminRequest, Whole
from thoughtline.gateway.state import State
from thoughtline.stores import LayeredStore

_PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>thoughtline</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}</style>
<h1>thoughtline</h1>
<p>This gateway remembers what a model thought and puts it back where the provider wants it. Point a client's base URL
at it: <code>/v1/&hellip;</code> with a model as <code>provider/model</code>, or <code>/{provider}/&hellip;</code>.</p>
<form method="post" action="/login"><p><label>Admin token <input type="password" name="token" required
autocomplete="current-password"></label> <button>Log in</button></p></form>
<p>The dashboard isn't there yet. What it would show is at <a href="/api/openapi.json">/api/openapi.json</a> (with the
admin token) and <a href="/metrics">/metrics</a>.</p>
</html>
"""
_SHUT = (
    "Requests with client keys get 503: the keys are not known, because the store can't be reached or is not the one "
    "that has them."
)
_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


async def page(request: AdminRequest) -> Whole:
    if request.method == "HEAD":  # Claude Code asks it before anything else
        return Whole(b"", content_type="text/html; charset=utf-8")
    return Whole(_PAGE, content_type="text/html; charset=utf-8", headers=((b"content-security-policy", _POLICY),))


async def health(request: AdminRequest) -> Whole:
    return Whole(Health("ok"))


async def readiness(request: AdminRequest) -> Whole:
    """Ready while requests can be served, which a failing store does not prevent: it is told."""
    store, detail = _store_told(request.state)
    if _is_shut(request.state):
        return Whole(Readiness("not_ready", store, _SHUT), 503)
    return Whole(Readiness("ready", store, detail))


def _is_shut(state: State) -> bool:
    """Whether everybody is refused who comes with a client key, or to be served with a provider's key of ours."""
    keys = state.keys
    if keys.are_known or keys.are_required is False:
        return False
    return keys.are_required is True or any(row.api_keys for row in state.settings.providers.values())


def _store_told(state: State) -> tuple[str, str]:
    """How the store is in a word, and in a sentence where it is not well."""
    late = state.late
    if state.store_health != "ok" and isinstance(state.store, LayeredStore):
        waiting = state.store.health.waiting
        return state.store_health, f"Memory goes on without the durable store; {waiting} turns wait to be written."
    if late.are_recent:
        told = f"{late.total} saves took longer than hold_ms since the start; {late.under_way} are still under way."
        return "slow", told
    return "ok", ""
