"""Every fixed address: its access, parameters, body and answer."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from thoughtline.gateway import dashboard, probes
from thoughtline.gateway.admin import (
    access,
    answers,
    cache,
    connecting,
    contracts,
    events,
    keys,
    openapi,
    previews,
    recent,
    request_answers,
    routes,
    sessions,
    settings,
    status_answers,
)
from thoughtline.gateway.admin.requests import MAX_PARAMETER_CHARS, AdminRequest, Row, Whole, decode_query
from thoughtline.gateway.metrics import CONTENT_TYPE as METRICS_TYPE
from thoughtline.gateway.shared_settings import SettingsPatch
from thoughtline.values.errors import Declined


class LoginQuery(Struct, frozen=True):
    """The code in the banner's link, or the admin token: each is valid once since the start."""

    token: str


class LoginForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The admin token."""

    token: Annotated[str, Meta(max_length=MAX_PARAMETER_CHARS, pattern=r"^[^\u0000]*$")]


async def _openapi(request: AdminRequest) -> Whole:
    return Whole(openapi.document(TABLE))


async def _login(request: AdminRequest) -> Whole:
    """Log in by link. People without a valid link get a page to log in."""
    if dashboard.is_for_people(request) and not request.query:
        return await dashboard.page(request)
    token = decode_query(request.query, LoginQuery).token
    if request.method == "HEAD":  # a preview must not use up the link
        return Whole(b"", 303, "text/plain", headers=((b"location", b"/"),))
    try:
        return Whole(b"", 303, "text/plain", headers=await access.follow_link(request, token))
    except Declined as refused:
        if not dashboard.is_for_people(request):
            raise
        return (await dashboard.page(request))._replace(status=refused.status, code=refused.code)


async def _log_in(request: AdminRequest) -> Whole:
    token = decode_query(request.body.decode("latin-1"), LoginForm).token
    return Whole(b"", 303, "text/plain", headers=await access.log_in(request, token))


async def _log_out(request: AdminRequest) -> Whole:
    return Whole(b"", 303, "text/plain", headers=access.log_out(request))


async def _metrics(request: AdminRequest) -> Whole:
    state = request.state
    state.observe()
    return Whole(state.metrics.page(), content_type=METRICS_TYPE)


_CACHE, _SETTINGS, _CONTRACTS, _KEYS = "/api/cache/reasoning", "/api/settings", "/api/contracts", "/api/keys"
_PATCHES = ("application/json", "application/merge-patch+json")

TABLE: tuple[Row, ...] = (
    Row("GET", "/", dashboard.page, "The dashboard.", None, access="open", content_type=dashboard.HTML),
    Row(
        "GET",
        "/assets/{file}",
        dashboard.asset,
        "The files of the dashboard.",
        None,
        access="open",
        content_type="text/javascript",
        refusals=(404,),
    ),
    Row(
        "GET",
        "/favicon.ico",
        dashboard.icon,
        "The icon of the browser tab.",
        None,
        access="open",
        content_type="image/svg+xml",
    ),
    Row("GET", "/healthz", probes.health, "Whether the process answers.", answers.Health, access="open"),
    Row(
        "GET",
        "/readyz",
        probes.readiness,
        "Whether requests can be served.",
        answers.Readiness,
        access="open",
        also=(503,),
    ),
    Row("GET", "/api/hello", probes.health, "Claude Code's first request.", answers.Health, access="open"),
    Row(
        "GET",
        "/login",
        _login,
        "Logs a browser in by a link that works once: sets the cookie.",
        None,
        access="open",
        query=LoginQuery,
        content_type="text/plain",
        status=303,
        refusals=(401, 403, 429),
    ),
    Row(
        "POST",
        "/login",
        _log_in,
        "Logs a browser in by the admin token, from the form at `/`.",
        None,
        access="open",
        body=LoginForm,
        body_types=("application/x-www-form-urlencoded",),
        max_body=16 * 2**10,
        content_type="text/plain",
        status=303,
        refusals=(401, 403, 429),
    ),
    Row("GET", "/metrics", _metrics, "Metrics for Prometheus.", None, access="metrics", content_type=METRICS_TYPE),
    Row(
        "GET", _CACHE, cache.cache_page, "What is remembered, newest first.", answers.CachePage, query=cache.CacheQuery
    ),
    Row(
        "DELETE",
        _CACHE,
        cache.forget_entries,
        "Forgets what matches the filters; everything without one.",
        answers.Deleted,
        query=cache.CacheFilter,
    ),
    Row("GET", "/api/sessions", sessions.sessions_page, "Sessions.", answers.SessionPage, query=sessions.SessionsQuery),
    Row(
        "GET",
        "/api/sessions/{id}",
        sessions.session_view,
        "The turns of a session in order, and what happened to each.",
        answers.SessionView,
        query=sessions.SessionQuery,
        refusals=(404,),
    ),
    Row(
        "GET",
        "/api/requests",
        recent.requests_page,
        "The last requests and their results, newest first.",
        request_answers.RequestPage,
        query=recent.RequestsQuery,
    ),
    Row(
        "GET",
        "/api/requests/{id}",
        recent.request_view,
        "One request explained: who was asked, what they refused, what was done about each turn and why.",
        request_answers.RequestView,
        refusals=(404,),
    ),
    Row("GET", "/api/series", recent.series_view, "Figures of the last 24 hours.", status_answers.Series),
    Row("GET", "/api/handoffs", routes.handoff_report, "How handoffs went, by route.", answers.HandoffReport),
    Row(
        "GET",
        "/api/continuity/preview",
        previews.preview,
        "What continuity would quote of a session to another model.",
        previews.ContinuityPreview,
        query=previews.PreviewQuery,
        refusals=(404,),
    ),
    Row(
        "POST",
        "/logout",
        _log_out,
        "Logs a browser out: removes the cookie.",
        None,
        access="open",
        content_type="text/plain",
        status=303,
        refusals=(403,),
    ),
    Row("GET", _SETTINGS, settings.settings_view, "The settings in force, without secrets.", answers.SettingsView),
    Row(
        "PATCH",
        _SETTINGS,
        settings.change_settings,
        "Changes what can be changed at run time, for every worker and replica.",
        answers.SettingsView,
        body=SettingsPatch,
        body_types=_PATCHES,
        max_body=64 * 2**10,
    ),
    Row(
        "GET",
        _CONTRACTS,
        contracts.contracts_view,
        "What providers demand, and what was learned.",
        answers.ContractsView,
    ),
    Row(
        "DELETE",
        _CONTRACTS,
        contracts.unlearn,
        "Resets what was learned.",
        answers.Deleted,
        query=contracts.ContractsFilter,
    ),
    Row("GET", _KEYS, keys.keys_view, "The client keys, without their secrets.", status_answers.KeysView),
    Row(
        "POST",
        _KEYS,
        keys.add_key,
        "Makes a client key; only this answer shows its secret.",
        status_answers.KeyMade,
        body=keys.KeyBody,
        max_body=16 * 2**10,
        refusals=(409,),
    ),
    Row(
        "DELETE",
        _KEYS,
        keys.revoke_key,
        "Revokes the key with an id, or all keys of a name.",
        status_answers.KeysRevoked,
        query=keys.KeyFilter,
        refusals=(404, 409),
    ),
    Row("GET", "/api/routes", routes.routes_view, "Routes, and the state of their targets.", status_answers.RoutesView),
    Row(
        "GET", "/api/providers", routes.providers_view, "The providers that can be asked.", status_answers.ProvidersView
    ),
    Row(
        "GET",
        "/api/connect",
        connecting.connect_view,
        "The clients, when each was last seen, and how to set one up.",
        status_answers.ConnectView,
        query=connecting.ConnectQuery,
        refusals=(404,),
    ),
    Row(
        "POST",
        "/api/audit",
        contracts.audited,
        "What a provider would refuse in a request: wrapped in an object, or the body itself with parameters.",
        answers.Audit,
        query=contracts.AuditQuery,
        body=contracts.AuditBody,
        takes_any_object=True,
    ),
    Row(
        "GET",
        "/api/events",
        events.listened,
        "Requests as they are served: `event: begun`, `streaming`, `done`, each with a RequestRow; "
        "`event: lost` with a count.",
        request_answers.RequestRow,
        content_type="text/event-stream",
        refusals=(429,),
    ),
    Row("GET", "/api/openapi.json", _openapi, "This document.", None),
)
