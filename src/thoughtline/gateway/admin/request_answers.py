"""The admin API's answers about requests: the latest ones, and one of them explained."""

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
    "ok",  # answered, and nothing had to be done
    "restored",  # answered; turns were restored, filled or stripped before it was sent
    "blank",  # answered; a turn was sent with the smallest accepted filler because its reasoning was not found
    "lost",  # answered; a turn was sent without its reasoning, or the provider ignored some
    "late",  # answered; the end of the answer did not wait until its turn was saved
    "healed",  # refused because of its reasoning, then corrected and answered
    "refused",  # the provider's 4xx went to the client
    "failed",  # the provider's 5xx, a broken connection, or no answer
    "declined",  # the gateway's own error
    "gone",  # the client disconnected before the end
]


class Tokens(AdminAnswer, frozen=True):
    """Counts by the provider. `output` includes `reasoning`, `input` includes `cached`."""

    input: int
    output: int
    reasoning: int
    cached: int


class RequestRow(AdminAnswer, frozen=True):
    """A request, as far as it is known. `id` is that of the header `x-thoughtline-request`, of the log and of sessions.

    `outcome` is its result in one word, `summary` in a sentence, `message` the first words of an error. `verdict` says
    whose fault a failure is (`client`, `provider`, `gateway`, `network`), why, and what helps; it is also in the header
    `x-thoughtline-verdict` and in the log. `mode` is the replay mode, and `would` what it would have done if it only
    observes. `route` is the name in `[routes]` that led to `provider` and `model`; `action` is `generate`,
    `count_tokens`, `models` or `passthrough`. `caller` is the name of its client key, `client` a name that
    `/api/connect` lists, or empty. Counts are those of the header `x-thoughtline-replay`; `kept` counts turns whose
    reasoning the client sent itself. `ownMs` was spent here, `upstreamMs` waiting for providers, `firstByteMs` until
    the first byte of the answer's body was sent, `totalMs` in total.
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
    """Requests, newest first, including active ones. `cursor` requests the next page; it is null on the last.

    `isWhole` is false if another worker or replica did not answer in time.
    """

    requests: list[RequestRow]
    cursor: str | None
    is_whole: bool


class RefusalView(AdminAnswer, frozen=True):
    """A provider's 4xx or 5xx. `words` are the first 500 characters of its text, with keys masked.

    `rule` is the rule of `docs/findings.md` and `remedy` what helps; both are empty if it is not about reasoning.
    `place` is a JSON pointer or the id of an item. `meaning` is the same as a sentence. `wasHealed`: the request was
    corrected, sent again and answered.
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
    """The contract used, and its source; `learned` is what refusals changed."""

    name: str
    kind: str
    scope: str
    takes: str
    carrier: str
    source: str
    is_overridden: bool
    learned: list[str]


class AttemptView(AdminAnswer, frozen=True):
    """One attempt at a target. `preparedMs`, when work on its body began, and `startedMs`, when it was sent, count from
    the beginning of the request; `lookUpMs` of the time between was spent looking for turns in the store. `error` is
    why it gave no answer.

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
    prepared_ms: float | None
    look_up_ms: float
    started_ms: float
    upstream_ms: float
    bytes_up: int
    sends: int
    refusals: list[RefusalView]


class TurnView(AdminAnswer, frozen=True):
    """What was done for one turn of the model, and why. Turns without reasoning that need none are omitted.

    `place` is a JSON pointer into the request in the format of the last attempt; `at` its number there. `why` is the
    evidence for the record of a restored turn, and the reason for any other; `words` says both for people. `record` is
    the id of the entry in `/api/cache/reasoning` that was used.
    """

    place: str
    at: int
    treatment: Treatment
    why: Reason
    words: str
    record: str | None


class Bodies(AdminAnswer, frozen=True):
    """Only with `[debug] keep_bodies`: what the client sent, and what was sent last. Keys are masked; null is unknown.

    `isCut`: longer than the part that is kept.
    """

    client: str | None
    upstream: str | None
    is_cut: bool


class RequestView(RequestRow, frozen=True):
    """A request explained: its attempts, what was done for each turn, its findings.

    The end of the answer was held back from `endedMs` on for `holdMs`, and `saveMs` of that went into saving the turn;
    `endedMs` is null if no turn ended.
    """

    tried: list[AttemptView]
    ended_ms: float | None
    hold_ms: float
    save_ms: float
    turns: list[TurnView]
    findings: list[Place]
    bodies: Bodies | None
