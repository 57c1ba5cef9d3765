"""Who the caller is, and which key is used for the provider."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.destinations.credentials import account_of, tenant_of
from thoughtline.failover.health import TargetHealth
from thoughtline.gateway.access import visitor
from thoughtline.gateway.client_keys import ClientKey, KnowsKeys, NoKeys, make_secret
from thoughtline.gateway.incoming import Caller, keys_for
from thoughtline.gateway.incoming import admit as admit_visitor
from thoughtline.settings import ServerSettings, Settings
from thoughtline.values.errors import Declined

ANN = ClientKey("id", "ann", "tenant-of-ann", 0.0)
OURS = replace(PROVIDERS["deepseek"], api_keys=("provider-key",))
THEIRS = PROVIDERS["deepseek"]


class Keys(NamedTuple):
    """One key, known or not yet."""

    are_required: bool | None = True
    are_known: bool = True

    def would_be_required(self, said: bool | None) -> bool | None:
        return said

    def follow(self, settings: Settings) -> None:
        """Ignore them."""

    def find(self, credential: str) -> ClientKey | None:
        return ANN if credential == "tl-ann" and self.are_known else None

    async def look_again(self, credential: str) -> None:
        """Nothing else exists."""

    async def refresh(self) -> None:
        """Nothing changes."""


def _keys(caller: Caller, provider: Provider) -> list[str]:
    return keys_for(caller, provider, "a conversation", TargetHealth(), 0.0)


def admit(headers: dict[bytes, bytes], query: str, peer: str, keys: KnowsKeys, *, is_insecure: bool = False) -> Caller:
    return admit_visitor(visitor(headers, query, peer, "1.1"), keys, ServerSettings(insecure=is_insecure))


def _headers(credential: str) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {credential}".encode()}


def test_a_credential_is_a_tenant() -> None:
    """Always the same one, never another, and its name reveals nothing of the credential."""
    one, same, other = (tenant_of(credential, "10.0.0.1") for credential in ("sk-a", "sk-a", "sk-b"))
    assert one == same
    assert one != other
    assert "sk-a" not in one
    assert account_of("sk-a") != one


def test_without_a_credential_the_address_tells_callers_apart() -> None:
    """Callers on this machine are one tenant; each remote caller is its own."""
    assert tenant_of("", "127.0.0.1") == tenant_of("", "::1")
    assert len({tenant_of("", peer) for peer in ("127.0.0.1", "10.0.0.1", "10.0.0.2")}) == 3


def test_without_client_keys_everybody_gets_in() -> None:
    """With their own credential, or the provider's key if there is one."""
    caller = admit(_headers("sk-a"), "", "127.0.0.1", NoKeys())
    assert _keys(caller, THEIRS) == [""]
    assert _keys(caller, OURS) == ["provider-key"]


@pytest.mark.parametrize("credential", ["", "sk-a", "tl-bob", "tl-ann "])
def test_with_client_keys_only_those_get_in(credential: str) -> None:
    """The refusal does not reveal what was wrong. (White space around a header's value does not count.)"""
    if credential.strip() == "tl-ann":
        assert admit(_headers(credential), "", "", Keys()).key == ANN
        return
    with pytest.raises(Declined) as refusal:
        admit(_headers(credential), "", "", Keys())
    assert (refusal.value.status, refusal.value.code) == (401, "unknown_key")


def test_a_client_key_never_reaches_a_provider() -> None:
    """It gives access to the provider's key, and without one to nothing."""
    caller = admit(_headers("tl-ann"), "", "", Keys())
    assert caller.tenant == "tenant-of-ann"
    assert _keys(caller, OURS) == ["provider-key"]
    with pytest.raises(Declined) as refusal:
        _keys(caller, THEIRS)
    assert refusal.value.code == "no_provider_key"


def test_while_it_is_unknown_whether_there_are_keys_the_gateways_are_not_sent() -> None:
    """A store that was down at the start may hold client keys: only callers with their own credentials are served."""
    caller = admit(_headers("sk-a"), "", "127.0.0.1", Keys(are_required=None, are_known=False))
    assert _keys(caller, THEIRS) == [""]
    with pytest.raises(Declined) as refusal:
        _keys(caller, OURS)
    assert (refusal.value.status, refusal.value.code) == (503, "keys_unknown")


@pytest.mark.parametrize(
    ("keys", "credential", "expected"),
    [
        (Keys(are_required=True, are_known=False), make_secret(bytes), (503, "keys_unknown")),
        (Keys(are_required=None, are_known=False), make_secret(bytes), (503, "keys_unknown")),
        (Keys(are_required=True, are_known=False), "sk-a", (401, "unknown_key")),
        (Keys(are_required=True, are_known=False), "", (401, "unknown_key")),
        (Keys(are_required=True, are_known=True), make_secret(bytes), (401, "unknown_key")),
    ],
)
def test_keys_that_are_not_known(keys: Keys, credential: str, expected: tuple[int, str]) -> None:
    """A possibly valid key is told to wait, and not forwarded; an invalid one is refused."""
    with pytest.raises(Declined) as refusal:
        admit(_headers(credential), "", "127.0.0.1", keys)
    assert (refusal.value.status, refusal.value.code) == expected


