"""The wording of providers' refusals about reasoning: each sentence once, as a template.

    says("missing", "restore", "<field:reasoning_content> is missing in message {index}…, see our pages")

The classifier reads a template as a pattern, the auditor writes it as a sentence. A backtick may be missing or be
another quote, since relays and log lines lose them; `~` marks a place where a quote may be, although the provider
writes none. `<a|b>` are regular expressions, of which the auditor writes the first; `<field:a|b>` names a group
(`setting` stands for both `field` and `path`), and `{blanks}` are those of `_BLANKS`. Text after `…` is written and
never compared. A template is matched from the first word: a body that only quotes such a sentence is not a refusal.

Groups name the place: `path` is a dotted path into the request, `index` a message counted from 0, `position` a content
counted from 1, `item` an item's id, `field` the field in question.
"""

from __future__ import annotations

import functools
import re
from typing import Literal, TypeAlias

from msgspec import Struct

from thoughtline.providers.sources import UNVERIFIED, Source

RuleCode = Literal[
    "missing",
    "misplaced",
    "reordered",
    "altered",
    "foreign",
    "truncated",
    "unpaired",
    "duplicated",
    "forbidden",
    "stale-id",
    "sentinel",
    "bound-prefix-changed",
    "dropped",
    "withheld",
    "ambiguous",
    "other-frame",
    "other-user",
    "checkpoint-oversize",
    "checkpoint-withheld",
    "untranslatable",
    "unopened",
    "held-state",
    "signed-request",
    "signed-elsewhere",
    "setting",
    "door",
    "asked-to-think",
]
Rule: TypeAlias = (
    # A provider never reports `reordered`, `truncated` or `sentinel`: it reports `altered` or `foreign`.
    RuleCode
    # Rules that only providers report: the thinking setting does not fit the model, the content or another parameter.
    | Literal[
        "thinking-off",  # the final turn has thinking, and it is switched off
        "thinking-last",  # a turn ends with thinking
        "thinking-conflict",  # another parameter excludes thinking
        "thinking-mode",  # this model can't switch thinking that way
        "thinking-unsupported",  # this model never thinks
    ]
    # `setting` and `door` have both uses: what a provider refuses, and what was changed because of it.
)
Remedy = Literal[
    "restore",  # put back what was lost
    "restore_exact",  # put back the stored blocks with their order and bytes; never remove anything
    "strip_field",  # remove this reasoning member everywhere; another one may be right
    "drop_member",  # remove the named member, and nothing else
    "strip_seal",  # remove the sealed part, keep text and summary
    "unpair",  # remove item ids, keep call ids and ciphertext
    "drop_item",  # remove the reasoning item and the ids of the item it was paired with; of duplicates, the later one
    "drop_block",  # remove the thinking block
    "bare_loop",  # remove the thinking of the turn that is still going on
    "add_filler_text",  # fill an empty required member with the smallest accepted value
    "pause_thinking",  # switch thinking off for this request
    "stop_asking",  # remove everything that asks for thinking
    "adapt_thinking",  # use the only thinking mode that the model has
    "change_setting",  # change the named setting as little as possible
    "change_door",  # use another endpoint of the provider
    "pass_on",  # about reasoning, but only the client can fix it
]
LearnedScope = Literal["", "calls_after_user", "calls", "all_with_tools", "loop_head", "first_call_of_step", "pairs"]
"""The turns that a refusal is about, in the terms of contracts; empty if it is about none in particular."""

_AT = r"(?:(?P<path>[\w.*\[\]]{1,160}): )?"
_CARRIER = r"(?P<field>reasoning|reasoning_(?:content|details|opaque|text)|thinking)"
_MESSAGE_FIELD = rf"(?P<path>messages[.\[]\d{{1,6}}\]?(?:\.[\w-]{{1,60}})?)\.{_CARRIER}"
# Apart from the members of a list's element, some servers write its role or type into the path:
# `messages.1.assistant.refusal`.
_ELEMENT = (
    r"(?P<path>(?:messages|input|contents)[.\[]\d{1,6}\]?(?:\.[\w-]{1,60})?"
    r"(?:\.(?:content|tool_calls|parts)[.\[]\d{1,6}\]?(?:\.[\w-]{1,60})?)?)"
)
_MEMBER = r"(?P<field>(?!(?:role|content|parts|tool_calls|tool_call_id|call_id|name|type|id)\b)[\w$@-]{1,80})"

