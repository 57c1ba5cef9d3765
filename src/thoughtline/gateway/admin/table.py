"""Every fixed address: who may ask, with what, and what answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from thoughtline.gateway import dashboard, probes
from thoughtline.gateway.admin import (
    access,
    answers,
    audits,
    cache,
    connecting,
    contracts,
    events,
    handoffs,
    keys,
    openapi,
    recent,
    request_answers,
    routes,
    sessions,
    settings,
    status_answers,
)
from thoughtline.gateway.admin.audits import AuditBody, AuditQuery
from thoughtline.gateway.admin.cache import CacheFilter, CacheQuery
from thoughtline.gateway.admin.connecting import ConnectQuery
from thoughtline.gateway.admin.contracts import ContractsFilter
from thoughtline.gateway.admin.keys import KeyBody, KeyFilter
from thoughtline.gateway.admin.recent import RequestsQuery
from thoughtline.gateway.admin.requests import MAX_PARAMETER_CHARS, AdminRequest, Row, Stream, Whole, decode_query
from thoughtline.gateway.admin.sessions import SessionQuery, SessionsQuery
from thoughtline.gateway.metrics import CONTENT_TYPE as METRICS_TYPE
from thoughtline.gateway.shared_settings import SettingsPatch
from thoughtline.values.errors import Declined


class LoginQuery(Struct, frozen=True):
    """What the banner's link holds, or the admin token: each is good once since the start."""

    token: str


class LoginForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The admin token."""

    token: Annotated[str, Meta(max_length=MAX_PARAMETER_CHARS, pattern=r"^[^\u0000]*$")]


async def _forget(request: AdminRequest) -> Whole:
    where = decode_query(request.query, CacheFilter).where
    deleted = await cache.forget(request.state, where)
    return Whole(answers.Deleted(deleted), done=f"{deleted} turns deleted")


async def _settings(request: AdminRequest) -> Whole:
    return Whole(await settings.settings_view(request.state))


async def _change_settings(request: AdminRequest) -> Whole:
    changed = await settings.change_settings(request.state, request.body)
    return Whole(changed, done=request.body.decode("utf-8", "replace"))


async def _unlearn(request: AdminRequest) -> Whole:
    key = decode_query(request.query, ContractsFilter).key
    deleted = await request.state.lessons.forget(key)
    return Whole(answers.Deleted(deleted), done=f"{deleted} lessons deleted")


async def _events(request: AdminRequest) -> Stream:
    events.require_room(request.state.journal)
    return Stream(events.events(request.state.journal), "text/event-stream")


async def _request(request: AdminRequest) -> Whole:
    return Whole(await recent.request_view(request.state, request.names["id"]))


async def _add_key(request: AdminRequest) -> Whole:
    made = await keys.add_key(request.state, request.body)
    return Whole(made, done=f"client key {made.key.id} made for {made.key.name}")


async def _revoke_key(request: AdminRequest) -> Whole:
    gone = await keys.revoke_key(request.state, decode_query(request.query, KeyFilter).id)
    return Whole(gone, done=f"{len(gone.revoked)} client keys revoked")


async def _openapi(request: AdminRequest) -> Whole:
    return Whole(openapi.document(TABLE))


async def _login(request: AdminRequest) -> Whole:
    """People get a page to log in at, where there is no link or it is not good."""
    if dashboard.is_for_people(request) and not request.query:
        return await dashboard.page(request)
    token = decode_query(request.query, LoginQuery).token
    if request.method == "HEAD":  # who only looks uses nothing up
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


async def _metrics(request: AdminRequest) -> Whole:
    state = request.state
    state.metrics.observe(state.store, state.lessons)
    return Whole(state.metrics.page(), content_type=METRICS_TYPE)


_CACHE, _SETTINGS, _CONTRACTS, _KEYS = "/api/cache/reasoning", "/api/settings", "/api/contracts", "/api/keys"
_PATCHES = ("application/json", "application/merge-patch+json")

TABLE: tuple[Row, ...] = (
    Row("GET", "/", dashboard.page, summary="The dashboard.", answer=None, access="open", content_type=dashboard.HTML),
    Row(
        "GET",
        "/assets/{file}",
        dashboard.asset,
        summary="The files of the dashboard.",
        answer=None,
        access="open",
        content_type="text/javascript",
        refusals=(404,),
    ),
    Row(
        "GET",
        "/favicon.ico",
        dashboard.icon,
        summary="The icon of the browser tab.",
        answer=None,
        access="open",
        content_type="image/svg+xml",
    ),
    Row("GET", "/healthz", probes.health, summary="Whether the process answers.", answer=answers.Health, access="open"),
    Row(
        "GET",
        "/readyz",
        probes.readiness,
        summary="Whether requests can be served.",
        answer=answers.Readiness,
        access="open",
        also=(503,),
    ),
    Row(
        "GET", "/api/hello", probes.health, summary="Claude Code's first request.", answer=answers.Health, access="open"
    ),
    Row(
        "GET",
        "/login",
        _login,
        summary="Logs a browser in by a link that works once: sets the cookie.",
        answer=None,
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
        summary="Logs a browser in by the admin token, from the form at `/`.",
        answer=None,
        access="open",
        body=LoginForm,
        body_types=("application/x-www-form-urlencoded",),
        max_body=16 * 2**10,
        content_type="text/plain",
        status=303,
        refusals=(401, 403, 429),
    ),
    Row(
        "GET",
        "/metrics",
        _metrics,
        summary="Metrics for Prometheus.",
        answer=None,
        access="metrics",
        content_type=METRICS_TYPE,
    ),
    Row(
        "GET",
        _CACHE,
        cache.cache_page,
        summary="What is remembered, newest first.",
        answer=answers.CachePage,
        query=CacheQuery,
    ),
    Row(
        "DELETE",
        _CACHE,
        _forget,
        summary="Forgets what matches the filters; everything without one.",
        answer=answers.Deleted,
        query=CacheFilter,
    ),
    Row(
        "GET",
        "/api/sessions",
        sessions.sessions_page,
        summary="Sessions.",
        answer=answers.SessionPage,
        query=SessionsQuery,
    ),
    Row(
        "GET",
        "/api/sessions/{id}",
        sessions.session_view,
        summary="The turns of a session in order, and what happened to each.",
        answer=answers.SessionView,
        query=SessionQuery,
        refusals=(404,),
    ),
    Row(
        "GET",
        "/api/requests",
        recent.requests_page,
        summary="The last requests and their results, newest first.",
        answer=request_answers.RequestPage,
        query=RequestsQuery,
    ),
    Row(
        "GET",
        "/api/requests/{id}",
        _request,
        summary="One request explained: who was asked, what they refused, what was done about each turn and why.",
        answer=request_answers.RequestView,
        refusals=(404,),
    ),
    Row(
        "GET", "/api/series", recent.series_view, summary="Figures of the last 24 hours.", answer=status_answers.Series
    ),
    Row(
        "GET",
        "/api/handoffs",
        handoffs.handoff_report,
        summary="How handoffs went, by route.",
        answer=answers.HandoffReport,
    ),
    Row("GET", _SETTINGS, _settings, summary="The settings in force, without secrets.", answer=answers.SettingsView),
    Row(
        "PATCH",
        _SETTINGS,
        _change_settings,
        summary="Changes what can be changed at run time, for every worker and replica.",
        answer=answers.SettingsView,
        body=SettingsPatch,
        body_types=_PATCHES,
        max_body=64 * 2**10,
    ),
    Row(
        "GET",
        _CONTRACTS,
        contracts.contracts_view,
        summary="What providers demand, and what was learned.",
        answer=answers.ContractsView,
    ),
    Row(
        "DELETE",
        _CONTRACTS,
        _unlearn,
        summary="Resets what was learned.",
        answer=answers.Deleted,
        query=ContractsFilter,
    ),
    Row(
        "GET", _KEYS, keys.keys_view, summary="The client keys, without their secrets.", answer=status_answers.KeysView
    ),
    Row(
        "POST",
        _KEYS,
        _add_key,
        summary="Makes a client key; only this answer shows its secret.",
        answer=status_answers.KeyMade,
        body=KeyBody,
        max_body=16 * 2**10,
        refusals=(409,),
    ),
    Row(
        "DELETE",
        _KEYS,
        _revoke_key,
        summary="Revokes the key with an id, or all keys of a name.",
        answer=status_answers.KeysRevoked,
        query=KeyFilter,
        refusals=(404, 409),
    ),
    Row(
        "GET",
        "/api/routes",
        routes.routes_view,
        summary="Routes, and the state of their targets.",
        answer=status_answers.RoutesView,
    ),
    Row(
        "GET",
        "/api/providers",
        routes.providers_view,
        summary="The providers that can be asked.",
        answer=status_answers.ProvidersView,
    ),
    Row(
        "GET",
        "/api/connect",
        connecting.connect_view,
        summary="The clients, when each was last seen, and how to set one up.",
        answer=status_answers.ConnectView,
        query=ConnectQuery,
        refusals=(404,),
    ),
    Row(
        "POST",
        "/api/audit",
        audits.audited,
        summary="What a provider would refuse in a request: wrapped in an object, or the body itself with parameters.",
        answer=answers.Audit,
        query=AuditQuery,
        body=AuditBody,
        takes_any_object=True,
    ),
    Row(
        "GET",
        "/api/events",
        _events,
        summary="Requests as they are served: `event: begun`, `streaming`, `done`, each with a RequestRow; "
        "`event: lost` with a count.",
        answer=request_answers.RequestRow,
        content_type="text/event-stream",
        refusals=(429,),
    ),
    Row("GET", "/api/openapi.json", _openapi, summary="This document.", answer=None),
)
