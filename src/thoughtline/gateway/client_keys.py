"""The gateway's own client keys, with their limits on rate and concurrency.

    add ── a key, shown once ──▶ its owner          find(credential) ──▶ ClientKey | None
    └──▶ its digest, as a note of the store ──▶ every replica

A key is 256 random bits, so its SHA-256 can't be reversed by guessing, and a slower or salted digest would add nothing.
Looking up a digest does not reveal how close a guess was. A revoked key stays stored: a gateway whose last key was
revoked is closed, not open. `open_door` undoes this: it deletes all keys.

Whether callers need a key: the setting decides; otherwise they do if there is or was a key, or the marker shows that
there was one (`KeyMark`).
"""

from __future__ import annotations

import logging
import secrets
import time
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from thoughtline.destinations.catalogue import ContentWord, ReplayMode
from thoughtline.settings import Settings, check_exposure, make_private
from thoughtline.stores import Clock, LayeredStore, Note, Store
from thoughtline.values.digests import secret_digest
from thoughtline.values.errors import StoreError

log = logging.getLogger(__name__)

NAMESPACE = "client-keys"
PREFIX = "tl-"
KEPT_SECONDS = 100 * 365 * 86400.0
"""Notes expire; these never do in practice."""

LOOK_SECONDS = 1.0
"""How often the store is asked for unknown keys that callers show, so that made-up keys cause no load."""

_REVOKED = ".revoked"
"""A revocation is a separate note, so an older copy of the key that is written late can't undo it."""

_OPENED = ".opened"
"""A note that all keys were deleted, and when: a gateway that still knows some forgets them."""

_RANDOM_BYTES = 32
_CHECKSUM_LENGTH = 6

FILE_NAME = "client-keys-required"
_MARK_TEXT = "Client keys were made for this gateway: every caller needs one. `thoughtline keys clear` undoes that.\n"


class ClientKey(Struct, frozen=True, omit_defaults=True):
    """A key, without its secret. `id` is the beginning of its digest; limits of None are unlimited.

    `content` is the form of its chat answers, and `replay` whether reasoning is restored; both override settings.
    """

    id: str
    name: str
    tenant: str
    created_at: float
    expires_at: float | None = None
    requests_per_minute: int | None = None
    concurrent_streams: int | None = None
    revoked: bool = False
    content: ContentWord | None = None
    replay: ReplayMode | None = None

    def is_good(self, now: float) -> bool:
        return not self.revoked and (self.expires_at is None or now < self.expires_at)


class NewKey(NamedTuple):
    """A new key: `secret` is shown now and never again."""

    secret: str
    key: ClientKey


def make_secret(random: Callable[[int], bytes] = secrets.token_bytes) -> str:
    """Return `tl-`, 43 random characters, and a checksum that reveals a mistyped key without a lookup."""
    body = urlsafe_b64encode(random(_RANDOM_BYTES)).rstrip(b"=").decode()
    return f"{PREFIX}{body}{_checksum(body)}"


def has_checksum(credential: str) -> bool:
    """Whether a credential can be one of our keys at all."""
    body, checksum = credential.removeprefix(PREFIX)[:-_CHECKSUM_LENGTH], credential[-_CHECKSUM_LENGTH:]
    return credential.startswith(PREFIX) and len(body) == 43 and _checksum(body) == checksum


def digest_of(credential: str) -> str:
    return secret_digest(credential).hex()


def _checksum(body: str) -> str:
    code = zlib.crc32(body.encode("utf-8", "surrogatepass")).to_bytes(4, "big")
    return urlsafe_b64encode(code).decode()[:_CHECKSUM_LENGTH]


class _Revoked(Struct, frozen=True):
    at: float


class _Opened(Struct, frozen=True):
    at: float


_key_decoder = msgspec.json.Decoder(ClientKey)
_opened_decoder = msgspec.json.Decoder(_Opened)


