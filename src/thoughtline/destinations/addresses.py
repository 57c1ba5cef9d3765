"""Builds a request's URL from a provider's row, a format and a model; the client never chooses the host.

A base is the one that the provider's own SDK expects; the format's path is appended, and no version (`/v1`) is doubled.
A client only contributes a model's name, which is quoted, or a passed-through path, which is rejected if it could lead
out of the base.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from itertools import takewhile
from urllib.parse import quote, unquote, urlsplit

from thoughtline.destinations.catalogue import Provider
from thoughtline.formats import FORMATS, USUAL
from thoughtline.formats.paths import Action, ends_in_version
from thoughtline.providers.vertex import HOST as LOCATED_HOST
from thoughtline.providers.vertex import host_of
from thoughtline.values.errors import AddressError, AddressRefused
from thoughtline.values.turns import FormatName

MAX_DECODINGS = 4
"""How many times a path may be percent-encoded; no client means more, and each server may decode once."""

_CLIENT_VERSIONS = frozenset({"v1", "v1beta", "v1alpha"})
"""Versions that clients put in front of a path: OpenAI's, Anthropic's and Google's SDKs."""

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DOTS = re.compile(r"\.{1,2}(;.*)?$")
"""A segment that names this or the parent folder; some servers first remove everything after a semicolon."""

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_.-]{1,255}))(?::[0-9]{0,5})?")
"""RFC 3986, 3.2.2 and 3.2.3, limited to names of hosts in use."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".home")
"""RFC 6761, RFC 6762, RFC 8375, names that ICANN reserves for private use, and those that routers
and companies invent.
"""

_UNSPECIFIED = frozenset({"0.0.0.0", "::"})
"""What servers print when they listen everywhere. A system connects to itself there."""

_SHORT_LOOPBACK = re.compile(r"127(?:\.[0-9]+){1,2}|2130706433|0x7f000001|0177(?:\.[0-7]+){3}")
"""Other spellings of loopback that systems know (`inet_aton`): `127.1`."""

_LOCATION = re.compile(r"[a-z0-9-]{1,63}")
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_QUERY_SAFE = "/%:@!$&'()*+,;=~-._?[]|{}"


def server_url(host: str, port: int) -> str:
    """The URL of a server that listens there; IPv6 hosts are in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def own_url(host: str, port: int) -> str:
    """The same for a program on that machine: a wildcard address can't be called."""
    return server_url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


def host_name(authority: str) -> str | None:
    """The host of a `Host` header, an origin or a setting, normalized; None if it has none.

    Case, port, the root's dot and the spelling of an IPv6 address don't matter.
    """
    found = _HOST.fullmatch(authority)
    if found is None:
        return None
    if found[1] is None:
        return found[2].lower().removesuffix(".") or None
    try:
        address = ipaddress.IPv6Address(found[1])
    except ValueError:
        return None
    if (inner := address.ipv4_mapped) is not None:  # from Python 3.13 on it would be written with dots
        return f"::ffff:{int(inner) >> 16:x}:{int(inner) & 0xFFFF:x}"
    return address.compressed


def is_private(host: str) -> bool:
    """Whether a host is on this machine or its network, judged by its name: strangers can't reach it directly.

    A name without a dot belongs to the network (`ollama` of a compose file); other names can't be judged.
    """
    name = host_name(f"[{host}]" if ":" in host and "[" not in host else host)
    if name is None:
        return True
    if is_private_address(name) is not None:
        return bool(is_private_address(name))
    return "." not in name or name.endswith(_PRIVATE_SUFFIXES)


def is_private_address(text: str) -> bool | None:
    """Whether an address is of this machine or its network; None if it is no address.

    Loopback, private, link-local, unique local, carrier-grade NAT; also an IPv4 address wrapped in IPv6.
    """
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        return not (found.ipv4_mapped or found.sixtofour or _translated(found) or found).is_global
    return not found.is_global