@pytest.mark.parametrize("credential", [make_secret(bytes), make_secret(bytes)[:-1], "tl-anything"])
@pytest.mark.parametrize("are_required", [False, None])
def test_what_looks_like_a_client_key_does_not_go_up(credential: str, are_required: bool | None) -> None:
    """Even if no client key is required: it may be mistyped, revoked, another gateway's, or not known yet. With a
    provider's key in use it does no harm, because that is sent in its place."""
    for headers in (_headers(credential), {**_headers("sk-a"), b"x-api-key": credential.encode()}):
        caller = admit(headers, "", "127.0.0.1", Keys(are_required=are_required, are_known=True))
        with pytest.raises(Declined) as refusal:
            _keys(caller, THEIRS)
        assert (refusal.value.status, refusal.value.code) == (401, "unknown_key")
        if are_required is False:
            assert _keys(caller, OURS) == ["provider-key"]


def test_a_caller_is_not_free_unless_it_is_said() -> None:
    """Closed by default."""
    with pytest.raises(Declined):
        _keys(Caller("t", "c"), OURS)


@pytest.mark.parametrize(
    ("origin", "may_ask"),
    [
        (b"https://evil.example", False),
        (b"http://rebound.example:8642", False),
        (b"http://127.0.0.1:3000", True),
        (b"http://localhost:3000", True),
        (b"http://[::1]:8642", True),
        (b"vscode-file://vscode-app", True),
        (b"null", False),
        (b"", True),
    ],
)
def test_a_website_does_not_spend_our_keys(origin: bytes, may_ask: bool) -> None:
    """A page makes its visitors' browsers send requests: with its own credentials it may, with ours it may not."""
    caller = admit({**_headers("sk-a"), b"origin": origin}, "", "127.0.0.1", NoKeys())
    assert _keys(caller, THEIRS) == [""]
    if may_ask:
        assert _keys(caller, OURS) == ["provider-key"]
        return
    with pytest.raises(Declined) as refusal:
        _keys(caller, OURS)
    assert (refusal.value.status, refusal.value.code) == (403, "cross_site")


HIDDEN = replace(THEIRS, headers={"authorization": "Bearer inside"})
"""A provider whose key is in a header of the settings."""


def test_a_key_in_a_header_is_a_key_of_ours() -> None:
    """A website may not use it, no one may while the client keys are unknown, and a client key gives access."""
    page = admit({b"sec-fetch-site": b"cross-site"}, "", "127.0.0.1", NoKeys())
    unsure = admit({}, "", "127.0.0.1", Keys(are_required=None, are_known=False))
    for caller, code in ((page, "cross_site"), (unsure, "keys_unknown")):
        with pytest.raises(Declined) as refusal:
            _keys(caller, HIDDEN)
        assert refusal.value.code == code
    assert _keys(admit({}, "", "127.0.0.1", NoKeys()), HIDDEN) == [""]
    assert _keys(admit(_headers("tl-ann"), "", "", Keys()), HIDDEN) == [""]


@pytest.mark.parametrize(
    ("peer", "headers", "may_ask"),
    [
        ("127.0.0.1", {}, True),
        ("::1", {}, True),
        ("10.0.0.9", {}, False),
        ("172.17.0.1", {}, False),
        ("2001:db8::1", {}, False),
        ("127.0.0.1", {b"x-forwarded-for": b"127.0.0.1"}, False),
        ("127.0.0.1", {b"via": b"1.1 front"}, False),
    ],
)
def test_strangers_do_not_reach_what_is_near(peer: str, headers: dict[bytes, bytes], may_ask: bool) -> None:
    """Servers on this machine and its network trust their callers; the gateway's callers are not those."""
    caller = admit({**_headers("sk-a"), **headers}, "", peer, NoKeys())
    assert _keys(caller, THEIRS) == [""]
    if may_ask:
        assert keys_for(caller, THEIRS, "", TargetHealth(), 0.0, is_near=True) == [""]
        return
    with pytest.raises(Declined) as refusal:
        keys_for(caller, THEIRS, "", TargetHealth(), 0.0, is_near=True)
    assert (refusal.value.status, refusal.value.code) == (403, "provider_not_open")


def test_strangers_with_a_client_key_do_and_so_does_everybody_where_that_is_wanted() -> None:
    """`insecure = true` gives every caller of the gateway access."""
    known = admit(_headers("tl-ann"), "", "10.0.0.9", Keys())
    assert keys_for(known, OURS, "", TargetHealth(), 0.0, is_near=True) == ["provider-key"]
    anyone = admit(_headers("sk-a"), "", "10.0.0.9", NoKeys(), is_insecure=True)
    assert keys_for(anyone, THEIRS, "", TargetHealth(), 0.0, is_near=True) == [""]


def test_a_website_with_a_client_key_may_ask() -> None:
    """Its users were given one."""
    caller = admit({**_headers("tl-ann"), b"origin": b"https://chat.example"}, "", "", Keys())
    assert _keys(caller, OURS) == ["provider-key"]