class ClientKeys:
    """The keys that this process knows. Changes by other replicas become visible at the next `refresh`.

    `are_required`: every caller needs one; None if not known yet. `is_certain`: the durable store has been asked; until
    then there may be unknown keys.
    """

    def __init__(self, store: Store, clock: Clock, mark: KeyMark | None = None) -> None:
        self._store, self._clock, self._mark = store, clock, mark
        self._keys: dict[str, ClientKey] = {}
        self._revoked: set[str] = set()
        self._unreadable: set[str] = set()
        self._opened_at: float | None = None
        self._is_marked = False
        self.is_certain = False
        self._looked_at = float("-inf")
        self._setting: bool | None = None
        self._is_exposed = False
        self.are_required: bool | None = None

    @classmethod
    async def load(cls, store: Store, clock: Clock = time.time, mark: KeyMark | None = None) -> ClientKeys:
        """Load the keys of a store."""
        keys = cls(store, clock, mark)
        await keys.refresh()
        return keys

    def would_be_required(self, setting: bool | None) -> bool | None:
        """Whether callers would need a key with this setting."""
        if setting is not None:
            return setting
        if self._is_marked or self._keys or self._unreadable:
            return True
        return False if self.is_certain else None

    def follow(self, settings: Settings) -> None:
        """Apply these settings."""
        is_exposed = check_exposure(settings, has_client_keys=False) is not None
        self.obey(settings.server.require_client_keys, is_exposed=is_exposed)

    def obey(self, setting: bool | None, *, is_exposed: bool) -> None:
        """Apply a setting. `is_exposed`: without client keys, others could spend the providers' keys."""
        self._setting, self._is_exposed = setting, is_exposed
        self._decide()

    def _decide(self) -> None:
        """Update `are_required` after any change that it depends on."""
        is_closed = self._setting is None and self._is_exposed
        self.are_required = is_closed or self.would_be_required(self._setting)

    @property
    def are_known(self) -> bool:
        """Whether the store was asked and has the keys that were once made."""
        return self.is_certain and not (self._is_marked and self.is_empty)

    @property
    def is_empty(self) -> bool:
        """Whether there never was a key. Revoked, expired and unreadable ones count."""
        return not self._keys and not self._unreadable

    def find(self, credential: str) -> ClientKey | None:
        """Return the key for a credential, if it is valid."""
        if not has_checksum(credential):
            return None
        key = self._keys.get(digest_of(credential))
        return key if key is not None and key.is_good(self._clock()) else None

    async def look_again(self, credential: str) -> None:
        """Look in the store for an unknown key that may be valid, unless that was just done."""
        now = time.monotonic()
        if not has_checksum(credential) or now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            await self.refresh()
        except StoreError as error:
            log.warning("client keys could not be looked up: %s", error)

    def listed(self) -> tuple[ClientKey, ...]:
        """Return all keys, oldest first."""
        return tuple(sorted(self._keys.values(), key=lambda key: (key.created_at, key.id)))

    async def refresh(self) -> None:
        """Load changes of other replicas. No known key is forgotten: a store that is down returns nothing."""
        notes = {note.key: note.value for note in await self._store.notes(NAMESPACE)}
        self._forget_if_opened(notes.pop(_OPENED, None))
        for name, value in notes.items():
            if name.endswith(_REVOKED):
                self._revoked.add(name.removesuffix(_REVOKED))
            else:
                self._learn(name, value)
        for digest in self._revoked & self._keys.keys():
            self._keys[digest] = replace(self._keys[digest], revoked=True)
        self.is_certain = self.is_certain or _is_certain(self._store)
        self._look_at_mark()

    def _forget_if_opened(self, value: bytes | None) -> None:
        """Forget known keys if all keys were deleted since the last look."""
        try:
            opened_at = _opened_decoder.decode(value).at if value is not None else None
        except msgspec.DecodeError:
            return  # from a newer version: nothing changes
        if opened_at is not None and opened_at != self._opened_at:
            self._opened_at = opened_at
            self._keys, self._revoked, self._unreadable = {}, set(), set()

    def _look_at_mark(self) -> None:
        """Set the marker if there are keys, made anywhere. A later deletion of all keys removes it."""
        if self._mark is not None:
            made_at = self._mark.made_at
            if not self.is_empty:
                self._mark.set()
            elif made_at is not None and self._opened_at is not None and made_at < self._opened_at:
                self._mark.clear()
            self._is_marked = self._mark.is_set
        self._decide()

    async def open_door(self) -> int:
        """Delete all keys, so that callers need none. Returns how many there were."""
        gone = len(self._keys) + len(self._unreadable)
        await self._store.delete_notes(NAMESPACE)
        await self._keep(_OPENED, msgspec.json.encode(_Opened(self._clock())))
        await self.refresh()
        if self._mark is not None:
            self._mark.clear()
            self._is_marked = False
            self._decide()
        return gone

    def _learn(self, digest: str, value: bytes) -> None:
        try:
            self._keys[digest] = _key_decoder.decode(value)
        except msgspec.DecodeError:
            self._unreadable.add(digest)  # from a newer version: it lets no caller in, and callers still need a key

    async def add(
        self,
        name: str,
        *,
        requests_per_minute: int | None = None,
        concurrent_streams: int | None = None,
        expires_at: float | None = None,
        content: ContentWord | None = None,
        replay: ReplayMode | None = None,
    ) -> NewKey:
        """Make a key. With a valid key of the same name, it belongs to the same caller, so that keys can be rotated."""
        secret = make_secret()
        digest = digest_of(secret)
        tenant = self._tenant_of(name) or f"k-{digest[:32]}"
        key = ClientKey(
            digest[:12],
            name,
            tenant,
            created_at=self._clock(),
            expires_at=expires_at,
            requests_per_minute=requests_per_minute,
            concurrent_streams=concurrent_streams,
            content=content,
            replay=replay,
        )
        await self._keep(digest, msgspec.json.encode(key))
        self._keys[digest] = key
        self._look_at_mark()
        return NewKey(secret, key)

    async def revoke(self, name_or_id: str) -> tuple[ClientKey, ...]:
        """Revoke the key with an id, or all keys with a name. Returns those that were not revoked before."""
        found = {
            digest: key for digest, key in self._keys.items() if name_or_id in (key.id, key.name) and not key.revoked
        }
        for digest, key in found.items():
            await self._keep(digest + _REVOKED, msgspec.json.encode(_Revoked(self._clock())))
            self._revoked.add(digest)
            self._keys[digest] = replace(key, revoked=True)
        return tuple(found.values())

    def _tenant_of(self, name: str) -> str | None:
        now = self._clock()
        return next((key.tenant for key in self.listed() if key.name == name and key.is_good(now)), None)

    async def _keep(self, place: str, value: bytes) -> None:
        await self._store.put_note(Note(NAMESPACE, place, value, self._clock() + KEPT_SECONDS))


