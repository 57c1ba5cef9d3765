"""Settings that can change at runtime, in the store: every worker and replica applies them within seconds.

    file, environment, flags ── Settings ─┐
    PATCH /api/settings ── notes ── load ─┴─ merged ─▶ Settings in effect

Each setting is a separate note, so that changes of different settings don't undo each other.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from thoughtline.destinations.catalogue import CompactedBy, TagMode
from thoughtline.settings import CheckpointCount, ContinuityMode, Settings
from thoughtline.stores import Note, Store

NAMESPACE = "settings"
KEPT_SECONDS = 3650 * 86400.0
"""Notes expire; settings should stay."""

NAMES = (
    *("continuity.enabled", "continuity.count", "continuity.mode", "continuity.after_compaction_by"),
    "tags.mode",
)

Json: TypeAlias = Any


class ContinuityPatch(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[continuity]`: given values are set, null restores the file's value."""

    enabled: bool | UnsetType | None = UNSET
    count: CheckpointCount | UnsetType | None = UNSET
    mode: ContinuityMode | UnsetType | None = UNSET
    after_compaction_by: CompactedBy | UnsetType | None = UNSET


class TagsPatch(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[tags]`: given values are set, null restores the file's value."""

    mode: TagMode | UnsetType | None = UNSET


class SettingsPatch(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A change of settings."""

    continuity: ContinuityPatch = ContinuityPatch()
    tags: TagsPatch = TagsPatch()


def values_of(patch: SettingsPatch) -> dict[str, Json]:
    """Return the values of a patch by the setting's name."""
    tables: dict[str, dict[str, Json]] = msgspec.to_builtins(patch)
    return {f"{table}.{name}": value for table, values in tables.items() for name, value in values.items()}


def merged(settings: Settings, shared: SettingsPatch) -> Settings:
    """Return the settings with the shared ones applied."""
    values = values_of(shared)
    continuity = {name.partition(".")[2]: values[name] for name in values if name.startswith("continuity.")}
    return replace(
        settings,
        continuity=replace(settings.continuity, **continuity),
        tags=values.get("tags.mode", settings.tags),
    )


def patched(shared: SettingsPatch, patch: SettingsPatch) -> SettingsPatch:
    """Return the shared settings after a patch."""
    values = values_of(shared) | values_of(patch)
    tables: dict[str, dict[str, Json]] = {}
    for name, value in values.items():
        if value is not None:
            table, _, member = name.partition(".")
            tables.setdefault(table, {})[member] = value
    return msgspec.convert(tables, SettingsPatch)


async def load(store: Store) -> SettingsPatch:
    """Load the shared settings. A note that this version can't read is ignored."""
    shared = SettingsPatch()
    for note in await store.notes(NAMESPACE):
        one = _decoded(note)
        if one is not None:
            shared = patched(shared, one)
    return shared


async def keep(store: Store, patch: SettingsPatch, now: float) -> None:
    """Set a patch's values, and remove settings that it sets to null."""
    for name, value in values_of(patch).items():
        if value is None:
            await store.delete_notes(NAMESPACE, name)
        else:
            await store.put_note(Note(NAMESPACE, name, msgspec.json.encode(value), now + KEPT_SECONDS))


def _decoded(note: Note) -> SettingsPatch | None:
    table, _, name = note.key.partition(".")
    try:
        value: Json = msgspec.json.decode(note.value)
        return None if value is None else msgspec.convert({table: {name: value}}, SettingsPatch)
    except (msgspec.DecodeError, UnicodeDecodeError):  # ValidationError is one
        return None
