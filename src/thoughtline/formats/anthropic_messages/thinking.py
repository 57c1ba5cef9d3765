"""How a request switches Claude's thinking: `thinking` selects the mode, `output_config` the effort."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from thoughtline.formats.json_text import NULL, encode, is_given, members, object_of
from thoughtline.formats.thinking import MemberEdit, ThinkingModes

_HOW_MUCH = ("budget_tokens", "effort")


def _edits(body: bytes, settings: Mapping[tuple[str, ...], object]) -> list[MemberEdit]:
    given = members(body)
    edits = [("thinking", _with(given.get("thinking", NULL), "thinking", settings) if settings else None)]
    if "output_config" in given or ("output_config", "effort") in settings:
        edits.append(("output_config", _with(given.get("output_config", NULL), "output_config", settings)))
    return edits


def _with(raw: Raw, name: str, settings: Mapping[tuple[str, ...], object]) -> bytes | None:
    """A member without its amounts and with the given settings; None if nothing is left."""
    before = members(raw).items() if is_given(raw) else ()
    kept: dict[str, bytes] = {key: bytes(value) for key, value in before if key not in _HOW_MUCH}
    kept |= {path[1]: encode(value) for path, value in settings.items() if path[0] == name}
    return object_of(kept.items()) if kept else None


MODES = ThinkingModes(
    words={"on": "enabled", "adaptive": "adaptive", "off": "disabled"}, switch=("thinking", "type"), edits=_edits
)