def _is_certain(store: Store) -> bool:
    """Whether a store's answer about keys is complete. A damaged file has none, as if it were gone: the marker shows
    whether there were any."""
    return not isinstance(store, LayeredStore) or store.is_settled or store.is_damaged


class KnowsKeys(Protocol):
    """The client keys. `are_required` is None while unknown; they `are_known` when the store was asked and has those
    that were once made."""

    @property
    def are_required(self) -> bool | None: ...

    @property
    def are_known(self) -> bool: ...

    def would_be_required(self, setting: bool | None) -> bool | None: ...

    def follow(self, settings: Settings) -> None: ...

    def find(self, credential: str) -> ClientKey | None: ...

    async def look_again(self, credential: str) -> None: ...

    async def refresh(self) -> None: ...


class NoKeys:
    """Client keys for a gateway that needs none."""

    are_required = False
    are_known = True

    def would_be_required(self, setting: bool | None) -> bool | None:
        return bool(setting)

    def follow(self, settings: Settings) -> None:
        """Settings don't matter here."""

    def find(self, credential: str) -> None:
        return None

    async def look_again(self, credential: str) -> None:
        """There is nothing to find."""

    async def refresh(self) -> None:
        """There is nothing to load."""


class KeyMark:
    """A file next to the admin token that marks a gateway with client keys.

    Without it, a gateway with an empty or different store would look like one that never had keys, and so be open.
    """

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        self._has_warned = False

    @property
    def is_set(self) -> bool:
        return self.made_at is not None

    @property
    def made_at(self) -> float | None:
        """When it was made; None if there is none."""
        try:
            return self.path.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return float("inf")  # it can't be read, which must not open the gateway

    def set(self) -> None:
        """Make the marker. If that fails, only the setting can replace it; this is logged once."""
        if self.is_set:
            return
        try:
            make_private(self.path.parent)
            self.path.touch(0o600)
            self.path.write_text(_MARK_TEXT)
        except OSError as error:
            if not self._has_warned:
                warning = (
                    "%s can't be written (%s): set require_client_keys = true in [server], or a lost store opens it"
                )
                log.warning(warning, self.path, error.strerror)
            self._has_warned = True

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
