"""The available providers: the built-in ones of `providers`, and the changes from settings."""

from __future__ import annotations

import functools
import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import providers
from thoughtline.formats import FORMATS
from thoughtline.providers import AuthStyle, FactTable, Held, ProviderRow
from thoughtline.providers.row import Door, TemplateAt
from thoughtline.values.turns import FormatName

ContinuityMode = Literal["handoff", "always"]
CompactedBy = Literal["agent", "session"]
"""What a client must name so that its last reasoning is quoted after a summary; a session in either case."""

ContinuityWord = Literal["off", ContinuityMode]
TagMode = Literal["off", "markers", "lift"]
ContentWord = Literal["native", "plain"]
ReplayMode = Literal["on", "observe", "off"]


_SECRET_NAMES = re.compile(r"auth|key|token|secret|passw|pwd|credential|cookie|session|signature|jwt|bearer", re.I)
_SECRET_VALUES = re.compile(
    r"(bearer|basic|token|apikey) \S|(sk|pk|rk|gsk|key|xai|hf|ghp|gho|ghs|pat|nvapi|r8|fw|tgp|csk|pplx)[-_]\w|"
    r"github_pat_|AIza|AKIA|eyJ",
    re.I,
)
_RANDOM = re.compile(r"[A-Za-z0-9+/_=]{24,}")


def looks_secret(name: str, value: str) -> bool:
    """Whether a header holds a credential: by its name, by the usual beginnings of providers' credentials, or by
    looking random.
    """
    if not value.strip():
        return False
    if _SECRET_NAMES.search(name) or _SECRET_VALUES.match(value.strip()):
        return True
    runs = _RANDOM.findall(value)
    return any(re.search(r"[0-9]", run) and re.search(r"[A-Za-z]", run) for run in runs)


class Timeouts(Struct, frozen=True):
    """In seconds. `first_byte` is until the status line, `read` between two pieces of a body, `total` for the whole
    request.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    read: float = 300.0
    total: float = 3600.0


class Provider(Struct, frozen=True):
    """A provider as requests use it.

    `base_url` is the one that the provider's own SDK expects, empty if only settings can know it; `bases` are the URLs
    of formats on other hosts or paths, `paths` the path to append if it is not the format's own. Without `api_keys` the
    caller's own credential is forwarded. `contract` names one of `providers.CONTRACTS` that applies whatever the model
    is, `dialect` one of `providers.DIALECTS`; both are None if detection decides. `continuity`, `tags`, `content` and
    `replay` override the general settings. `is_located`: its URLs name a project and a location. `keeps` is what it
    stores of a conversation for clients that send only new turns, `counts` the formats in which it counts tokens.
    `door` is the only format to use, whatever a request needs; None if `doors`, from its row, and its errors decide.
    `template_at`: where a self-hosted server shows its chat template.
    """

    name: str
    base_url: str
    formats: tuple[FormatName, ...]
    bases: dict[FormatName, str] = {}
    auth: AuthStyle = "bearer"
    api_keys: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    timeouts: Timeouts = Timeouts()
    contract: str | None = None
    dialect: str | None = None
    streams_only: bool = False
    websocket: bool = False
    paths: dict[FormatName, str] = {}
    continuity: ContinuityWord | None = None
    tags: TagMode | None = None
    content: ContentWord | None = None
    replay: ReplayMode | None = None
    keeps: tuple[Held, ...] = ()
    counts: tuple[FormatName, ...] = ()
    is_located: bool = False
    door: FormatName | None = None
    doors: tuple[Door, ...] = ()
    template_at: TemplateAt = ""

    @property
    def has_secrets(self) -> bool:
        """Whether requests to it use a credential of the gateway."""
        if self.api_keys or not self.headers:
            return bool(self.api_keys)
        return any(looks_secret(name, value) for name, value in self.headers.items())

    @property
    def needs_callers_key(self) -> bool:
        """Whether it needs a key from the caller, because the gateway has none for it."""
        return self.auth != "none" and not self.has_secrets

    def __repr__(self) -> str:
        """Without keys and headers, which are secrets."""
        return f"Provider({self.name!r}, {self.base_url!r}, {len(self.api_keys)} keys)"


def built_in(row: ProviderRow) -> Provider:
    """A provider from its row, without keys of ours."""
    where = {"bases": row.bases, "paths": row.paths, "auth": row.auth, "keeps": row.holds, "is_located": row.is_located}
    made = Provider(row.name, row.base_url, row.formats)
    return replace(
        made, websocket=row.has_websocket, counts=row.counts, doors=row.doors, template_at=row.template_at, **where
    )


@functools.lru_cache(2)
def _listed_in(table: FactTable) -> dict[str, Provider]:
    return {row.name: built_in(row) for row in table.rows if row.formats}


PROVIDERS: dict[str, Provider] = _listed_in(providers.BUILT_IN)
"""The providers of the package."""


def listed() -> dict[str, Provider]:
    """The providers of the current table of facts."""
    return _listed_in(providers.facts())


def auth_for(provider: Provider, format: FormatName) -> AuthStyle:
    """How a provider expects its key in a format: the OpenAI APIs of Google expect a bearer token."""
    takes_bearer = "bearer_key" in FORMATS[format].quirks and provider.auth in ("x-goog-api-key", "x-api-key")
    return "bearer" if takes_bearer else provider.auth
