"""What load balancers, clients and people ask before anything else."""

from __future__ import annotations

from thoughtline.gateway.admin.answers import Health, Readiness
from thoughtline.gateway.admin.requests import Request, Whole

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
_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


async def page(request: Request) -> Whole:
    if request.method == "HEAD":  # Claude Code asks it before anything else
        return Whole(b"", content_type="text/html; charset=utf-8")
    return Whole(_PAGE, content_type="text/html; charset=utf-8", headers=((b"content-security-policy", _POLICY),))


async def health(request: Request) -> Whole:
    return Whole(Health("ok"))


async def readiness(request: Request) -> Whole:
    """Ready while requests can be served, which a failing store does not prevent: it is told."""
    return Whole(Readiness("ready", request.state.store_health))
