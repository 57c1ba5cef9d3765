"""A line: stores turns for a tenant, and has an integration for each kind of client."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import iscoroutinefunction
from os import PathLike
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote

from thoughtline.destinations.credentials import account_of, credentials_of, is_signed, tenant_of
from thoughtline.destinations.request_url import AskedAddress, Server, read_address, server_of
from thoughtline.engine.capture import log_problem
from thoughtline.engine.sessions import first_model, session_of, who_asks
from thoughtline.formats.json_text import json_given
from thoughtline.formats.weighing import check_weight
from thoughtline.library.background import leave_behind, lock, run, wait_for
from thoughtline.library.clients import http_clients
from thoughtline.library.configuring import settings_of
from thoughtline.library.exchange import AsyncExchange, SyncExchange
from thoughtline.library.explaining import ExchangeReport
from thoughtline.library.history import body_of, destination_of
from thoughtline.library.line_engine import Engine, LineReport
from thoughtline.library.middleware import middleware_of
from thoughtline.library.shared_loop import Running
from thoughtline.library.telling import Listener, Listeners
from thoughtline.library.transports import loaded_library, wrap, wrapped_by
from thoughtline.settings import Settings
from thoughtline.values.destination import Destination
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.identity import Identity
from thoughtline.values.turns import FormatName

Headers: TypeAlias = Mapping[str, str] | Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]
Body: TypeAlias = bytes | str | dict[str, Any]
Client = TypeVar("Client")
OnExchange = TypeVar("OnExchange", bound=Listener)

_MAX_SERVERS = 1024

_session: ContextVar[str] = ContextVar("thoughtline_session", default="")
_user: ContextVar[str] = ContextVar("thoughtline_user", default="")


class _Request(NamedTuple):
    """A request of a known format."""

    address: AskedAddress
    destination: Destination
    identity: Identity


class ReplayLine:
    """Remembers models' reasoning in `store`; by default in the gateway's own.

    Without a `tenant`, turns belong to the credential in each request. Settings are those of the gateway: the file
    `config`, or the default one, and the environment; or `config` is a `Settings` object.
    """

    def __init__(
        self,
        store: str | PathLike[str] | None = None,
        *,
        tenant: str = "",
        config: str | PathLike[str] | Settings | None = None,
    ) -> None:
        if not isinstance(tenant, str):
            raise TypeError(f"tenant is text, not {type(tenant).__name__}")
        self._settings = settings_of(store, config)
        self._listeners = Listeners()
        configured = self._settings.configured
        rows = self._settings.providers.items()
        self._providers = [row for _, row in sorted(rows, key=lambda pair: pair[0] not in configured)]
        self._tenant = tenant
        self._servers: dict[AskedAddress, Server] = {}
        self._made: tuple[int, Engine] | None = None
        self.is_closed = False
        """Whether it is closed. A closed line opens again on use; until then, another line may take its clients."""

    def __repr__(self) -> str:
        url = self._settings.store_url.partition("?")[0]
        scheme, _, place = url.partition("://")
        shown = f"{scheme}://{place.rpartition('@')[2]}"  # without the password of a server
        return f"Line({shown!r}" + (f", tenant={self._tenant!r})" if self._tenant else ")")

    @classmethod
    def of(cls, client: object) -> ReplayLine:
        """Return the line of a client. Raises `LookupError` if it has none."""
        for inner in http_clients(client):
            if (found := wrapped_by(inner)) is not None:
                return found.line
        raise LookupError(f"this {type(client).__name__} remembers nothing yet")

    @staticmethod
    def default() -> ReplayLine:
        """Return the default line of `remember` and `install`, which uses the gateway's own store."""
        with lock():
            if not _default:
                _default.append(ReplayLine())
            return _default[0]

    @property
    def _engine(self) -> Engine:
        """The engine of this process."""
        made = self._made
        if made is None or made[0] != os.getpid():
            with lock():
                if self._made is None or self._made[0] != os.getpid():
                    leave_behind(self._made)
                    self._made = os.getpid(), Engine(self._settings, self._listeners)
                    self.is_closed = False
                made = self._made
        return made[1]

    # --- for framework authors ----------------------------------------------------------------------------------------

    async def begin(self, method: str, url: str, headers: Headers, body: Body) -> AsyncExchange:
        """Begin a request that is about to be sent. One of an unknown format is sent unchanged."""
        return await self.begin_at(_address_of(method, url), url, headers=headers, body=json_given(body))

    def begin_sync(self, method: str, url: str, headers: Headers, body: Body) -> SyncExchange:
        """The same for code without an event loop."""
        return self.begin_at_sync(_address_of(method, url), url, headers=headers, body=json_given(body))

    async def begin_at(self, address: AskedAddress | None, url: str, *, headers: Headers, body: bytes) -> AsyncExchange:
        """Begin a request whose address is already parsed."""
        request = self._recognised(address, url, headers, body)
        if request is None:
            return AsyncExchange(self._engine, body, None)
        return await self.begin_for(request.destination, request.identity, body, address=request.address)

    def begin_at_sync(self, address: AskedAddress | None, url: str, *, headers: Headers, body: bytes) -> SyncExchange:
        """The same for code without an event loop."""
        request = self._recognised(address, url, headers, body)
        if request is None:
            return SyncExchange(self._engine, body, None)
        return self.begin_for_sync(request.destination, request.identity, body, address=request.address)

    async def begin_for(
        self, destination: Destination, identity: Identity, body: bytes, *, address: AskedAddress | None = None
    ) -> AsyncExchange:
        """Begin a request whose destination and identity you know yourself."""
        engine = self._engine
        try:
            prepared = await wait_for(run(engine.prepare(body, destination, identity)))
        except Exception as problem:
            log_problem("a request could not be prepared", problem)
            return AsyncExchange(engine, body, None)
        return AsyncExchange(engine, body, prepared, address)

    def begin_for_sync(
        self, destination: Destination, identity: Identity, body: bytes, *, address: AskedAddress | None = None
    ) -> SyncExchange:
        """The same for code without an event loop."""
        engine = self._engine
        try:
            prepared = run(engine.prepare(body, destination, identity)).result()
        except Exception as problem:
            log_problem("a request could not be prepared", problem)
            return SyncExchange(engine, body, None)
        return SyncExchange(engine, body, prepared, address)

    def _recognised(self, address: AskedAddress | None, url: str, headers: Headers, body: bytes) -> _Request | None:
        """Identify a request like the gateway does, so that both find each other's turns. None if there is nothing to
        do."""
        if address is None:
            return None
        try:
            given = _lowered(headers)
            if b"content-encoding" in given or is_signed(given):
                return None
            shown = credentials_of(given, url.partition("?")[2])
            tenant = _tenant_for(self._tenant or tenant_of("\0".join(shown)))
            if session := _session.get():
                given[b"x-thoughtline-session"] = session.encode()
            try:
                check_weight(body)
                identity, model = who_asks(tenant, given, body)
            except LimitExceeded:
                identity, model = who_asks(tenant, given, b"")[0], first_model(body)
            server = self._servers.get(address) or self._server_of(address)
            account = account_of(shown[0] if shown else "")
            destination = Destination(*server, address.model or model, address.format, account)
            return _Request(address, destination, identity)
        except Exception as problem:
            log_problem("a request could not be read", problem)
            return None

    def _server_of(self, address: AskedAddress) -> Server:
        found = server_of(address, self._providers)
        if len(self._servers) < _MAX_SERVERS:
            self._servers[address] = found
        return found

    # --- integrations -------------------------------------------------------------------------------------------------

    def remember(self, client: Client) -> Client:
        """Make a client of any SDK over httpx or httpx2 remember from now on, and return it."""
        for inner in http_clients(client):
            wrap(inner, self)
        return client

    def http_client(self, library: ModuleType | None = None, **options: Any) -> Any:
        """Return a client of httpx2 or httpx, whichever is loaded; `options` are passed to it."""
        return self.remember((library or loaded_library()).Client(**{"follow_redirects": True, **options}))

    def async_http_client(self, library: ModuleType | None = None, **options: Any) -> Any:
        """The same for code on an event loop."""
        return self.remember((library or loaded_library()).AsyncClient(**{"follow_redirects": True, **options}))

    @property
    def anthropic(self) -> Any:
        """A middleware for `Anthropic(middleware=[…])` and `AsyncAnthropic`."""
        return middleware_of(self)

    def google(self, **options: Any) -> Any:
        """Return the `http_options` of `genai.Client`, sync and async, as a dictionary; `options` are added. Its type
        is `HttpOptionsDict`, which can't be named here without the SDK."""
        return {"httpx_client": self.http_client(), "httpx_async_client": self.async_http_client(), **options}

    def langchain(self) -> dict[str, Any]:
        """Return the arguments for `ChatOpenAI`, `ChatDeepSeek` and others built on OpenAI's SDK."""
        return {"http_client": self.http_client(), "http_async_client": self.async_http_client()}

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """Assign all requests in this block to one session."""
        with self.conversation(session=name):
            yield

    @contextmanager
    def conversation(self, *, user: str = "", session: str = "") -> Iterator[None]:
        """Assign all requests in this block to an end user, in one of their sessions: in this thread or task, and in
        tasks that it starts. End users never share a turn."""
        before = [(_user, _user.set(user or _user.get())), (_session, _session.set(session or _session.get()))]
        try:
            yield
        finally:
            for variable, token in before:
                variable.reset(token)

    def translate_history(
        self, messages: Sequence[Any], *, to: str, format: FormatName | None = None, key: str = ""
    ) -> dict[str, Any]:
        """Convert a history of any format for `to` (`provider/model`): return the members of a request that hold it.

        Seals are removed. Reasoning is included as text if the model accepts that, or else as a checkpoint. Reasoning
        that the history lost is looked up in the store, for the line's tenant or for the owner of `key`.
        """
        return self._translating(messages, to, format=format, key=key).result()

    async def atranslate_history(
        self, messages: Sequence[Any], *, to: str, format: FormatName | None = None, key: str = ""
    ) -> dict[str, Any]:
        """The same for code on an event loop."""
        return await wait_for(self._translating(messages, to, format=format, key=key))

    def _translating(
        self, messages: Sequence[Any], to: str, *, format: FormatName | None, key: str
    ) -> Running[dict[str, Any]]:
        destination = destination_of(to, self._settings.providers, format)
        headers = {b"x-thoughtline-session": _session.get().encode()}
        who = Identity(_tenant_for(self._tenant or tenant_of(key)), session_of(headers, b""))
        return run(self._engine.translate(body_of(messages), destination, who))

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def report(self) -> LineReport:
        """What this process has done through the line."""
        return self._engine.report

    @property
    def exchanges(self) -> tuple[ExchangeReport, ...]:
        """Reports of the last hundred calls, the newest at the end."""
        return tuple(self._listeners.exchanges)

    def explain(self, calls: int = 1) -> str:
        """Explain the last calls, turn by turn, like `thoughtline explain` does."""
        if calls < 1:
            raise ValueError("explain at least one call")
        return "\n".join(map(str, self.exchanges[-calls:])) or "nothing was asked through this line yet"

    def on_exchange(self, function: OnExchange) -> OnExchange:
        """Call this function with a report after each call, in the thread that made the call, so it should be short.
        Its own errors are logged. Also works as a decorator."""
        if not callable(function) or iscoroutinefunction(function):
            raise TypeError("on_exchange takes a function that is not async")
        self._listeners.functions = (*self._listeners.functions, function)
        return function

    def close(self) -> None:
        """Wait for running saves, and close the store. A line that is used again opens it again."""
        if (closing := self._closing()) is not None:
            closing.result()

    async def aclose(self) -> None:
        if (closing := self._closing()) is not None:
            await wait_for(closing)

    def _closing(self) -> Running[None] | None:
        with lock():
            made, self._made = self._made, None
            self.is_closed = True
        return run(made[1].close()) if made is not None and made[0] == os.getpid() else None

    def _abandon(self) -> None:
        """Drop an engine that could not be opened: the next request makes another."""
        with lock():
            self._made, self.is_closed = None, True

    def __enter__(self) -> ReplayLine:
        """Open the store. Raises `StoreError` if that fails."""
        try:
            run(self._engine.open_whole()).result()
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> ReplayLine:
        try:
            await wait_for(run(self._engine.open_whole()))
        except BaseException:
            self._abandon()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_default: list[ReplayLine] = []


def remember(client: Client, line: ReplayLine | None = None) -> Client:
    """Make a client remember from now on, in this line or in the gateway's own store, and return it."""
    return (line or ReplayLine.default()).remember(client)


def _tenant_for(tenant: str) -> str:
    """Return the tenant of the current end user. A slash in a user's name can't lead to another user's turns."""
    user = _user.get()
    return f"{tenant}/{quote(user, safe='')}" if user else tenant


def _address_of(method: str, url: str) -> AskedAddress | None:
    try:
        return read_address(method, url)
    except ValueError:  # not a valid address
        return None


def _lowered(headers: Headers) -> dict[bytes, bytes]:
    if isinstance(headers, list):  # the form that transports have
        return {name.lower(): value for name, value in headers}
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return {_bytes(name).lower(): _bytes(value) for name, value in pairs}


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1", "replace")