def is_this_machine(peer: str) -> bool:
    """Whether an address is of the loopback interface; an empty one, of a Unix socket, counts too."""
    try:
        address = ipaddress.ip_address(peer) if peer else None
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address is None or (mapped or address).is_loopback


@lru_cache(256)
def is_loopback_url(url: str) -> bool:
    """Whether a URL is of this machine, judged by its name. A forward proxy can't reach it: it would look on its own
    machine, and see the key.
    """
    host = (urlsplit(url).hostname or "").removesuffix(".")
    if host in _UNSPECIFIED or host == "localhost" or host.endswith(".localhost"):
        return True
    return host != "" and (is_this_machine(host) or _SHORT_LOOPBACK.fullmatch(host) is not None)


def _translated(found: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """NAT64: RFC 6052."""
    return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) if found in _NAT64 else None


def hosts_of(provider: Provider) -> frozenset[str]:
    """Every host that a provider's requests go to."""
    bases = filter(None, (provider.base_url, *provider.bases.values()))
    return frozenset(urlsplit(base).hostname or "" for base in bases)


def address(
    provider: Provider,
    format: FormatName,
    model: str,
    *,
    is_streaming: bool,
    action: Action,
    query: str,
    place: str = "",
) -> str:
    """The URL of a provider for requests of a format. `query` is the client's own, without its question mark, `place`
    its project and location.
    """
    if format not in provider.formats:
        raise AddressError(f"{provider.name} does not speak {format}: add it to formats in [providers.{provider.name}]")
    base = _base(provider, provider.bases.get(format, provider.base_url))
    wire = FORMATS[format]
    if provider.is_located and wire.published is not None:
        path = wire.published.path(_checked_model(model), action, is_streaming=is_streaming)
        target = _located(base, place) + path
    elif format in provider.paths:
        target = base + provider.paths[format] + ("" if action == "generate" else f"/{action}")
    elif action != "count_tokens":
        below = "" if action == "generate" else f"/{action}"
        target = wire.upstream_path(base, _checked_model(model), is_streaming) + below
    elif wire.count_path is None:
        raise AddressError(f"{format} has no address that counts tokens")
    else:
        target = wire.count_path(base, _checked_model(model))
    return target + _query(provider, format, query)


def _located(base: str, place: str) -> str:
    """A base with a project and a location: its own, else those of the client's path."""
    own = urlsplit(base).path.removeprefix("/")
    segments = _checked_segments(own if "projects" in own.split("/") else place or own or "v1")
    return "/".join((_host_at(base, segments), *segments))


def _host_at(base: str, segments: list[str]) -> str:
    """The host of a path on Vertex, derived from its location if that is a plain word: else the path could choose the
    receiver of a token. A host from settings stays.
    """
    parts = urlsplit(base)
    named = segments[segments.index("locations") + 1 :] if "locations" in segments else []
    location = named[0] if named else "global"
    if not _LOCATION.fullmatch(location):
        raise AddressRefused("the location in the path is not a plain word")
    return f"{parts.scheme}://{host_of(location) if parts.netloc == LOCATED_HOST else parts.netloc}"


def passthrough_address(provider: Provider, path: str, query: str) -> str:
    """The URL of any other path of a provider. `path` is as the client wrote it, escapes included."""
    base = _base(provider, provider.base_url)
    segments = _checked_segments(path)
    if provider.is_located:
        base = _host_at(base, segments) + urlsplit(base).path
    within = urlsplit(base).path.split("/")[1:]
    if within and segments[: len(within)] == within:
        segments = segments[len(within) :]
    below = "/".join(_with_version_once(segments, has_version=_has_version(provider, base)))
    target = f"{base}/{quote(below, safe=_PATH_SAFE)}" if below else base
    return target + _query(provider, provider.formats[0], query)


def models_address(provider: Provider) -> str:
    """The URL of a provider's list of models, if it has one."""
    base = _base(provider, provider.base_url)
    if USUAL.name in provider.paths or _has_version(provider, base):
        return f"{base}/models"
    return f"{base}/{FORMATS[provider.formats[0]].version}/models"


