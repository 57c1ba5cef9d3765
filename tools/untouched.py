"""python -m tools.untouched [FOLDER …]    what the gateway changes of requests that lost nothing

Every recorded request that its provider accepted, and every request of the dialogues of `tools.bodies`, through the
gateway, behind the responses that came before it: it goes up byte for byte, or a listed reason says why not
(`tools/listed_changes.py`). Then once more without its reasoning: what the client had sent back is back.
The folders are those of `THOUGHTLINE_RECORDINGS` if none is named.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from tools.bodies.book import Book
from tools.bodies.clients import WIRES, Json
from tools.bodies.recorded import (
    FORMATS,
    Conversation,
    answer_of,
    conversations,
    is_stream,
    path_of,
    provider_of,
    request_of,
    settings_for,
    stream_of,
)
from tools.bodies.servers import Sent, Upstream, gateway
from tools.bodies.simulated import SIMULATORS, simulated
from tools.listed_changes import DOOR, EMPTY, LEFT_OUT, NOT_PUT_BACK, REFUSED, RESTORED, REWRITTEN

UNLISTED = "no reason is listed"
_WORDS = frozenset(
    {
        *("signature", "encrypted_content", "thoughtSignature", "thought_signature", "thinking", "reasoning_content"),
        *("reasoning", "reasoning_text", "reasoning_opaque", "redactedContent", "data", "reasoningText"),
    }
)
"""Members that hold reasoning or its seal as a string, in any of the formats."""
_CARRIERS = _WORDS | {"reasoning_details"}


class Went(NamedTuple):
    """A request as it came and as it went up, and what the gateway says it did."""

    name: str
    came: bytes
    went: bytes
    done: Mapping[str, int]
    findings: str
    is_refused: bool = False

    @property
    def is_untouched(self) -> bool:
        return self.came == self.went

    @property
    def reason(self) -> str:
        """Why it was changed. What was put back must leave alone what the client had kept."""
        if self.is_refused:
            return REFUSED
        if self.done.get("restored") and thoughts(self.came) <= thoughts(self.went):
            return RESTORED
        listed = next((why for part, why in REWRITTEN.items() if part in self.name), "")
        if not listed and without_blanks(json.loads(self.came)) == without_blanks(json.loads(self.went)):
            listed = EMPTY
        listed = listed or _FOUND.get(self.findings.partition("=")[0], "")
        return listed or f"{UNLISTED} ({self.findings or dict(self.done)})"


_FOUND = {"door": DOOR, "untranslatable": LEFT_OUT}


def without_blanks(value: Any) -> Any:
    """JSON without reasoning that says nothing: blank members, and the blocks that hold only such."""
    if isinstance(value, list):
        return [without_blanks(one) for one in value if not _is_blank(one)]
    if isinstance(value, dict):
        rest = {name: without_blanks(one) for name, one in value.items()}
        return {name: one for name, one in rest.items() if name not in _CARRIERS or not _says_nothing(one)}
    return value


def _says_nothing(value: Any) -> bool:
    return not (value.strip() if isinstance(value, str) else value)


def _is_blank(value: Any) -> bool:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind in ("thinking", "reasoning", "reasoning.text") and not set(_thoughts(value))


class Pair(NamedTuple):
    """Reasoning of a response that its client sent back, and whether it went up for one that had lost it."""

    name: str
    is_back: bool

    @property
    def reason(self) -> str:
        return next((why for part, why in NOT_PUT_BACK.items() if part in self.name), UNLISTED)


def thoughts(body: bytes) -> set[str]:
    """All reasoning and all seals of a body."""
    return set(_thoughts(json.loads(body)))


def _thoughts(value: Any, is_thought: bool = False) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _thoughts(one, is_thought)
    elif isinstance(value, dict):
        is_thought = is_thought or value.get("thought") is True or str(value.get("type")).startswith("reasoning")
        for name, one in value.items():
            if isinstance(one, str) and (name in _WORDS or (is_thought and name in ("text", "summary"))):
                yield from [one.strip()] if one.strip() else []
            elif name != "thinking" or "type" not in (one if isinstance(one, dict) else {}):
                yield from _thoughts(one, is_thought)


class Replayed:
    """Recorded conversations through a gateway: `sent` are the requests as they were, `pairs` what became of them
    without their reasoning."""

    def __init__(self, url: str, upstream: Upstream, http: httpx.Client) -> None:
        self._url, self._upstream, self._http = url, upstream, http
        self.sent: list[Went] = []
        self.pairs: list[Pair] = []

    def replay(self, conversation: Conversation) -> None:
        kept = dict(self._held(conversation, is_stripped=False))
        accepted = {number: one for number, one in kept.items() if _is_accepted(conversation.exchanges[number])}
        self.sent += accepted.values()
        back = dict(self._held(conversation, is_stripped=True)) if conversation.pairs else {}
        for came, went in conversation.pairs:
            if came in accepted and went in accepted:
                wanted = _said(conversation.exchanges[came]) & thoughts(accepted[went].came)
                if wanted:
                    name = f"{conversation.name} {came} -> {went}"
                    sent = thoughts(back[went].went)  # a thought that came in pieces goes up as one
                    self.pairs.append(Pair(name, all(any(one in other for other in sent) for one in wanted)))

    def _held(self, conversation: Conversation, *, is_stripped: bool) -> Iterator[tuple[int, Went]]:
        """Each request behind the responses before it; `is_stripped`: of a client that keeps no reasoning."""
        key = f"{conversation.name} {is_stripped}"
        for number, exchange in conversation.exchanges.items():
            self._upstream.apps = {provider_of(exchange): answer_of(exchange)}
            body = request_of(exchange, is_stripped=is_stripped)
            beta = {
                name: value
                for name, value in (exchange.get("request_headers") or {}).items()
                if name.lower() == "anthropic-beta"
            }
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json", **beta}
            response = self._http.post(self._url + path_of(exchange), content=body, headers=headers)
            yield number, went(f"{conversation.name} {number}", body, self._upstream.taken(), response)


def went(name: str, came: bytes, sent: list[Sent], response: httpx.Response) -> Went:
    """The first request that went up: what a healed one becomes is another matter."""
    words = response.headers.get("x-thoughtline-replay", "").split(", ")
    done = {one.partition("=")[0]: int(one.partition("=")[2]) for one in words if one.partition("=")[2].isdigit()}
    findings = response.headers.get("x-thoughtline-findings", "")
    return Went(name, came, sent[0].body if sent else b"{}", {key: n for key, n in done.items() if n}, findings)


def _is_accepted(exchange: Json) -> bool:
    return int(exchange.get("status") or 200) < 400


def _said(exchange: Json) -> set[str]:
    """The reasoning of a response."""
    wire = WIRES[FORMATS[exchange["family"]]]
    stream = stream_of(exchange)
    if stream is None or isinstance(exchange.get("response"), list):
        return thoughts(json.dumps(exchange.get("response")).encode())
    return thoughts(json.dumps(wire.fold(stream)).encode()) if is_stream(exchange) else set()


def replayed(known: list[Conversation]) -> tuple[list[Went], list[Pair]]:
    upstream = Upstream()
    with gateway(settings_for(known), proxy=upstream.url) as url, httpx.Client(timeout=120) as http:
        held = Replayed(url, upstream, http)
        for conversation in known:
            held.replay(conversation)
    return held.sent, held.pairs


class Kept(Book):
    """Takes down what clients of a simulator's own formats say to it who keep everything."""

    def __init__(self, only: str) -> None:
        super().__init__(only=only)
        self.sent: list[Went] = []

    def wants(self, title: str) -> bool:
        rows = [row for name, row in SIMULATORS.items() if title.startswith(f"sim {name}.")]
        own = {api.wire.format for row in rows for api in row.apis}
        return super().wants(title) and title.endswith(" kept") and any(f" {name} " in title for name in own)

    def post(self, name: str, url: str, body: bytes, *, key: str, upstream: Upstream) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        response = self._http.post(url, content=body, headers=headers)
        sent = [one for one in upstream.taken() if "/tokenize" not in one.line and "-template" not in one.line]
        if response.status_code == 200 and sent:
            one = went(name, body, sent, response)
            is_own = sent[0].line.partition("?")[0].endswith(urlsplit(url).path.rpartition("/v1")[2])
            if is_own or one.reason == DOOR:  # what its provider does not speak is translated
                refused = is_own and not one.is_untouched and self._is_refused(body, sent[0], upstream)
                self.sent.append(one._replace(is_refused=refused))
        return response

    def _is_refused(self, body: bytes, sent: Sent, upstream: Upstream) -> bool:
        """Whether the simulator refuses the client's own bytes."""
        headers = {name: value for name, value in sent.headers if name != "content-length"}
        method, path = sent.line.split(" ", 1)
        response = self._http.request(method, upstream.url + path, content=body, headers=headers)
        upstream.taken()
        return response.status_code >= 400


