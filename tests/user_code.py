"""A program of a user's, which type checkers read: what stands in it is public."""

from __future__ import annotations

USER_CODE = """
from typing import Any

import thoughtline
from thoughtline import Line, StoreError, audit, install, last, remember
from thoughtline.codecs import codec_for
from thoughtline.engine import Replayer
from thoughtline.line import ExchangeReport
from thoughtline.preserver import preserve_reasoning_content


class Client: ...


def tell(report: ExchangeReport) -> None:
    print(report.outcome, report.summary, [turn.words for turn in report.turns])


def talk(body: dict[str, Any]) -> Client:
    client: Client = remember(Client())
    line = Line("sqlite:///thoughts.db", tenant="ann")
    line.on_exchange(tell)
    with install(line, hosts=["api.deepseek.com"]), line.conversation(user="u17", session="42"):
        report = last()
        if report is not None:
            tell(report)
    thoughtline.uninstall()
    kept: dict[str, Any] = preserve_reasoning_content(body)
    codec = codec_for("deepseek")
    message: dict[str, Any] = codec.write_assistant({"role": "assistant"}, codec.parse_response(kept))
    print([finding.rule for finding in audit(message, provider="deepseek")], Replayer)
    return line.remember(client)


async def open_line() -> Line:
    try:
        async with Line() as line:
            return line
    except StoreError as error:
        raise SystemExit(str(error)) from error
"""
