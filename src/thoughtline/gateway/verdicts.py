"""A verdict on every failure: whose fault it is, the cause, and one remedy.

Only this module has the sentences. The client gets one in the header `x-thoughtline-verdict`, and in the message if the
error is ours; the log, `explain`, the dashboard and `doctor` show the same one. No verdict quotes text from outside: a
provider's own words are shown next to it, masked.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from thoughtline.failover.failures import TargetFailure
from thoughtline.formats.errors import is_page
from thoughtline.gateway.connecting import Cause, ConnectFailed
from thoughtline.replay.refusal_words import REMEDIES, RULES
from thoughtline.replay.refusals import Refusal
from thoughtline.values.errors import Declined, Fault

HEADER = b"x-thoughtline-verdict"

Whose = Literal["client", "provider", "gateway", "network"]
_WHOSE: dict[Fault, Whose] = {
    Fault.CLIENT: "client",
    Fault.UPSTREAM: "provider",
    Fault.OURS: "gateway",
    Fault.NETWORK: "network",
}


class Verdict(NamedTuple):
    """Who has to change something, why it failed, and what to do. The last two are sentences."""

    whose: Whose
    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.whose}: {self.cause} {self.remedy}".rstrip()


def of_error(error: Declined) -> Verdict:
    """Return the verdict on an error of our own, which has all three."""
    return Verdict(_WHOSE[error.fault], str(error), error.remedy)


def cut(provider: str) -> Verdict:
    """Return the verdict on a response that broke off."""
    return Verdict("provider", f"{provider} broke off in the middle of its response.", "Send the request again.")


GONE = Verdict("client", "The client disconnected before the end of the response.", "")


# --- a provider that gave no response ---------------------------------------------------------------------------------


class _Cause(NamedTuple):
    """Why no connection was made, and what helps. `{base}` stands for the setting's name."""

    means: str
    remedy: str


_NETWORK = "Check the network connection and {base}; behind a company proxy, set HTTPS_PROXY."
_AUTHORITY = "Set SSL_CERT_FILE to the PEM file of that authority."
_LOGIN = "Write it into the proxy's address: HTTPS_PROXY=http://user:password@host:port."
_CAUSES: dict[Cause, _Cause] = {
    "proxy_login": _Cause("the proxy {proxy} wants a login (407)", _LOGIN),
    "proxy_scheme": _Cause(
        "the proxy {proxy} is of a kind that is not supported",
        "Set HTTPS_PROXY to a proxy whose address begins with http:// or socks5://.",
    ),
    "dns": _Cause("its host name is unknown (DNS)", _NETWORK),
    "refused": _Cause("nothing listens there (connection refused)", "Start that server, or correct {base}."),
    "unreachable": _Cause("there is no route to it", _NETWORK),
    "unknown_authority": _Cause("its certificate is signed by an authority that is not known here", _AUTHORITY),
    "self_signed": _Cause(
        "its certificate is self-signed, and not trusted here",
        "Trust it, or sign one with an authority of your own: docs/gateway.md#a-certificate-of-your-own.",
    ),
    "expired": _Cause("its certificate has expired", "Renew it, or set this machine's clock."),
    "not_valid_yet": _Cause("its certificate is not valid yet", "Set this machine's clock."),
    "other_name": _Cause("its certificate is for another host name", "Use the certificate's host name in {base}."),
    "certificate": _Cause("its certificate is not valid", _AUTHORITY),
    "no_tls": _Cause("it does not speak TLS", "Write http:// in {base} if it speaks plain HTTP."),
    "timeout": _Cause("no connection in time", _NETWORK),
    "other": _Cause("no connection could be made", _NETWORK),
}


def unreachable(provider: str, url: str, failed: ConnectFailed) -> Declined:
    """Return the error for a failed connection."""
    parts, cause, proxy = urlsplit(url), _CAUSES[failed.cause], failed.proxy
    remedy = cause.remedy.format(base=f"[providers.{provider}] base_url")
    where = f"{provider} ({parts.netloc.rpartition('@')[2]}) can't be reached"
    means = cause.means.format(proxy=proxy)
    if proxy and failed.cause not in ("proxy_login", "proxy_scheme"):
        means = f"the proxy {proxy} can't be used, {means}"
        remedy = "Correct HTTP_PROXY and HTTPS_PROXY, or list the host in NO_PROXY."
    return Declined(502, "upstream_unreachable", f"{where}: {means}.", remedy, fault=Fault.NETWORK)


def late(provider: str) -> Declined:
    """Return the error for a response that did not begin in time."""
    return Declined(
        504,
        "upstream_timeout",
        f"{provider} did not answer in time.",
        f"Set a longer [providers.{provider}] timeout, or use a faster model.",
    )