def told(sent: list[Went], pairs: list[Pair]) -> int:
    """Print the differences by their reasons, and a verdict; 1 if one has no reason."""
    changed, lost = [one for one in sent if not one.is_untouched], [one for one in pairs if not one.is_back]
    for title, found in (("changed", _by_reason(changed)), ("not put back", _by_reason(lost))):
        for reason, names in found:
            print(f"{title}, {len(names)}: {reason}")
            for name in names if reason != RESTORED else ():
                print(f"    {name}")
    reasons = [one.reason for one in changed] + [one.reason for one in lost]
    unlisted = sum(reason.startswith(UNLISTED) for reason in reasons)
    verdict = "ok" if not unlisted else f"{unlisted} without a reason"
    print(
        f"{verdict}: {len(sent) - len(changed)} of {len(sent)} requests untouched, "
        f"{len(changed)} changed for a listed reason; {len(pairs) - len(lost)} of {len(pairs)} pairs back"
    )
    return 1 if unlisted else 0


def _by_reason(some: Iterable[Went | Pair]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in some:
        found[one.reason].append(one.name)
    return sorted(found.items(), key=lambda pair: -len(pair[1]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.untouched")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="recordings; else those of the tests")
    parser.add_argument("--only", default="", metavar="TEXT", help="only recordings and dialogues with this name")
    chosen = parser.parse_args()
    known = [one for one in conversations(chosen.folders) if chosen.only in one.name]
    sent, pairs = replayed(known) if known else ([], [])
    dialogues = Kept(chosen.only)
    simulated(dialogues)
    return told([*sent, *dialogues.sent], pairs)


if __name__ == "__main__":
    raise SystemExit(main())
