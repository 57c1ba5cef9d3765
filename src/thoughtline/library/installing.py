"""Makes every HTTP client of this process remember: all httpx and httpx2 clients, made before or after.

    install ──▶ Client.send, AsyncClient.send ──▶ wrap the client before its next request, as `remember` does

Only the method `send` is replaced: it is documented, and every request of a client passes through it. `uninstall`
removes everything again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import wraps
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakSet

from thoughtline.engine.capture import log_problem
from thoughtline.library.background import lock
from thoughtline.library.door import ReplayLine
from thoughtline.library.import_hooks import ImportHook
from thoughtline.library.transports import LIBRARIES, check_library, unwrap, wrap, wrapped_by

log = logging.getLogger("thoughtline.line")


class Installation:
    """One call of `install`. `uninstall` reverts it, as does the end of a `with` block."""

    def __init__(self, line: ReplayLine, hosts: tuple[str, ...], without: tuple[str, ...]) -> None:
        self.line = line
        self._hosts = hosts
        self._without = without

    def serves(self, host: str) -> bool:
        return (not self._hosts or _is_among(host, self._hosts)) and not _is_among(host, self._without)

    def uninstall(self) -> None:
        with lock():
            if self in _installed:
                _installed.remove(self)
            if not _installed:
                _restore()

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, *_: object) -> None:
        self.uninstall()


def install(
    line: ReplayLine | None = None, *, hosts: str | Iterable[str] = (), without: str | Iterable[str] = ()
) -> Installation:
    """Make every httpx and httpx2 client in this process remember, made before or after, sync and async.

    With `hosts`, only requests to these hosts and their subdomains (`openai.com` includes `api.openai.com`); those in
    `without` are left alone. Clients that have a line keep it. A second call adds to the first, in the same line;
    another line is an error.
    """
    with lock():
        already = _installed[0].line if _installed else None
        if already is not None and line is not None and line is not already:
            raise ValueError(f"this process remembers in {already}, not in {line}: uninstall() first")
        installation = Installation(line or already or ReplayLine.default(), _hosts_of(hosts), _hosts_of(without))
        _installed.append(installation)
        if already is None:
            try:
                _hook.begin()
            except BaseException:
                _installed.clear()
                _restore()
                raise
    return installation


def uninstall() -> None:
    """Revert every `install`. Clients that were given to `remember` still remember."""
    with lock():
        _installed.clear()
        _restore()


def _hosts_of(hosts: str | Iterable[str]) -> tuple[str, ...]:
    some = (hosts,) if isinstance(hosts, str) else tuple(hosts)
    for host in some:
        if not host or "/" in host or ":" in host:
            raise ValueError(f"a host is a name such as api.deepseek.com, not {host!r}")
    return tuple(host.lower().lstrip(".") for host in some)


def _is_among(host: str, hosts: tuple[str, ...]) -> bool:
    host = host.lower()
    return any(host == one or host.endswith(f".{one}") for one in hosts)


# --- the replaced method ----------------------------------------------------------------------------------------------


class _Replaced(NamedTuple):
    """A method of a class, and its replacement."""

    kind: Any
    send: Callable[..., Any]
    ours: Callable[..., Any]


_installed: list[Installation] = []
_replaced: list[_Replaced] = []
_clients: WeakSet[Any] = WeakSet()


def _serves(host: str) -> bool:
    return any(one.serves(host) for one in _installed)


def _meet(client: Any) -> None:
    """Wrap a client that is about to send something."""
    if not _installed or wrapped_by(client) is not None:
        return
    try:
        with lock():
            if _installed:
                wrap(client, _installed[0].line, serves=_serves)
                _clients.add(client)
    except Exception as problem:
        log_problem("a client could not be made to remember", problem)


def _replace(library: ModuleType) -> None:
    """Replace the method in a library that has just been imported, or was before."""
    try:
        check_library(library)
    except RuntimeError as problem:
        log.error("install: %s", problem)
        return
    with lock():
        for kind, replacing in ((library.Client, _sending), (library.AsyncClient, _sending_async)):
            if all(one.kind is not kind for one in _replaced):
                ours = replacing(kind.send)
                _replaced.append(_Replaced(kind, kind.send, ours))
                kind.send = ours


def _sending(send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    def remembered(self: Any, *given: Any, **options: Any) -> Any:
        _meet(self)
        return send(self, *given, **options)

    return remembered


def _sending_async(send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    async def remembered(self: Any, *given: Any, **options: Any) -> Any:
        _meet(self)
        return await send(self, *given, **options)

    return remembered


def _restore() -> None:
    """Restore the methods. If other code has replaced `send` after us, ours stays in its chain and does nothing."""
    _hook.end()
    for one in [one for one in _replaced if one.kind.send is one.ours]:
        one.kind.send = one.send
        _replaced.remove(one)
    for client in list(_clients):
        found = wrapped_by(client)
        if found is not None and found.serves is not None:
            unwrap(client)
    _clients.clear()


_hook = ImportHook(LIBRARIES, _replace)
