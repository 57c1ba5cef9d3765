"""A program that asks a model over HTTP and drops its reasoning: `thoughtline record` is put in front of it.

    python -m tests.recording.forgetful_client CASE whole|stream FILE

It prints what was done for each of its requests, and writes into FILE all that it has sent and got.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.gateway.forgetful_clients import Forgetful
from tests.recording.planted_secrets import KEY, OPENING, QUERY_KEY
from tests.sim.faces import CASES, HTTP, Case

TURNS = 4


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.id == name)


def main(name: str, how: str, file: Path) -> None:
    case = case_named(name)
    dialogue = Forgetful(os.environ["THOUGHTLINE_RECORDS_AT"], case, OPENING, key=KEY)
    dialogue.headers = {"x-session-id": "session-of-somebody-8f3a91c2d4", "cookie": "login=c00kie-0f-s0mebody"}
    passed = []
    for _ in range(TURNS):
        is_streaming = how == "stream"
        request = dialogue.request(is_streaming=is_streaming)
        request.url = request.url.copy_merge_params({"key": QUERY_KEY})
        response = HTTP.send(request)
        passed += [json.loads(request.content), response.text]
        sys.stdout.write(json.dumps([response.status_code, response.headers.get("x-thoughtline-replay", "")]) + "\n")
        if response.status_code != 200:
            break
        dialogue.go_on(dialogue.hear(response.content, is_streaming=is_streaming))
    file.write_text(json.dumps([*passed, dialogue.body]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
