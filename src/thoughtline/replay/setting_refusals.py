"""Finds the setting of a request that a refusal is about, and the smallest change that helps.

    status, error body, the refused body  →  SettingFix: rules for settings, mends of elements, another format

A name counts only if the request has such a setting. Of settings that exclude each other, sampling gives way first,
then a forced tool, then an effort or a budget, and thinking last. A refusal that names nothing in the request is passed
on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct

from thoughtline.formats.json_text import encode, members, plain_value
from thoughtline.formats.mending import (
    EMPTY_THINKING,
    THOUGHT_PARTS,
    UNSIGNED_THOUGHTS,
    WORDS_BESIDE_THOUGHTS,
    items_of,
    mended,
)
from thoughtline.formats.request_settings import FoundSetting, settings_in
from thoughtline.providers.betas import BETA_HEADER, rules_for_betas
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.replay.error_bodies import BODY_BYTES, Complaint, complaints, plain_complaint
from thoughtline.replay.named_settings import (
    SettingWeight,
    choice_in,
    fold,
    is_called,
    is_named,
    says_off,
    weight,
    whole_choice,
)
from thoughtline.replay.plain_sentences import plain, with_names
from thoughtline.replay.setting_sentences import SettingComplaint, Shape, readings
from thoughtline.values.errors import DecodeError
from thoughtline.values.nearest import nearest_value, next_word, rank_of

STATUSES = frozenset({400, 404, 422, 500})
"""500 is a local server's template that raises: vLLM, llama.cpp."""


class Refused(NamedTuple):
    """A refused request: its settings, and what it says about thinking. `can_force_any`: a model that thinks can be
    forced to call some tool, but not a particular one. `knows_effort`: its model's thinking is controlled by an effort,
    not by a switch. `has_modes`: its format has Claude's modes."""

    body: bytes
    thinks: bool
    says_thinking: bool
    can_force_any: bool = False
    knows_effort: bool = False
    has_modes: bool = True


class SettingFix(Struct, frozen=True, gc=False):
    """What to change. `fields` are the settings concerned, for people.

    `mode` is a refused thinking mode, `modes` those that the sentence offers. `is_always_on`: thinking can't be
    switched off. `doors` are the endpoints to use instead; `closed` those that refuse. `is_accounts`: it holds for the
    account of the request. `sentence` is its source.
    """

    fields: tuple[str, ...] = ()
    rules: tuple[SettingRule, ...] = ()
    mends: tuple[str, ...] = ()
    mode: str = ""
    modes: tuple[str, ...] = ()
    is_always_on: bool = False
    doors: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    is_accounts: bool = False
    is_lasting: bool = True
    sentence: str = ""
    is_wrapped: bool = False


def read_fix(status: int, answer: bytes, refused: Refused) -> SettingFix | None:
    """Return what helps against a refusal of settings; None if it is about something else, or too vague."""
    if status not in STATUSES or len(answer) > BODY_BYTES:
        return None
    try:
        found = settings_in(refused.body)
    except DecodeError:
        return None
    plain = plain_complaint(answer)
    for complaint in (*complaints(answer), *([plain] if plain else [])):
        fix = _mend(complaint, refused) or _fix(complaint, found, refused) or _beta(complaint)
        if fix is not None:
            return fix
    return None


_MENDS = (
    (re.compile(r"each `?thinking`? block must contain `?thinking"), EMPTY_THINKING, True),
    (re.compile(r"Unsupported part type\b"), THOUGHT_PARTS, True),
    (re.compile(r"Cannot pass both content and thinking in an assistant message"), WORDS_BESIDE_THOUGHTS, True),
    (re.compile(r"Request contains an invalid argument"), UNSIGNED_THOUGHTS, False),
)
"""Sentences about elements, what to remove from the request, and whether it applies to every request of this model."""

_ITEM_TYPE = re.compile(
    r"input\[\d+\](?:\.type)? [`'\"]?(\w+)[`'\"]? is not a (?:valid|supported)"
    r"|Invalid value: [`'\"](\w+)[`'\"]\. Supported values are"
)


