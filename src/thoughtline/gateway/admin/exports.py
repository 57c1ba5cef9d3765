"""Tables as CSV, and a request as HAR 1.2: what other programs open."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from thoughtline.gateway.admin.request_answers import RequestView
from thoughtline.gateway.admin.requests import Whole

CSV, HAR = "text/csv", "application/har+json"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_answer(rows: Iterable[Struct], columns: Iterable[str], name: str) -> Whole:
    """Rows as lines, with a head; members of members stand in columns of their own."""
    flat = [_flat(msgspec.to_builtins(row)) for row in rows]
    known = list(dict.fromkeys((*columns, *(key for row in flat for key in row))))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(known)
    writer.writerows([_cell(row.get(key)) for key in known] for row in flat)
    return _file(text.getvalue().encode(), f"{CSV}; charset=utf-8", f"{name}.csv")


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _cell(value: object) -> object:
    """No cell begins as a formula does: spreadsheets would run it."""
    if isinstance(value, list):
        value = " ".join(map(str, value))
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def har_answer(view: RequestView) -> Whole:
    """The client's request, and one for each time that a provider was asked. Bodies are there where they are kept;
    headers are not, because they hold keys."""
    started = view.at.isoformat()
    sent = view.bodies
    entries = [
        _entry(
            started,
            view.total_ms,
            view.method,
            f"http://thoughtline{view.path}",
            status=view.status,
            body=sent.client if sent is not None else None,
            sizes=(-1, view.bytes_down),
            wait=view.first_byte_ms if view.first_byte_ms is not None else view.total_ms,
            comment=f"the client's request: {view.summary or view.outcome}",
        )
    ]
    for number, one in enumerate(view.tried):
        is_last = number == len(view.tried) - 1
        words = "; ".join(filter(None, (one.error, *(f"{each.status} {each.words}" for each in one.refusals))))
        entries.append(
            _entry(
                started,
                one.upstream_ms,
                view.method,
                one.endpoint,
                status=one.status,
                body=sent.upstream if sent is not None and is_last else None,
                sizes=(one.bytes_up, -1),
                wait=one.upstream_ms,
                comment=f"{one.provider}/{one.model}, {one.started_ms} ms after it began: {words or 'answered'}",
            )
        )
    log = {"version": "1.2", "creator": {"name": "thoughtline", "version": "1"}, "entries": entries}
    body = msgspec.json.format(msgspec.json.encode({"log": log}))
    return _file(body, HAR, f"{view.id}.har")


def _entry(
    started: str,
    total: float,
    method: str,
    url: str,
    *,
    status: int,
    body: str | None,
    sizes: tuple[int, int],
    wait: float,
    comment: str,
) -> dict[str, Any]:
    empty: dict[str, Any] = {"httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "headersSize": -1}
    request: dict[str, Any] = {"method": method, "url": url, "queryString": [], "bodySize": sizes[0], **empty}
    if body is not None:
        request["postData"] = {"mimeType": "application/json", "text": body}
    content = {"size": max(sizes[1], 0), "mimeType": "", "comment": "answers are not kept"}
    response = {
        "status": status,
        "statusText": "",
        "content": content,
        "redirectURL": "",
        "bodySize": sizes[1],
        **empty,
    }
    return {
        "startedDateTime": started,
        "time": total,
        "request": request,
        "response": response,
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": max(0.0, round(total - wait, 1))},
        "comment": comment,
    }


def _file(body: bytes, content_type: str, name: str) -> Whole:
    disposition = f'attachment; filename="{name}"'.encode()
    return Whole(body, content_type=content_type, headers=((b"content-disposition", disposition),))