_BLANKS: dict[str, tuple[str, str]] = {
    "index": (r"(?P<index>\d{1,6})", "{index}"),
    "position": (r"(?P<position>\d{1,6})", "{position}"),
    "id": (r"(?P<item>[\w-]{1,128})", "{id}"),
    "name": (r".{1,200}?", "{name}"),
    "found": (r"\w{1,40}", "{found}"),
    "at": (_AT, "messages.{index}.content.{item}: "),
    "at_first": (_AT, "messages.{index}.content.0.type: "),
    "at_message": (_AT, "messages.{index}: "),
    "block": (r"(?P<path>messages\.\d{1,6}\.content\.\d{1,6})\.(?:redacted_)?thinking", ""),
    "input": (r"(?P<path>input\[\d{1,6}\])", ""),
    "whose": (r"(?:for item (?P<item>[\w-]{1,128}) |\S{1,1500} )?", "for item {id} "),
    "message": (r"(?P<path>messages\.\d{1,6})", "messages.{index}"),
    "on_message": (r"(?: - '(?P<path>messages\.\d{1,6})')?", ""),
    "message_field": (_MESSAGE_FIELD, "messages[{index}].{field}"),
    "location": (f"{_MESSAGE_FIELD}: ", ""),  # written before the sentence by the reader of bodies
    "carrier": (_CARRIER, "{field}"),
    "element": (_ELEMENT, ""),
    "member": (_MEMBER, ""),
    "element_member": (rf"{_ELEMENT}\.{_MEMBER}", ""),
}
_QUOTE = r"[`'\"]?"
_PIECES = re.compile(r"([`~]|\{\w{1,20}\}|<[^<>]*>)")
_NAMED = re.compile(r"(field|path|setting):")


class RefusalTemplate(Struct, frozen=True, gc=False):
    """One way to be refused.

    `family` names the provider whose rule it is; empty for the row's own. The sentence's `field` group takes precedence
    over `field`. `dropped` is the pattern of the named member (`formats/leaving_out.py`), where a sentence does not
    name the place. If `codes` is not empty, the error must have one of them. `counts_from` is the number that `path`
    uses for the first element, `scope` the turns that must have what is missing. `also` are further rules that it
    reports.
    """

    rule: Rule
    remedy: Remedy
    template: str
    family: str = ""
    field: str = ""
    dropped: str = ""
    codes: frozenset[str] = frozenset()
    statuses: tuple[int, ...] = (400,)
    counts_from: int = 0
    scope: LearnedScope = "calls"
    also: tuple[RuleCode, ...] = ()
    source: Source = UNVERIFIED

    @property
    def sentence(self) -> re.Pattern[str]:
        """Return the template as a pattern."""
        return _sentence(self.template)

    def text(self, **facts: object) -> str:
        """Return the sentence as the provider writes it."""
        text = "".join(_shown(piece, facts) for piece in _PIECES.split(self.template.replace("…", "")))
        for name, value in facts.items():
            text = text.replace("{" + name + "}", str(value))
        return text


says = RefusalTemplate
"""How rows write a template: rule, remedy and sentence as positional arguments, the rest by name."""


@functools.cache
def _sentence(template: str) -> re.Pattern[str]:
    pieces = _PIECES.split(template.partition("…")[0])
    return re.compile("".join(map(_pattern, pieces)), re.ASCII)


def _pattern(piece: str) -> str:
    if piece in ("`", "~"):
        return _QUOTE
    if piece.startswith("{"):
        return _BLANKS[piece[1:-1]][0]
    if not piece.startswith("<"):
        return re.escape(piece)
    named = _NAMED.match(piece, 1)
    if named is None:
        return f"(?:{piece[1:-1]})"
    inner = piece[named.end() : -1]
    return f"(?P<path>(?P<field>{inner}))" if named[1] == "setting" else f"(?P<{named[1]}>{inner})"


def _shown(piece: str, facts: dict[str, object]) -> str:
    """Return the auditor's text for a piece: a fact, or the first of the expressions if it is plain text."""
    if piece == "~":
        return ""
    if piece.startswith("{"):
        return _BLANKS[piece[1:-1]][1]
    if not piece.startswith("<"):
        return piece
    named = _NAMED.match(piece, 1)
    if named and named[1] in facts:
        return str(facts[named[1]])
    first = piece[named.end() if named else 1 : -1].partition("|")[0]
    return "" if first.startswith("(?") else first.replace("\\", "")
