"""Where visible text stands in Converse. Its streams are binary, with checksums: they are read and written anew."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline.formats.texts import Json, Texts, TextSpot, inner, objects


def _body(value: Json) -> Iterator[TextSpot]:
    for at, block in objects(inner(inner(value, "output"), "message").get("content")):
        if isinstance(block.get("text"), str):
            yield TextSpot((at,), ("output", "message", "content", at, "text"), block["text"], is_whole=True)


TEXTS = Texts(_body)
