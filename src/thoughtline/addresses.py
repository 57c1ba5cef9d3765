"""Where a request goes: a provider's row, a format and a model give one address, and the client never chooses the host.

A base is what the provider's own SDK takes; the format's path is appended, and no version (`/v1`) is doubled. What a
client may say of the path is a model's name, which is quoted, or a passed-through path, which is refused if it could
lead anywhere but below the base.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from itertools import takewhile
from urllib.parse import quote, unquote, urlsplit

from thoughtline.catalogue import Provider
from thoughtline.formats import FORMATS, USUAL
from thoughtline.formats.paths import Action, ends_in_version
from thoughtline.providers.vertex import HOST as LOCATED_HOST
from thoughtline.providers.vertex import host_of
from thoughtline.values.errors import AddressError, AddressRefused
from thoughtline.values.turns import FormatName

MAX_DECODINGS = 4
"""How often a path may be percent-encoded over; nobody means more, and each server may undo one."""

_CLIENT_VERSIONS = frozenset({"v1", "v1beta", "v1alpha"})
"""What clients put in front of a path by themselves: OpenAI's, Anthropic's and Google's SDKs."""

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DOTS = re.compile(r"\.{1,2}(;.*)?$")
"""A segment that names this or the outer folder; some servers cut what follows a semicolon off before they look."""

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9_.-]{1,255}))(?::[0-9]{0,5})?")
"""RFC 3986, 3.2.2 and 3.2.3, as far as names of hosts in use go."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".home")
"""RFC 6761, RFC 6762, RFC 8375, what ICANN keeps for private use, and what routers and companies make up."""

_LOCATION = re.compile(r"[a-z0-9-]{1,63}")
_PATH_SAFE = "/%:@!$&'()*+,;=~-._"
_QUERY_SAFE = "/%:@!$&'()*+,;=~-._?[]|{}"


def server_url(host: str, port: int) -> str:
    """The address of a server that listens there; IPv6 hosts stand in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def own_url(host: str, port: int) -> str:
    """The same as a program of that machine calls it: nothing is at the address that means all of them."""
    return server_url({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


def host_name(authority: str) -> str | None:
    """The host of a `Host` header, an origin or a setting, as it is compared; None if there is none in it.

    Case, a port and the root's dot don't count, nor how an IPv6 address is spelled.
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
    """Whether a host is of this machine or of its network, as far as its name tells: no stranger reaches it directly.

    A name without a dot is one of the network's own (`ollama` of a compose file), and no other can be told by itself.
    """
    name = host_name(f"[{host}]" if ":" in host and "[" not in host else host)
    if name is None:
        return True
    if is_private_address(name) is not None:
        return bool(is_private_address(name))
    return "." not in name or name.endswith(_PRIVATE_SUFFIXES)


def is_private_address(text: str) -> bool | None:
    """Whether an address is of this machine or of its network; None if it is no address.

    Loopback, private, link-local, unique local, shared by carriers; also where IPv6 only wraps an IPv4 address.
    """
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        return not (found.ipv4_mapped or found.sixtofour or _translated(found) or found).is_global
    return not found.is_global


def is_this_machine(peer: str) -> bool:
    """Whether an address is of the loopback interface; none at all is that of a socket in the file system."""
    try:
        address = ipaddress.ip_address(peer) if peer else None
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return address is None or (mapped or address).is_loopback


@lru_cache(256)
def is_loopback_url(url: str) -> bool:
    """Whether an address is of this machine, as its name says. No forward proxy is a way there: it would look for the
    server on its own machine, and see the key."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    return host == "localhost" or host.endswith(".localhost") or (host != "" and is_this_machine(host))


def _translated(found: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """NAT64: RFC 6052."""
    return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) if found in _NAT64 else None


def hosts_of(provider: Provider) -> frozenset[str]:
    """Every host that a provider is asked at."""
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
    """Where a provider takes a request of a format. `query` is the client's own, without its question mark, `place` the
    project and location that it names."""
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
    """The host of a path on Vertex, which follows from its location, if that is a plain word: else the path would
    choose who gets a token. One of settings stays."""
    parts = urlsplit(base)
    named = segments[segments.index("locations") + 1 :] if "locations" in segments else []
    location = named[0] if named else "global"
    if not _LOCATION.fullmatch(location):
        raise AddressRefused("the location in the path is not a plain word")
    return f"{parts.scheme}://{host_of(location) if parts.netloc == LOCATED_HOST else parts.netloc}"


def passthrough_address(provider: Provider, path: str, query: str) -> str:
    """Where any other path of a provider is. `path` is as the client wrote it, escapes and all."""
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
    """Where a provider lists its models, if it does."""
    base = _base(provider, provider.base_url)
    if USUAL.name in provider.paths or _has_version(provider, base):
        return f"{base}/models"
    return f"{base}/{FORMATS[provider.formats[0]].version}/models"


def with_query_key(url: str, key: str) -> str:
    """An address with a key in it, as `auth = "query"` shows one."""
    return f"{url}{'&' if '?' in url else '?'}key={quote(key, safe='')}"


def without_query_key(url: str) -> str:
    """An address without a key in it, however that is written."""
    base, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part and unquote(part.partition("=")[0]) != "key"]
    return f"{base}?{'&'.join(parts)}" if parts else base


def rebased(provider: Provider, base_url: str) -> dict[FormatName, str]:
    """The other bases of a provider that has moved: each stands beside the new base as it stood beside the old one.

    On the same host they stay. There are none where the new base has a path in which the old one can't be told.
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
    """The segments of a path that stays where it is, however often it is decoded on its way."""
    if _BROKEN_ESCAPE.search(path):
        raise AddressRefused("the path has a stray percent sign: write it as %25")
    segments = path.removeprefix("/").split("/")
    if "" in segments[:-1]:
        raise AddressRefused("the path has an empty segment: //")
    for segment in segments:
        _check_segment(segment)
    return segments


def _check_segment(segment: str) -> None:
    """Slashes may stand in it escaped (an ARN of AWS), if whoever decodes them finds plain names between them."""
    for _ in range(MAX_DECODINGS):
        names = segment.split("/")
        is_plain = not any(_DOTS.match(name) for name in names) and (len(names) == 1 or all(names))
        if not is_plain or "\\" in segment or not segment.isprintable():
            raise AddressRefused(
                "the path could lead out of its provider: dots, backslashes or control characters in disguise"
            )
        decoded = unquote(segment, errors="surrogateescape")  # what is no UTF-8 is not printable either
        if decoded == segment:
            return
        segment = decoded
    raise AddressRefused("the path is encoded too many times")


def _has_version(provider: Provider, base: str) -> bool:
    """Whether a base says which version it is of; one of OpenAI's does with any path, whatever that is called."""
    is_any = "any_path_is_a_version" in FORMATS[provider.formats[0]].quirks
    return ends_in_version(base) or (is_any and urlsplit(base).path != "")


def _with_version_once(segments: list[str], *, has_version: bool) -> list[str]:
    """A path whose leading versions are said by its base, or once by itself."""
    versions = len(list(takewhile(_CLIENT_VERSIONS.__contains__, segments)))
    return segments[versions if has_version else max(versions - 1, 0) :]


def _query(provider: Provider, format: FormatName, query: str) -> str:
    """The client's query, quoted. A key in it goes only to who reads one there, and not beside one of ours."""
    takes_key = (provider.auth == "query" or "key_in_query" in FORMATS[format].quirks) and not provider.api_keys
    parts = [part for part in query.split("&") if part and (takes_key or unquote(part.partition("=")[0]) != "key")]
    return f"?{quote('&'.join(parts), safe=_QUERY_SAFE)}" if parts else ""
