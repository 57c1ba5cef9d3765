"""Which forms of tools a server takes: names, schemas, and pictures among results. A row of each provider has one.

What every server takes is written for all: a schema that is an object with `properties`, arrays with `items`, no
keywords of old drafts.
"""

from __future__ import annotations

from msgspec import Struct

from thoughtline.providers.sources import UNVERIFIED, Source, seen

USUAL_NAMES = r"[a-zA-Z0-9_-]{1,64}"
LETTER_FIRST = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"


class ToolForms(Struct, frozen=True, gc=False):
    """What a server takes. `names` is a pattern of whole names.

    `has_plain_top`: no `anyOf`, `oneOf`, `allOf`, `enum` or `not` at the top of a schema. `has_bare_unions`: no `type`
    beside an `anyOf`. `has_bare_references`: nothing beside a `$ref`. `has_flags`: `true` and `false` are schemas.
    `sees` is a pattern of models that take pictures and files.
    """

    names: str = USUAL_NAMES
    has_plain_top: bool = True
    has_bare_unions: bool = False
    has_bare_references: bool = False
    has_flags: bool = True
    sees: str = ""
    source: Source = UNVERIFIED


USUAL_FORMS = ToolForms(
    source=seen(
        "github/copilot-cli#1825, moonrepo/moon#2396",
        "2026-11",
        'OpenAI: "object schema missing properties", "array schema missing items"; Anthropic: "JSON schema is invalid. '
        'It must match JSON Schema draft 2020-12"',
    )
)