def _mend(complaint: Complaint, refused: Refused) -> SettingFix | None:
    sentence = plain(complaint.sentence)
    names = [(name, lasts) for pattern, name, lasts in _MENDS if pattern.search(sentence)]
    if item := _ITEM_TYPE.match(sentence):
        names.append((items_of(item[1] or item[2]), True))
    for name, lasts in names:
        if mended(refused.body, (name,))[1]:
            return SettingFix((name,), mends=(name,), is_lasting=lasts, sentence=sentence)
    return None


def _beta(complaint: Complaint) -> SettingFix | None:
    """Fix refused values of the beta header, which is not part of the body."""
    sentence = plain(complaint.sentence)
    rules = rules_for_betas(sentence)
    return SettingFix((BETA_HEADER,), rules=rules, sentence=sentence) if rules else None


def _fix(complaint: Complaint, found: Sequence[FoundSetting], refused: Refused) -> SettingFix | None:
    sentence = plain(complaint.sentence)
    for read in readings(sentence, complaint.param, named=with_names(sentence, found)):
        if read.shape == "door":
            return SettingFix(("door",), doors=read.doors, closed=read.closed, sentence=read.sentence)
        fix = _Case(read, found, refused).solved()
        if fix is not None or read.shape not in _OF_ONE_THING:
            return fix
    return None


_OF_ONE_THING: frozenset[Shape] = frozenset({"mode", "mandatory", "moved", "must_be", "below", "first"})
"""Shapes that mean nothing for a request without the thing they are about: its sentence may have another meaning."""


