"""Layouts change by numbered, named steps that are never edited after a release. Each engine keeps its own list."""

from __future__ import annotations

from msgspec import Struct

from thoughtline.values.errors import NewerStore


class Migration(Struct, frozen=True):
    """One step. `statements` are for the engine that lists it."""

    number: int
    name: str
    statements: tuple[str, ...]


def missing(migrations: tuple[Migration, ...], version: int) -> tuple[Migration, ...]:
    """The steps that a store of this version lacks. A version beyond the last step is refused."""
    newest = migrations[-1].number
    if version > newest:
        raise NewerStore(
            f"the store has layout {version}, but this program knows layouts up to {newest} only: use a newer version"
        )
    return tuple(step for step in migrations if step.number > version)
