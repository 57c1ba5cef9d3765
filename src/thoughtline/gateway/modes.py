"""Replay switched off, or only observed: for one request, a client key, a provider, or all of them.

on        reasoning is put back, responses are captured
observe   the request goes up as the client sent it; what would have been done is reported, responses are captured
off       the request goes up as the client sent it; nothing is looked up, nothing is captured
"""

from __future__ import annotations

from typing import get_args

from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.values.errors import Declined
from thoughtline.values.outcome import REPLAY_HEADER

HEADER = REPLAY_HEADER.encode()
"""In a request: `on`, `observe` or `off`. In a response it says what was done."""

MODES: tuple[ReplayMode, ...] = get_args(ReplayMode)


def mode_of(header: bytes, *settings: ReplayMode | None) -> ReplayMode:
    """What a request says, else the first of the settings that says it."""
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
    """What a response's header adds where replay is not on."""
    parts = "".join(f", would_{part}" for part in would.split(", ") if part)
    return f", mode={mode}{parts}".encode()