class _Case:
    """One sentence, compared with one request."""

    def __init__(self, complaint: SettingComplaint, found: Sequence[FoundSetting], refused: Refused) -> None:
        self._complaint = complaint
        self._found = found
        self._refused = refused
        self._named = self._resolved()

    def solved(self) -> SettingFix | None:
        complaint = self._complaint
        kind = self._kind()
        if (
            complaint.shape == "values"
            and kind is not None
            and kind in self._named
            and _MODES.intersection(complaint.legal)
        ):
            return self._changed_mode(kind, str(kind.value))
        wholes: dict[Shape, Callable[[], SettingFix | None]] = {
            "mode": self._mode,
            "mandatory": self._always_on,
            "moved": self._moved,
            "must_be": self._must_be,
            "below": self._below,
        }
        if complaint.shape in wholes:
            return wholes[complaint.shape]()
        parts: dict[Shape, Callable[[], list[SettingRule]]] = {
            "values": self._limited,
            "range": self._bounded,
            "first": self._first,
            "conflict": partial(self._given_up, self._named),
            "requires": partial(self._given_up, self._subject()),
            "only": self._freed,
            "unsupported": self._unsupported,
            "each": self._each,
            "null": self._nulls,
        }
        rules = self._nulls() if _NULL.search(complaint.sentence) else []
        rules = rules or parts[complaint.shape]()
        return self._of(rules) if rules else None

    def _of(self, rules: Sequence[SettingRule]) -> SettingFix:
        is_accounts = "organization" in self._complaint.sentence.lower()
        fields = tuple(dict.fromkeys(rule.path for rule in rules))
        return SettingFix(fields, rules=tuple(rules), is_accounts=is_accounts, sentence=self._complaint.sentence)

    # --- which settings are meant -------------------------------------------------------------------------------------

    def _resolved(self) -> list[FoundSetting]:
        """Return the named settings, in the order of their names."""
        found: dict[str, FoundSetting] = {}
        for name in self._complaint.names:
            for setting in map(whole_choice, self._called(name)):
                found.setdefault(setting.name, setting)
        return list(found.values())

    def _called(self, name: str) -> Iterable[FoundSetting]:
        if name == "sampling":
            return [one for one in self._found if weight(one) == SettingWeight.SAMPLING]
        if name == "budget":
            return [one for one in self._found if weight(one) == SettingWeight.BUDGET]
        if name == "tool_choice" and not any(is_called(one, ["toolchoice"]) for one in self._found):
            return [one for one in self._found if weight(one) == SettingWeight.TOOL_CHOICE][:1]
        steps = [fold(step) for step in name.split(".")]
        exact = [one for one in self._found if is_called(one, steps)]
        if exact:
            return exact[:1] if len({one.path[-1] for one in exact}) == 1 else exact
        if steps[-1].endswith("effort"):
            return [one for one in self._found if fold(one.path[-1]).endswith("effort")]
        return []

    def _subject(self) -> list[FoundSetting]:
        """Return the settings of the first name, if it is one."""
        return list(self._called(self._complaint.names[0])) if self._complaint.names else []

    def _by_value(self) -> list[FoundSetting]:
        """Return the only setting whose value the sentence quotes and that is not legal, if no name helps."""
        legal = {str(one).lower() for one in self._complaint.legal}
        quoted = {name.lower() for name in self._complaint.names}
        meant = [
            one
            for one in self._found
            if isinstance(one.value, str) and one.value.lower() in quoted and one.value.lower() not in legal
        ]
        ranked = [one for one in meant if rank_of(one.value) is not None and any(map(rank_of, legal))]
        return (ranked or meant)[:1] if len(meant) == 1 or len(ranked) == 1 else []

    # --- when a rule applies ------------------------------------------------------------------------------------------

    def _when(self, setting: FoundSetting | None = None) -> str:
        """Return the requests that the rule applies to: from the sentence, or like the refused one."""
        if setting is not None and (tag := self._tag(setting)):
            return tag
        match self._complaint.about:
            case "whole":
                return "whole"
            case "off":
                off = next((one for one in self._found if says_off(one)), None)
                return f"{off.name}={encode(off.value).decode()}" if off is not None else ""
            case "thinking" if self._refused.says_thinking:
                return "thinking"
            case "thinking":
                off = next((one for one in self._found if says_off(one)), None)
                return f"{off.name}={encode(off.value).decode()}" if off is not None else "unsaid"
        return ""

    def _tag(self, setting: FoundSetting) -> str:
        """Return the condition from a path that includes the type of its object: `thinking.between_tools.display`."""
        outer = ".".join(setting.path[:-1])
        kind = next((one for one in self._found if one.name == f"{outer}.type"), None)
        if kind is None or not isinstance(kind.value, str):
            return ""
        is_tagged = any(f".{kind.value}." in f".{name}." for name in self._complaint.names)
        return f"{kind.name}={encode(kind.value).decode()}" if is_tagged else ""

    # --- what helps, by shape -----------------------------------------------------------------------------------------

    def _limited(self) -> list[SettingRule]:
        legal = self._complaint.legal
        for setting in self._named or self._by_value():
            if weight(setting) == SettingWeight.TOOL_CHOICE:
                return self._freely_chosen(setting)
            if setting.path[-1].startswith("["):
                return self._without(setting, "")
            if isinstance(setting.value, dict):
                continue
            values = [_as(setting.value, one) for one in legal]
            if setting.value in values:
                continue
            if nearest_value(setting.value, values) is None and weight(setting) == SettingWeight.THINKING:
                return []
            texts = tuple(encode(one).decode() for one in values)
            return [SettingRule(setting.name, "one_of", texts, self._when(setting))]
        return []

    def _freely_chosen(self, setting: FoundSetting) -> list[SettingRule]:
        """Replace a tool choice that is not legal by any of the tools, if that may be forced."""
        forced = choice_in(setting)
        if forced is None or (isinstance(forced.value, str) and forced.value in self._complaint.legal):
            return []
        is_any = is_named(forced.value) and not {"required", "any"}.isdisjoint(self._complaint.legal)
        return [SettingRule(forced.name, "unforce", ("true",) if is_any else (), self._when())]

    def _bounded(self) -> list[SettingRule]:
        low, high = self._complaint.bounds
        for setting in self._named:
            if isinstance(setting.value, int | float) and not isinstance(setting.value, bool):
                if setting.value in (low, high):  # the end of an open interval
                    return [SettingRule(setting.name, "drop", when=f"{setting.name}={encode(setting.value).decode()}")]
                bounds = tuple("" if one is None else f"{one:g}" for one in (low, high))
                return [SettingRule(setting.name, "between", bounds)]
        return []

    def _nulls(self) -> list[SettingRule]:
        """Remove settings that are null where null is not allowed."""
        nulls = [one.name for one in self._named if one.value is None]
        return [SettingRule(name, "drop", when=f"{name}=null") for name in nulls]

    def _first(self) -> list[SettingRule]:
        for setting in self._named:
            if setting.path[-1].startswith("["):
                return [SettingRule(".".join(setting.path[:-1]), "put_first", (setting.path[-1][1:-1],))]
        return []

    def _given_up(self, settings: Sequence[FoundSetting]) -> list[SettingRule]:
        """Give up the first of settings that exclude each other; of two equal ones, the one named last."""
        if not settings:
            return []
        is_alone = len(settings) == 1
        if is_alone and weight(settings[0]) == SettingWeight.EFFORT and self._is_value_refused(settings[0]):
            return self._next_to(settings[0])
        if is_alone and weight(settings[0]) == SettingWeight.THINKING and self._complaint.shape != "requires":
            return []
        setting = min(reversed(settings), key=weight)
        if self._refused.knows_effort and {weight(one) for one in settings} == {
            SettingWeight.EFFORT,
            SettingWeight.THINKING,
        }:
            setting = max(settings, key=weight)
        others = [one for one in settings if one is not setting and one.path != setting.path]
        when = self._when()
        if not when and others and self._complaint.shape == "conflict":
            is_off = says_off(setting) and not any(map(says_off, others))
            when = f"{setting.name}={encode(setting.value).decode()}" if is_off else f"has {others[0].name}"
        return self._without(setting, when)

    def _without(self, setting: FoundSetting, when: str) -> list[SettingRule]:
        """Remove a setting; a forced tool becomes a free choice. `store: false` is never removed."""
        sentence = self._complaint.sentence
        if setting.path == ("store",) and re.search(r"store[^.]{0,12}\bfalse\b", sentence, re.I):
            return []
        if setting.path[-1].startswith("["):
            return [SettingRule(".".join(setting.path[:-1]), "drop_kind", (setting.path[-1][1:-1],), when)]
        if weight(setting) == SettingWeight.TOOL_CHOICE:
            forced = choice_in(setting)
            if forced is None:
                return [SettingRule(setting.name, "drop", when=when)] if setting.value in _FREE_CHOICES else []
            values = ("true",) if self._refused.can_force_any and is_named(forced.value) else ()
            return [SettingRule(forced.name, "unforce", values, when)]
        words = rf"{re.escape(setting.path[-1])}\W{{1,3}}(?:is |to )?true\b"
        if setting.value is True and re.search(words, sentence, re.I):
            return [SettingRule(setting.name, "set", ("false",), f"{setting.name}=true")]
        return [SettingRule(setting.name, "drop", when=when)]

    def _freed(self) -> list[SettingRule]:
        """Remove a setting that has only one legal value. If sampling is fixed, remove all of it."""
        named = self._named
        if not named:
            return []
        when = self._when()
        if all(weight(one) == SettingWeight.SAMPLING for one in named):
            is_all = _ALL_FIXED.search(self._complaint.sentence) or "sampling" in self._complaint.names
            every = [one for one in self._found if weight(one) == SettingWeight.SAMPLING]
            all_sampling = every if is_all and not when else named
            return [SettingRule(one.name, "drop", when=when) for one in all_sampling]
        return self._without(named[0], when)

    def _each(self) -> list[SettingRule]:
        """Remove all named settings."""
        when = self._when()
        return [rule for setting in self._named for rule in self._without(setting, when)]

    def _unsupported(self) -> list[SettingRule]:
        named = self._named
        if not named:
            return self._limit()
        if len(named) > 1 and self._complaint.about == "thinking" and min(map(weight, named)) < SettingWeight.BUDGET:
            return self._given_up(named)
        if self._complaint.names[0] == "sampling":
            return [SettingRule(one.name, "drop") for one in named]
        if len(enumerated := self._enumerated()) > 1:
            return [rule for one in enumerated for rule in self._without(one, self._when(one))]
        setting = next((one for one in named if one.path[-1].startswith("[")), named[0])
        if weight(setting) == SettingWeight.TOOL_CHOICE and self._complaint.about == "":
            return self._without(setting, "thinking" if self._refused.says_thinking else "unsaid")
        if self._is_value_refused(setting):
            return self._next_to(setting)
        return self._without(setting, self._when(setting))

    def _limit(self) -> list[SettingRule]:
        """Remove a token limit that the server does not know, with any value."""
        name = self._complaint.names[0] if self._complaint.names else ""
        is_unknown = name in _LIMITS and _UNKNOWN.search(self._complaint.sentence) is not None
        return [SettingRule(name, "drop")] if is_unknown and name in members(self._refused.body) else []

    def _enumerated(self) -> list[FoundSetting]:
        """Return the settings that the sentence lists together: `temperature, top_p or top_k`."""
        found: list[FoundSetting] = []
        names = self._complaint.names
        for before, name in zip(("", *names), names, strict=False):
            words = rf"{re.escape(before)}[`'\"]?(?:, ?(?:and |or )?| and | or |/){_OPEN}{re.escape(name)}"
            if found and re.search(words, self._complaint.sentence) is None:
                break
            found += map(whole_choice, self._called(name))
        return list({one.name: one for one in found}.values())

    def _is_value_refused(self, setting: FoundSetting) -> bool:
        """Whether the value is not supported, rather than the setting."""
        if not isinstance(setting.value, str) or rank_of(setting.value) is None:
            return False
        value = rf"[`'\"]?(?<!\w){re.escape(setting.value)}(?!\w)[`'\"]?"
        refused = (
            rf"{value}[^.]{{0,30}}? is(?: not|n't| an invalid| invalid)\b|(?:not|cannot|n't) (?:be )?(?:support"
            rf"|run|used?|accept|allow|work)"
            rf"(?:[^.]|\.(?=\w)){{0,40}}? {value}|\b(?:invalid|unsupported|unknown)\b.* {value}(?:\.? \[|\. |\.?$)"
        )
        return re.search(refused, self._complaint.sentence, re.I) is not None

    def _next_to(self, setting: FoundSetting) -> list[SettingRule]:
        """Use the word next to a refused one; Ollama's `think` gets `true` for any word."""
        nearby: Any = True if setting.path[-1] == "think" else next_word(setting.value)
        when = f"{setting.name}={encode(setting.value).decode()}"
        return [SettingRule(setting.name, "set", (encode(nearby).decode(),), when)]

    def _moved(self) -> SettingFix | None:
        """Move a setting to the name that the sentence gives. A token limit may move too: it is the same limit."""
        to = self._complaint.moved_to
        top = members(self._refused.body)
        for name in self._complaint.names:
            if name == to:
                continue
            setting = next(iter(self._called(name)), None)
            if setting is not None and _NAME.fullmatch(to) and setting.name != to:
                is_alike = _MOVED.search(self._complaint.sentence) or weight(
                    FoundSetting((*to.split("."),), None)
                ) == weight(setting)
                rule = SettingRule(setting.name, "move", (to,)) if is_alike else SettingRule(setting.name, "drop")
                return self._of([rule])
            if setting is None and name in top and "tokens" in name and "tokens" in to and _NAME.fullmatch(to):
                return self._of([SettingRule(name, "move", (to,))])
        return None

    def _below(self) -> SettingFix | None:
        low = next(iter(self._called(self._complaint.refused)), None)
        if low is None or self._complaint.moved_to not in members(self._refused.body):
            return None
        return self._of([SettingRule(low.name, "below", (self._complaint.moved_to,))])

    def _must_be(self) -> SettingFix | None:
        """Set the required value, also in a request that does not have the setting."""
        value, when = self._complaint.legal[0], "whole" if self._complaint.about == "whole" else ""
        setting = next((one for one in self._named if isinstance(one.value, bool)), None)
        if setting is None and self._complaint.names:
            name = self._complaint.names[0].rsplit(".", 1)[-1].lower()
            known = name if name in ("store", "enable_thinking") else ""
        else:
            known = setting.name if setting is not None else ""
        if not known or (setting is not None and encode(setting.value).decode() == value):
            return None
        return self._of([SettingRule(known, "set", (value,), when)])

    def _always_on(self) -> SettingFix | None:
        """Thinking can't be switched off: remove the switch. A word for off becomes the lowest effort."""
        rules: list[SettingRule] = []
        for one in self._found:
            if says_off(one) and not any(rule.path == ".".join(one.path[:-1]) for rule in rules):
                when = f"{one.name}={encode(one.value).decode()}"
                if fold(one.path[-1]).endswith(("effort", "level")):
                    rules.append(SettingRule(one.name, "set", (encode("low").decode(),), when))
                elif one.path[-1] == "type":
                    rules.append(SettingRule(".".join(one.path[:-1]), "drop", when=when))
                else:
                    rules.append(SettingRule(one.name, "drop", when=when))
        fix = self._of(rules) if rules else None
        return None if fix is None else _always(fix)

    def _kind(self) -> FoundSetting | None:
        return next((one for one in self._found if one.path[-2:] == ("thinking", "type")), None)

    def _mode(self) -> SettingFix | None:
        kind = self._kind()
        return self._changed_mode(kind, self._complaint.refused or str(kind.value)) if kind is not None else None

    def _changed_mode(self, kind: FoundSetting, refused: str) -> SettingFix | None:
        """Change a thinking mode, as little as possible: to another mode that the sentence offers."""
        complaint, holder, when = self._complaint, ".".join(kind.path[:-1]), f'{kind.name}="{refused}"'
        if kind.value != refused or kind.value in complaint.legal:
            return None
        if "unsaid" in complaint.legal:
            return self._of([SettingRule(holder, "drop", when=when)])
        if refused == "between_tools" or (refused != "disabled" and not self._refused.has_modes):
            modes = (
                ("disabled", "adaptive", "enabled", "auto")
                if refused == "between_tools"
                else ("enabled", "adaptive", "auto")
            )
            least = next((mode for mode in modes if mode in complaint.legal), "")
            do = SettingRule(holder, "set", (f'{{"type":"{least}"}}',), when)
            return self._of([do if least else SettingRule(holder, "drop", when=when)])
        if refused == "disabled" and "between_tools" in complaint.legal:
            rules = [SettingRule(holder, "set", ('{"type":"between_tools"}',), when)]
            effort = next((one for one in self._found if one.path[-2:] == ("output_config", "effort")), None)
            if effort is not None:
                legal = ('"low"', '"medium"', '"high"')
                rules.append(SettingRule(effort.name, "one_of", legal, f'{kind.name}="between_tools"'))
            return self._of(rules)
        if refused == "disabled" and ("adaptive" not in complaint.legal or not self._refused.has_modes):
            return _always(self._of([SettingRule(holder, "drop", when=when)]))
        return SettingFix(("thinking",), mode=refused, modes=complaint.legal, sentence=complaint.sentence)