def broken_off(provider: str) -> Declined:
    return Declined(
        502,
        "upstream_failed",
        f"{provider} closed the connection before it answered.",
        f"Send the request again; if it always does, is [providers.{provider}] base_url https:// or http://?",
    )


# --- a provider that answered with an error ---------------------------------------------------------------------------


class ProviderError(NamedTuple):
    """A provider's error. `refusal` is set if it is about reasoning, `failure` if it counts against the provider;
    `is_own_key`: the gateway's own key was used; `is_changed`: the bytes sent differ from the client's."""

    provider: str
    status: int
    words: str = ""
    code: str = ""
    refusal: Refusal | None = None
    failure: TargetFailure | None = None
    is_own_key: bool = False
    is_changed: bool = False


_TOO_LONG = re.compile(
    r"context.{0,12}(length|window|limit)|(prompt|input|request).{0,20}too (long|large)|maximum.{0,20}tokens"
    r"|too many (input )?tokens|exceeds? the (maximum|limit)|string_above_max_length",
    re.IGNORECASE,
)
_UNPAID = re.compile(r"quota|balance|credit|billing|payment|arrear|overdue", re.IGNORECASE)
UNCHANGED = "thoughtline changed nothing in this request; you would have got this without it."
CHANGED = "thoughtline changed this request; send it with x-thoughtline-replay: off to see what it gets unchanged."


def of_response(error: ProviderError) -> Verdict:
    """Return the verdict on a provider's 4xx or 5xx."""
    name, status = error.provider, error.status
    if error.refusal is not None:
        cause = f"{name} refused it with {status}: {RULES.get(error.refusal.rule, error.refusal.rule)}."
        return Verdict(
            "client", cause, f"What helps: {REMEDIES[error.refusal.remedy]}; `thoughtline explain` shows each turn."
        )
    if status == 407:
        return Verdict("network", "A proxy wants a login (407).", _LOGIN)
    if is_page(error.words.encode()) or error.words.startswith(PAGE):
        return _of_page(error)
    if status >= 500:
        return Verdict("provider", f"{name} answered {status}: {_trouble(status)}.", _WAIT.format(name=name))
    if status in (401, 402, 403, 429) or (error.failure is not None and error.failure.kind in ("key_rejected", "busy")):
        return _of_account(error)
    if status == 413 or _TOO_LONG.search(f"{error.code} {error.words}"):
        remedy = "Compact the conversation, or use a model with a larger context."
        return Verdict("client", f"{name} answered {status}: the request is longer than the model accepts.", remedy)
    if error.failure is not None:
        return Verdict("provider", f"{name} answered {status}: it reports a fault of its own.", _WAIT.format(name=name))
    if status == 404:
        remedy = f"Check the model's name and [providers.{name}] base_url. {_changes(error)}"
        return Verdict("client", f"{name} answered 404: it knows no such model or address.", remedy)
    return Verdict("client", f"{name} refused it with {status}, and not for its reasoning.", _changes(error))


PAGE = "a web page"
_WAIT = "Send it again later; if it lasts, see {name}'s status page, or add a route to another provider."


def _changes(error: ProviderError) -> str:
    return CHANGED if error.is_changed else UNCHANGED


def _of_page(error: ProviderError) -> Verdict:
    """Return the verdict on HTML instead of JSON: from the provider's frontend, or something in between."""
    name, status = error.provider, error.status
    if status >= 500:
        return Verdict(
            "provider", f"{name} answered {status} with a web page: {_trouble(status)}.", _WAIT.format(name=name)
        )
    return Verdict(
        "network",
        f"A web page answered {status} in place of {name}.",
        f"Is [providers.{name}] base_url an API's address? A proxy or a login page in between may have answered.",
    )


def _trouble(status: int) -> str:
    return {
        503: "it is overloaded or down",
        529: "it is overloaded",
        504: "it took too long",
        524: "it took too long",
    }.get(status, "it has a fault of its own")


def _of_account(error: ProviderError) -> Verdict:
    """Return the verdict on a key that was rejected, has no credit left, or is used too often: its owner has to act."""
    name, status = error.provider, error.status
    whose: Whose = "gateway" if error.is_own_key else "client"
    key = f"[providers.{name}] api_key" if error.is_own_key else "the key that your client sends"
    if status == 402 or _UNPAID.search(f"{error.code} {error.words}"):
        return Verdict(
            whose,
            f"{name} answered {status}: the account has no credit or quota left.",
            "Top it up, or use another key.",
        )
    if status == 429 or (error.failure is not None and error.failure.kind == "busy"):
        return Verdict(
            whose,
            f"{name} answered {status}: too many requests or tokens for this account.",
            "Wait, or raise the account's limits.",
        )
    if status == 403:
        return Verdict(whose, f"{name} answered 403: this key may not do that.", f"Check what {key} is allowed to use.")
    return Verdict(whose, f"{name} answered {status}: the key was rejected.", f"Correct {key}.")
