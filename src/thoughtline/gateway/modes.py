"""Replay modes, for one request, a client key, a provider, or all requests.

on        reasoning is restored, responses are captured
observe   the request is forwarded as the client sent it; what would have been done is reported, responses are captured
off       the request is forwarded as the client sent it; nothing is looked up, nothing is captured
"""

from __future__ import annotations

from typing import get_args

from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.values.errors import Declined
from thoughtline.values.outcome import REPLAY_HEADER

HEADER = REPLAY_HEADER.encode()
"""In a request: `on`, `observe` or `off`. In a response it reports what was done."""

MODES: tuple[ReplayMode, ...] = get_args(ReplayMode)


def mode_of(header: bytes, *settings: ReplayMode | None) -> ReplayMode:
    """Return the mode that a request names, or else the first of the settings that has one."""
    word = header.strip().lower().decode("latin-1")
    if word:
        for mode in MODES:
            if word == mode:
                return mode
        shown = f'"{word}" is' if len(word) <= 12 and word.isprintable() else "its value is"
        problem = f"The header {REPLAY_HEADER} is wrong: {shown} not a mode."
        raise Declined(400, "bad_replay_mode", problem, f"Send one of {', '.join(MODES)}.")
    return next((mode for mode in settings if mode is not None), "on")


def words_of(mode: ReplayMode, would: str) -> bytes:
    """Return the addition to a response's header if replay is not on."""
    parts = "".join(f", would_{part}" for part in would.split(", ") if part)
    return f", mode={mode}{parts}".encode()