_MODES = frozenset({"enabled", "disabled", "adaptive", "between_tools", "auto"})
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_UNKNOWN = re.compile(
    r"\b(?:unsupported|unknown|unrecogni[sz]ed|unexpected) (?:parameter|argument|field|keyword|property|request)"
    r"|\bExtra inputs are not permitted",
    re.I,
)
_OPEN = r"[`'\"]?"
_FREE_CHOICES = ("auto", {"type": "auto"}, {"mode": "AUTO"})
_NULL = re.compile(r"\b(?:null|None|nil|NoneType)\b", re.I)
_MOVED = re.compile(r"\b(?:moved|renamed|replaced|changed) ", re.I)
_ALL_FIXED = re.compile(r"only \S{1,40} (?:is|are) allowed")
"""How Kimi says that a mode has its own sampling."""

_NAME = re.compile(r"[A-Za-z_][\w-]{0,60}(?:\.[A-Za-z_][\w-]{0,60}){0,4}", re.ASCII)


def _always(fix: SettingFix) -> SettingFix:
    return SettingFix(fix.fields, rules=fix.rules, is_always_on=True, sentence=fix.sentence)


def _as(value: Any, legal: str) -> Any:
    """Return a legal value in the type and case of the current one: a number or boolean if that is one."""
    if legal in ("true", "false"):
        return legal == "true"
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = plain_value(legal.encode())
        return number if isinstance(number, int | float) else legal
    if isinstance(value, str) and value.isupper() and legal.islower():
        return legal.upper()
    return legal
