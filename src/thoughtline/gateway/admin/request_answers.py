"""What the admin API answers about requests: the last ones, and one of them explained."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.gateway.admin.answers import AdminAnswer, Place
from thoughtline.values.outcome import Reason, Treatment
from thoughtline.values.turns import FormatName

Phase = Literal["begun", "streaming", "done"]
RequestOutcome = Literal[
    "pending",  # it is not over
    "ok",  # answered, and nothing had to be done for it
    "restored",  # answered, and turns were restored, filled or stripped before it went up
    "blank",  # answered, and a turn went up with the least that is accepted: its reasoning was not found
    "healed",  # refused for its reasoning, corrected, answered
    "refused",  # the provider's 4xx went to the client
    "failed",  # the provider's 5xx, a broken connection, or nobody answered
    "declined",  # the gateway's own error
    "gone",  # the client left before the end
]


class Tokens(AdminAnswer, frozen=True):
    """As the provider counts them. `output` includes `reasoning`, `input` includes `cached`."""

    input: int
    output: int
    reasoning: int
    cached: int


class RequestRow(AdminAnswer, frozen=True):
    """A request, as far as it is known. `id` is that of the header `x-thoughtline-request`, of the log and of sessions.

    `outcome` is what became of it in a word, `summary` in a sentence, `message` the first words of an error. `verdict`
    says of a failure whose it is (`client`, `provider`, `gateway`, `network`), why, and what helps; it is also in the
    header `x-thoughtline-verdict` and in the log. `mode` is that of replay, and `would` what it would have done where
    it is only observed. `route` is the name in `[routes]` that led to `provider` and `model`; `action` what was asked
    for: `generate`, `count_tokens`, `models`, `passthrough`. `caller` is the name of its client key, `client` a
    name that `/api/connect` lists, or empty. Counts are as in the header `x-thoughtline-replay`, `kept` those turns
    whose reasoning the client sent itself. `ownMs` was spent here, `upstreamMs` waiting for providers,
    `firstByteMs` until the first byte of the answer's body went down, `totalMs` all in all.
    """

    id: str
    at: datetime
    phase: Phase
    outcome: RequestOutcome
    summary: str
    verdict: str
    mode: ReplayMode
    would: str
    status: int
    code: str
    message: str
    method: str
    path: str
    action: str
    tenant: str
    caller: str
    session: str | None
    agent: str | None
    client: str
    format: str
    provider: str
    model: str
    route: str
    is_streaming: bool
    attempts: int
    kept: int
    restored: int
    inherited: int
    blank: int
    stripped: int
    missing: int
    healed: int
    checkpoints: int
    captured: int
    total_ms: float
    own_ms: float
    upstream_ms: float
    first_byte_ms: float | None
    bytes_up: int
    bytes_down: int
    tokens: Tokens | None
    store: str
    worker: str


class RequestPage(AdminAnswer, frozen=True):
    """Requests, newest first, those under way among them. `cursor` asks for the next page; it is null after the last.

    `isWhole` is false where another worker or replica did not answer in time.
    """

    requests: list[RequestRow]
    cursor: str | None
    is_whole: bool


class RefusalView(AdminAnswer, frozen=True):
    """A 4xx or 5xx of a provider. `words` are the first 500 characters of what it said, keys masked.

    `rule` says which rule of `docs/findings.md` it is about and `remedy` what helps; both are empty where it is not
    about reasoning. `place` is a JSON pointer or the id of an item. `meaning` is the same as a sentence. `wasHealed`:
    the request was corrected, sent again and answered.
    """

    status: int
    at_ms: float
    words: str
    code: str
    rule: str
    remedy: str
    place: str
    meaning: str
    was_healed: bool


class ContractUsed(AdminAnswer, frozen=True):
    """What the provider was believed to demand, and why: the row's source; `learned` is what refusals changed of it."""

    name: str
    kind: str
    scope: str
    takes: str
    carrier: str
    source: str
    is_overridden: bool
    learned: list[str]


class AttemptView(AdminAnswer, frozen=True):
    """One target asked. `startedMs` counts from the beginning of the request; `error` is why it gave no answer at all.

    `endpoint` is without secrets. `isTranslated`: the client speaks another format than `format`.
    """

    provider: str
    model: str
    endpoint: str
    format: FormatName
    is_translated: bool
    contract: ContractUsed | None
    status: int
    error: str
    started_ms: float
    upstream_ms: float
    bytes_up: int
    sends: int
    refusals: list[RefusalView]


class TurnView(AdminAnswer, frozen=True):
    """What was done about one turn of the model, and why. Turns that have no reasoning and need none are left out.

    `place` is a JSON pointer into the request in the format of the last attempt; `at` its number in there. `why` is, of
    a restored turn, the evidence its record was found by, of the others the reason; `words` says both to people.
    `record` is the id of the entry in `/api/cache/reasoning` that was used.
    """

    place: str
    at: int
    treatment: Treatment
    why: Reason
    words: str
    record: str | None


class Bodies(AdminAnswer, frozen=True):
    """With `[debug] keep_bodies` alone: what the client sent, and what went up last. Keys are masked; null is unknown.

    `isCut`: longer than is kept.
    """

    client: str | None
    upstream: str | None
    is_cut: bool


class RequestView(RequestRow, frozen=True):
    """A request explained: what was tried, what was done about each turn, what was found."""

    tried: list[AttemptView]
    turns: list[TurnView]
    findings: list[Place]
    bodies: Bodies | None
