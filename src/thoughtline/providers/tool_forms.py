"""Which forms of tools a server accepts: names, schemas, and images in results. Each provider's row has one.

Tools always get a form that every server accepts: a schema that is an object with `properties`, arrays with `items`,
and no keywords of old drafts.
"""

from __future__ import annotations

from msgspec import Struct

from thoughtline.providers.sources import UNVERIFIED, Source, seen

USUAL_NAMES = r"[a-zA-Z0-9_-]{1,64}"
LETTER_FIRST = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"


class ToolForms(Struct, frozen=True, gc=False):
    """What a server accepts. `names` is a pattern for whole names.

    `has_plain_top`: no `anyOf`, `oneOf`, `allOf`, `enum` or `not` at the top of a schema. `has_bare_unions`: no `type`
    together with `anyOf`. `has_bare_references`: nothing together with `$ref`. `has_flags`: `true` and `false` are
    schemas. `sees` is a pattern of models that accept images and files.
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