def with_query_key(url: str, key: str) -> str:
    """A URL with a key in it, for `auth = "query"`."""
    return f"{url}{'&' if '?' in url else '?'}key={quote(key, safe='')}"


def without_query_key(url: str) -> str:
    """A URL without its key, however that is written."""
    base, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part and unquote(part.partition("=")[0]) != "key"]
    return f"{base}?{'&'.join(parts)}" if parts else base


def rebased(provider: Provider, base_url: str) -> dict[FormatName, str]:
    """The other bases of a provider that has moved: each has the same position relative to the new base as to the old
    one.

    Those on the same host stay. There are none if the new base has a path in which the old one can't be recognized.
    """
    old, new = urlsplit(provider.base_url), urlsplit(base_url)
    if new.netloc == old.netloc:
        return provider.bases
    folder = new.path.rstrip("/")
    if folder and not folder.endswith(old.path):
        return {}
    outside = f"{new.scheme}://{new.netloc}{folder.removesuffix(old.path)}"
    beside = {name: urlsplit(base) for name, base in provider.bases.items()}
    return {name: outside + base.path for name, base in beside.items() if base.netloc == old.netloc}


def _base(provider: Provider, base: str) -> str:
    if not base:
        raise AddressError(f"{provider.name} has no address of its own: set base_url in [providers.{provider.name}]")
    return base.rstrip("/")


def _checked_model(model: str) -> str:
    if not model.isprintable() or any(_DOTS.match(part) for part in re.split(r"[/\\]", model)):
        raise AddressRefused("the model's name can't be part of an address")
    return model


def _checked_segments(path: str) -> list[str]:
    """The segments of a path that stays below its base, however often it is decoded."""
    if _BROKEN_ESCAPE.search(path):
        raise AddressRefused("the path has a stray percent sign: write it as %25")
    segments = path.removeprefix("/").split("/")
    if "" in segments[:-1]:
        raise AddressRefused("the path has an empty segment: //")
    for segment in segments:
        _check_segment(segment)
    return segments


def _check_segment(segment: str) -> None:
    """It may contain escaped slashes (an ARN of AWS), if the decoded parts are plain names."""
    for _ in range(MAX_DECODINGS):
        names = segment.split("/")
        is_plain = not any(_DOTS.match(name) for name in names) and (len(names) == 1 or all(names))
        if not is_plain or "\\" in segment or not segment.isprintable():
            raise AddressRefused(
                "the path could lead out of its provider: dots, backslashes or control characters in disguise"
            )
        decoded = unquote(segment, errors="surrogateescape")  # invalid UTF-8 is not printable either
        if decoded == segment:
            return
        segment = decoded
    raise AddressRefused("the path is encoded too many times")


def _has_version(provider: Provider, base: str) -> bool:
    """Whether a base includes its version; OpenAI's includes it in any path."""
    is_any = "any_path_is_a_version" in FORMATS[provider.formats[0]].quirks
    return ends_in_version(base) or (is_any and urlsplit(base).path != "")


def _with_version_once(segments: list[str], *, has_version: bool) -> list[str]:
    """A path without leading versions if its base has one, else with exactly one."""
    versions = len(list(takewhile(_CLIENT_VERSIONS.__contains__, segments)))
    return segments[versions if has_version else max(versions - 1, 0) :]


def _query(provider: Provider, format: FormatName, query: str) -> str:
    """The client's query, quoted. A key in it only goes to providers that read one there, and not
    together with ours.
    """
    takes_key = (provider.auth == "query" or "key_in_query" in FORMATS[format].quirks) and not provider.api_keys
    parts = [part for part in query.split("&") if part and (takes_key or unquote(part.partition("=")[0]) != "key")]
    return f"?{quote('&'.join(parts), safe=_QUERY_SAFE)}" if parts else ""
