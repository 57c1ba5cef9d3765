"""Reads a sentence about a setting by its shape, not by its exact words.

    named, with its legal values        Unsupported value: 'max'. Supported values are: 'low' and 'high'.
    named, and unknown or refused       `temperature` is deprecated for this model.
    only one value                      invalid temperature: only 1 is allowed for this model
    two that exclude each other         cannot specify both 'thinking' and 'reasoning_effort'
    a mode of thinking                  "thinking.type.disabled" is not supported for this model. Use "thinking.type.…"
    another endpoint                    … are not supported in /v1/chat/completions. Use /v1/responses instead.

The request is not known here. `setting_refusals.py` finds out which of the names are its settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.values.options import EFFORTS

Shape = Literal[
    "door",  # another endpoint is required
    "moved",  # the setting has another name
    "mode",  # a thinking mode
    "mandatory",  # thinking can't be switched off
    "values",  # legal values are listed
    "below",  # one number must be below another
    "range",  # a minimum or maximum is named
    "first",  # an element must be the first of its list
    "requires",  # one thing can't be used without another
    "conflict",  # settings exclude each other
    "only",  # there is one value, which can be omitted
    "must_be",  # one value is required
    "unsupported",  # a setting, or a value of it, is refused
    "each",  # all named settings are refused
    "null",  # a setting may not be null
]


class SettingComplaint(Struct, frozen=True, gc=False):
    """A sentence that may be about settings. `names` are all possible names, in order.

    `legal` are legal values, or modes; `refused` is a refused mode. `bounds` are minimum and maximum. `moved_to` is a
    new name, `doors` are endpoints that it offers, `closed` those that it refuses. `about` says which requests it
    applies to: those that think, don't think or don't stream.
    """

    shape: Shape
    names: tuple[str, ...] = ()
    legal: tuple[str, ...] = ()
    refused: str = ""
    bounds: tuple[float | None, float | None] = (None, None)
    moved_to: str = ""
    doors: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    about: Literal["", "thinking", "off", "whole"] = ""
    sentence: str = ""


def read_sentence(sentence: str, param: str = "", *, named: str = "") -> SettingComplaint | None:
    """Return what a sentence says about a setting; None if it has none of the shapes."""
    return next(readings(sentence, param, named=named), None)


def readings(sentence: str, param: str = "", *, named: str = "") -> Iterator[SettingComplaint]:
    """Yield all possible readings of a sentence, most specific first. `param` is a name given separately.

    `named` is the sentence with the names of settings that it spells in words.
    """
    named = named or sentence
    if _CONVERSATION.match(sentence) or (_CONVERSATION.match(param) and not sentence.startswith("Invalid value")):
        return
    if _ELSEWHERE.search(sentence):
        return
    names = tuple(dict.fromkeys((*([param] if _NAME.fullmatch(param) else []), *_names(named))))
    for read in _READERS:
        found = read(named)
        if found is not None:
            yield replace(found, names=found.names or names, about=_about(sentence), sentence=sentence)


# --- names ------------------------------------------------------------------------------------------------------------

_CONVERSATION = re.compile(r"(?:body\.)?(?:messages|tools|input|contents|system)[.\[]\W?\d")
_ELSEWHERE = re.compile(
    r"[Ii]nvalid schema|match schema|(?:tool call|function(?: call)?) arguments|content (?:policy|filter|management)"
    r"|\b(?:[Tt]ool|[Ff]unction|[Mm]odel|[Ff]ile) [`'\"]\S+[`'\"] (?:does not exist|not found|is unknown)"
    r"|context (?:length|window)|rate limit|out of memory|[Uu]nexpected token|[Uu]nknown model|[Mm]odel not found"
    r"|\bquota\b|\bbilling\b|API key|prompt is too long"
)
"""Topics of sentences that mention a setting only in passing."""

_NAME = re.compile(r"[A-Za-z_][\w.-]{0,119}", re.ASCII)
_QUOTED = r"[`'\"]([^`'\"\s]{1,120})[`'\"]"
_PLAIN_WORDS = (
    "[Tt]emperature|top_p|top_k|topP|topK|min_p|tool_choice|toolChoice|store|seed|(?<!lease )stop|logprobs|verbosity"
    "|thinking_budget"
)
_NAMES = re.compile(
    rf"{_QUOTED}|\b([A-Za-z*][A-Za-z0-9*]*(?:[._]+[A-Za-z0-9*]+)+)|\b([a-z]+(?:[A-Z][a-z]+)+)\b|\b({_PLAIN_WORDS})\b"
    r"|^(\w+) must be|\binvalid (\w+):|^([a-z]\w*)(?:: | (?=['\"`]|is |was ))|(?:parameter|argument"
    r"|field)s?:? ([a-z]\w*)"
    r"|\b(?:key|keys|property) \[(\w+)\]|\bthe (\w+) (?:parameter|argument|field|option|setting|property)\b"
    r"|\b([Tt]hinking[ _]level|[Tt]hinking[ _]budget|[Bb]udget|think value|[Ss]ampling param\w*|[Rr]easoning summar\w+"
    r"|(?:[Rr]easoning )?[Ee]ffort|[Ff]orc(?:e|es|ed|ing) (?:(?:an?|the|specific) )?(?:tools?|functions?)"
    r"|[Ff]orced (?:tool|function) calling|[Ff]unction calling(?: with)? mode|[Tt]ool choice)\b"
)
_PHRASES = {
    "thinking level": "thinking_level",
    "thinking budget": "budget",
    "budget": "budget",
    "think value": "think",
    "effort": "effort",
    "reasoning effort": "effort",
}


def _names(sentence: str) -> Iterator[str]:
    for match in _NAMES.finditer(sentence):
        name = next(filter(None, match.groups()), "")
        lowered = name.lower()
        if lowered.startswith("sampling"):
            yield "sampling"
        elif lowered.startswith("reasoning summar"):
            yield "summary"
        elif lowered.startswith(("forc", "tool choice", "function calling")):
            yield "tool_choice"
        elif lowered in _PHRASES:
            yield _PHRASES[lowered]
        elif _NAME.fullmatch(name):
            yield name


_About: TypeAlias = Literal["", "thinking", "off", "whole"]
_ABOUT: tuple[tuple[_About, re.Pattern[str]], ...] = (
    ("whole", re.compile(r"non-?stream|without stream|not streaming|only supports? stream", re.I)),
    (
        "off",
        re.compile(
            r"only (?:be (?:set|used|specified|provided|given)|allowed|supported|valid|available|enabled) "
            r"(?:when|if|with|while) [`'\"]?(?:thinking|reasoning)",
            re.I,
        ),
    ),
    (
        "off",
        re.compile(
            r"(?:when|while|if|with) [`'\"]?(?:thinking|reasoning)[`'\"]?(?:\.type)? "
            r"(?:is )?(?:disabled|off|not enabled)|"
            r"\b(?:thinking|reasoning)\b[^.]{0,40}\bdisabled\b|between_tools|requires [`'\"]?thinking",
            re.I,
        ),
    ),
    (
        "thinking",
        re.compile(
            r"(?<![\w.])(?:thinking|reasoning)[`'\"]? (?:is |mode|may not be )|(?:thinking|reasoning) enabled|"
            r"while thinking|"
            r"with (?:extended |adaptive )?(?:thinking|reasoning)|(?:enabled|enable|use) (?:thinking|reasoning)",
            re.I,
        ),
    ),
)


def _about(sentence: str) -> _About:
    for about, pattern in _ABOUT:
        if pattern.search(sentence):
            return about
    return ""


# --- shapes -----------------------------------------------------------------------------------------------------------

_PATHS = re.compile(
    r"(?:/v\d+/|\bv\d+/|/)(responses|chat/completions|messages)\b|\b(Responses|Messages)[`'\"]? (?:API|endpoint)\b"
    r"|\bto (?:the )?[`'\"]?(responses|messages)\b(?! [a-z])|\bclient\.(responses|messages)\b"
    r"|\b(chat[ /.]completions?)\b",
    re.I,
)
_REFUSED_THERE = re.compile(r"\b(?:not|n't|cannot|unsupported|refuse[sd]?)\b(?:[^.;]|\.(?=\S)){0,120}$")
_DOOR_WORDS = re.compile(
    r"\b(?:use|using|try|via|through|switch|migrate|move|instead|only|call|require[sd]?|must be|not a chat model"
    r"|accessible"
    r"|mean|not allowed (?:on|in|with)|unsupported on)\b",
    re.I,
)
_OF_A_PARAMETER = re.compile(r"(?:unsupported|unknown|unrecogni[sz]ed) (?:request )?(?:parameter|argument|value)", re.I)


def _door(sentence: str) -> SettingComplaint | None:
    mentions = [(match, _door_of(match)) for match in _PATHS.finditer(sentence)]
    if not mentions or not _DOOR_WORDS.search(sentence) or _MOVED.search(sentence):
        return None
    if _OF_A_PARAMETER.match(sentence):
        return None
    doors: list[str] = []
    closed: list[str] = []
    for match, name in mentions:
        before = sentence[: match.start()].rsplit(". ", 1)[-1]
        is_refused = _REFUSED_THERE.search(before) and not re.search(
            r"\bonly\b[^.]{0,60}$", before.rsplit(" and ", 1)[-1]
        )
        (closed if is_refused else doors).append(name)
    doors = [name for name in dict.fromkeys(doors) if name not in closed]
    return SettingComplaint("door", doors=tuple(doors), closed=tuple(closed))


def _door_of(match: re.Match[str]) -> str:
    name = next(filter(None, match.groups()), "").lower()
    return "chat/completions" if name.startswith("chat") else name


_MOVED = re.compile(
    rf"(?:moved|renamed|changed) to {_QUOTED}|(?:[Uu]se|[Tt]ry) {_QUOTED}(?: instead\b|\.?(?: \[|$)|\. )"
    rf"|replaced (?:by|with) {_QUOTED}"
    rf"|[Dd]id you mean:? {_QUOTED}"
)


def _moved(sentence: str) -> SettingComplaint | None:
    match = _MOVED.search(sentence)
    name = next(filter(None, match.groups()), "") if match else ""
    is_name = _NAME.fullmatch(name) and not name[0].isdecimal() and name not in _VALUES
    return SettingComplaint("moved", moved_to=name) if is_name else None


_VALUES = frozenset(
    {*EFFORTS, "auto", "required", "any", "default", "enabled", "disabled", "adaptive", "true", "false"}
)
"""Words that a sentence recommends and that are not names."""


_MODES = "enabled|disabled|adaptive|between_tools|auto"
_MODE_REFUSED = re.compile(
    rf"(?:type|\*)[.=: ] ?['\"`]?({_MODES})\b['\"`]? (?:is|was) (?:not|un|no longer|deprecated|invalid)|"
    rf"[Ii]nput tag ['\"`]({_MODES})['\"`]|^['\"`]?({_MODES}) thinking is not supported|"
    rf"does(?: not|n't) support ['\"`]?({_MODES})['\"`]? thinking\b"
)
_MODE_OFFERED = re.compile(rf"(?:type|\*)[.=] ?['\"`]?({_MODES})\b|['\"`]({_MODES})['\"`]")
_MODE_REQUIRED = re.compile(
    r"(?:\b(?:requires?|only supports?|must use)|(?:[.;,] |please )use) (adaptive|enabled|extended) thinking", re.I
)
_MODE_ONLY = re.compile(rf"only (?:thinking\.)?type[=:] ?['\"`]?({_MODES})['\"`]? is (?:allowed|supported|accepted)")


def _mode(sentence: str) -> SettingComplaint | None:
    if required := _MODE_REQUIRED.search(sentence):
        return SettingComplaint("mode", legal=(required[1].lower().replace("extended", "enabled"),))
    if only := _MODE_ONLY.search(sentence):
        return SettingComplaint("mode", legal=(only[1], "unsaid"))
    match = _MODE_REFUSED.search(sentence)
    if match is None:
        return None
    refused = next(filter(None, match.groups()), "")
    offered = (one[1] or one[2] for one in _MODE_OFFERED.finditer(sentence, match.end()))
    legal = tuple(dict.fromkeys(mode for mode in offered if mode != refused))
    return SettingComplaint("mode", refused=refused, legal=legal)


_MANDATORY = re.compile(
    r"(?:thinking|reasoning)(?: mode)? is required\b(?! (?:to|when|if|with))|model requires (?:thinking|reasoning)\b"
    r"|support(?:ed)?:? (?:enable_)?(?:thinking|reasoning|think) ?[=:] ?[`'\"]?(?:false|off|disabled|none)\b"
    r"|(?:thinking|reasoning)\b[^.]{0,40}\b"
    r"(?:is mandatory|(?:can ?not|can't|may not) be (?:disabled|turned off|switched off)"
    r"|is always on|must be (?:enabled|on)\b(?! to))|[Dd]isabling (?:thinking|reasoning) is not (?:supported|allowed)"
    r"|only works in (?:thinking|reasoning) mode|does(?: not|n't) (?:support|allow) disabling (?:thinking|reasoning)"
    r"|(?:can ?not|can't) (?:disable|turn off) (?:thinking|reasoning)",
    re.I,
)


_BESIDE = re.compile(
    r"\b(?:when|while|if)\b[^.]{1,60}\b(?:is|are) (?:set|specified|provided|used|given|present)\b", re.I
)


def _mandatory(sentence: str) -> SettingComplaint | None:
    is_meant = _MANDATORY.search(sentence) and not _BESIDE.search(sentence)
    return SettingComplaint("mandatory") if is_meant else None


_LIST = re.compile(
    r"(?<!\bnot a )(?<!\bnot an )\b(?:(?:supported|allowed|valid|accepted|available|permitted|possible|legal"
    r"|expected)\s+(?:[\w.]+\s+){0,2}?"
    r"(?:values?|types?|levels?|options?|efforts?|variants?|choices?|modes?|tags?|settings?|range)\b"
    r"(?:\s+(?:values?|types?|levels?|options?|settings?)\b)?(?:\s+for [^:]{1,80}?)?(?:\s+(?:are|is|include))?\s*[:=]?"
    r"|(?:supported|allowed|valid|accepted|available|permitted|options|choices)(?: are| is)?:"
    r"|accepts? (?:[\w.]+ )?(?:values?|only)|only (?:accepts?|takes?|allows?)\b|(?:must|should|has to) be in(?= ?[\[{])"
    r"|expected one of|(?:must|should|can|may) (?:only )?be (?:one of|any of|either)|one of(?: the following)?:?"
    r"|choose (?:from|between|one of)|expected(?= [`'\"])"
    r"|(?:supports? only|only supports?)(?: (?:\w+ ){0,2}?(?:values?|efforts?|levels?|types?|modes?))?(?![\w-])"
    r"|\buse(?= ?[`'\"]\w{1,40}[`'\"] or [`'\"])|(?:(?:should|must) be|please use|only)(?![\w-]))\s*",
    re.I,
)
_LIST_END = re.compile(
    r"\.(?=\s|$)|;|,? (?:got|received|found|but got)[ :]| at line | \(request|\", '| \[|\s(?:is|are|with|for|when"
    r"|while|but|instead|only|on this|in this)\s",
    re.I,
)
_ITEM_QUOTED = re.compile(r"[`'\"]([\w.+-]{1,40})[`'\"]")
_ITEM = re.compile(r"[\w.+-]{1,40}")
_BARE_SWITCH = re.compile(r"(?<![\w`'\"])(true|false)(?![\w`'\"])")
_OR_BELOW = re.compile(
    r"['\"`]?(?<!\w)(\w{1,20})['\"`]? or (?:below|lower|less)\b"
    r"|(?:up to|at most|no higher than|(?:highest|maximum|strongest)(?: \w+){0,3}?(?: is| of|:)?) ['\"`]?(\w{1,20})"
)
_OR_ABOVE = re.compile(
    r"['\"`]?(?<!\w)(\w{1,20})['\"`]? or (?:above|higher|more|greater)\b"
    r"|(?:at least|no lower than|(?:lowest|minimum|least)(?: \w+){0,3}?(?: is| of|:)?) ['\"`]?(\w{1,20})"
)


_TYPES = frozenset({"string", "object", "array", "list", "boolean", "bool", "integer", "number", "null", "dict"})
"""Kinds of values, which are not values themselves."""
_ONE_WORD = re.compile(r"[`'\"][\w.+-]{1,40}[`'\"](?:[. ]|$)")
_NUMERIC = re.compile(r"-?[\d.]+|true|false", re.I)
_ONE_OF_TWO = re.compile(r"\bonly (?:\w+ )?(?:only )?one of\b|\bboth\b", re.I)


def _values(sentence: str) -> SettingComplaint | None:
    if _ONE_OF_TWO.search(sentence):
        return None
    for pattern in (_OR_BELOW, _OR_ABOVE):
        for bound in pattern.finditer(sentence):
            if (word := (bound[1] or bound[2]).lower()) in EFFORTS:
                at = EFFORTS.index(word)
                bounded = EFFORTS[: at + 1] if pattern is _OR_BELOW else EFFORTS[at:]
                return SettingComplaint("values", legal=tuple(bounded))
    for match in _LIST.finditer(sentence):
        legal = _listed(sentence[match.end() :])
        is_said = not re.fullmatch(r"(?:(?:should|must) be|only)\s*", match[0], re.I)
        if _TYPES.issuperset(legal):
            continue
        is_word = _ONE_WORD.match(sentence, match.end()) is not None
        if len(legal) > 1 or (legal and (is_said or (is_word and not _NUMERIC.fullmatch(legal[0])))):
            return SettingComplaint("values", legal=legal)
    return None


_COMMA = re.compile(r",|/|\||&|\bor\b|\band\b")
_BRACKETED = re.compile(r"\s*[\[{]([^\[\]{}]*)[\]}]")
"""A list in brackets; Go servers separate its words only by blanks."""


def _listed(rest: str) -> tuple[str, ...]:
    end = _LIST_END.search(rest)
    text = rest[: end.start()] if end else rest
    if (closed := text.find(")")) != -1 and "(" not in text[:closed]:
        text = text[:closed]
    quoted = _ITEM_QUOTED.findall(text)
    if quoted:
        return tuple(dict.fromkeys((*quoted, *_BARE_SWITCH.findall(text))))
    bracketed = _BRACKETED.match(text)
    plain = bracketed[1] if bracketed else re.sub(r"\([^()]*\)", "", text).strip().strip("[]{}().:")
    parts = plain.split() if bracketed and not _COMMA.search(plain) else _COMMA.split(plain)
    items = [item.strip(" '\"`[]") for item in parts]
    items = [item for item in items if item]
    return tuple(items) if all(_ITEM.fullmatch(item) for item in items) else ()


_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BETWEEN = re.compile(
    rf"(?:(?:between|from|range(?: of| is)?:?) [\[(]?|[\[(](?=-?[\d.]+, ?-?[\d.]+[\])])){_NUMBER}(?: \((?:in"
    rf"|ex)clusive\))?"
    rf"(?: and | to |, ?|-| ?~ ?|\.\.){_NUMBER}",
    re.I,
)
_LEAST = re.compile(
    r"(?:greater than or equal to|at least|no(?:t be|t)? (?:less|lower|smaller) than|>="
    rf"|minimum(?: value)?(?: is| of)?) {_NUMBER}|be {_NUMBER} or (?:more|greater|higher|above)",
    re.I,
)
_MOST = re.compile(
    r"(?:less than or equal to|at most|no(?:t be|t)? (?:more|greater|larger|higher) than|<="
    rf"|(?:not|cannot) exceed(?:ing)?|maximum(?: value)?(?: is| of)?|\b\d+ >) {_NUMBER}"
    rf"|be {_NUMBER} or (?:less|fewer|lower|below)",
    re.I,
)
_UNSET = re.compile(r"\bor (?:be )?(?:unset|omitted|left out)\b", re.I)


def _range(sentence: str) -> SettingComplaint | None:
    between, least, most = _BETWEEN.search(sentence), _LEAST.search(sentence), _MOST.search(sentence)
    low = float(between[1]) if between else float(least[1] or least[2]) if least else None
    high = float(between[2]) if between else float(most[1] or most[2]) if most else None
    if low is None and high is None:
        return None
    return SettingComplaint("only" if _UNSET.search(sentence) else "range", bounds=(low, high))


def _between(sentence: str) -> SettingComplaint | None:
    return _range(sentence) if _BETWEEN.search(sentence) else None


_SETTING = r"[`'\"]?(?<![\w.])(thinking budget|[A-Za-z_][\w.]{0,80})[`'\"]?"
_BELOW = re.compile(
    rf"{_SETTING} must be (?:greater|larger|more) than (?:the )?{_SETTING}"
    rf"|{_SETTING} must be (?:less|smaller|lower) than (?:the )?{_SETTING}",
    re.I,
)


def _below(sentence: str) -> SettingComplaint | None:
    match = _BELOW.search(sentence)
    if match is None:
        return None
    high, low = (match[1], match[2]) if match[1] else (match[4], match[3])
    low = _PHRASES.get(low.lower(), low)
    return SettingComplaint("below", refused=low, moved_to=high)


_FIRST = re.compile(r"must be (?:the )?first\b", re.I)
_REQUIRES = re.compile(r"\brequires? (?:an? )?[`'\"]?\w", re.I)
_CONFLICT = re.compile(
    r"incompatible|mutually exclusive|simultaneously|invalid combination|\bconflicting\b"
    r"|(?:can ?not|can't|may not|must not|not)(?: be)? (?:\w+ )?(?:both|together|combined)\b"
    r"|(?:only (?:set |specify |use |one )?){1,2}(?:only )?one of|conflicts? with|at the same time|both [^.]{1,80} and "
    r"|(?:cannot|can't|may not|must not) be (?:used|set|specified|enabled|disabled|combined) (?:with|when|while|if)",
    re.I,
)
_ONLY = re.compile(
    r"only (?:\S{1,40} ){1,3}(?:is|are) (?:allowed|supported|accepted|permitted|valid)|only the default"
    r"|strictly (?:positive|greater|less|above|below)|must be [<>] |(?:may|can|must) only be|must be (?:unset"
    r"|omitted|left out)|override enforced"
    r"|must be (?:exactly )?-?\d+(?:\.\d+)?(?![\w.]*\d)"
    r"|is (?:fixed|locked|immutable)|cannot be (?:changed|modified|overridden|customi[sz]ed)"
    r"|only (?:supported|available|enabled|valid|allowed|supports [\w.]+ ?=|accepts [\w.]+ ?=)",
    re.I,
)
_MUST_BE = re.compile(
    r"(?:(?:must|has to|needs to|should) be (?:set to |equal to )?|restricted to )[`'\"]?(true|false)\b", re.I
)
_ONLY_STREAMS = re.compile(r"enable_thinking\b.{0,40}only supports? stream", re.I)
_UNSUPPORTED = re.compile(
    r"(?:not|n't|never) (?:currently )?(?:be )?(?:an? )?"
    r"(?:support(?:ed|s)?|allow(?:ed)?|permitted|accept(?:ed)?|recogni[sz]ed|available|enabled|configured|valid)\b"
    r"|(?:can ?not|can't|must not|may not|should not|do not|don't) (?:be )?"
    r"(?:set|specif(?:y|ied)|used?|pass(?:ed)?|provided?|sen[dt]|included?|run)\b"
    r"|\bdid not match any variant"
    r"|no (?:endpoints?|providers?)(?: were)? found that support"
    r"|\b(?:please (?:remove|omit|unset|drop|do not)|[Rr]emove the)\b"
    r"|\b(?:is|are) (?:invalid|illegal|out of range|too (?:large|high|low|small|big))\b"
    r"|\b(?:unsupported|unknown|unrecogni[sz]ed|unexpected|deprecated|extraneous|no longer|forbidden|removed)\b"
    r"|Invalid value at"
    r"|cannot be disabled|does not exist|must be verified|\b(?:is|are) not (?:in|one of)\b"
    r"|\binvalid (?:value|parameter|argument|field|option|setting|property|type|reasoning|thinking|effort|temperature"
    r"|\w+[._]\w|[`'\"])",
    re.I,
)


def _plain(shape: Shape, pattern: re.Pattern[str], sentence: str) -> SettingComplaint | None:
    return SettingComplaint(shape) if pattern.search(sentence) else None


def _must_be(sentence: str) -> SettingComplaint | None:
    if _ONLY_STREAMS.search(sentence):
        return SettingComplaint("must_be", legal=("false",))
    match = _MUST_BE.search(sentence)
    return SettingComplaint("must_be", legal=(match[1].lower(),)) if match else None


_UNKNOWN_FIELD = re.compile(
    r"(?:unknown|unexpected|unrecogni[sz]ed|extra(?:neous)?) (?:field|key|parameter|argument|property):? "
    r"[`'\"\[]?([\w.]{1,120})[`'\"\]]?,? expected"
)


def _unknown_field(sentence: str) -> SettingComplaint | None:
    """Read an unknown field, followed by all known ones."""
    match = _UNKNOWN_FIELD.search(sentence)
    return SettingComplaint("unsupported", names=(match[1],)) if match else None


_SEVERAL = re.compile(
    r"(?:parameters|arguments|fields|properties|settings|keys|inputs)(?: (?:supplied|provided|given|found))?:? ?[\[({]?"
    r"((?:[`'\"]?[A-Za-z_][\w.]{0,80}[`'\"]?(?:, and |, | and |(?=[\])}.,;]|$))){2,20})"
)
_ALL_OF = re.compile(
    r"^((?:.{0,60}?[`'\"]?\b[a-z]\w*[`'\"]?,? (?:and|or) )[`'\"]?\w{1,80}[`'\"]?)(?: parameters?)? are "
    r"(?:not (?:supported|allowed|permitted|accepted|available)|unsupported|deprecated|forbidden)"
)


def _each(sentence: str) -> SettingComplaint | None:
    """Read several settings that are all refused."""
    if not _UNSUPPORTED.search(sentence) or _CONFLICT.search(sentence):
        return None
    match = _SEVERAL.search(sentence) or _ALL_OF.search(sentence)
    names = [] if match is None else [name for name in re.findall(r"[\w.]+", match[1]) if name not in ("and", "or")]
    return SettingComplaint("each", names=tuple(names)) if len(names) > 1 else None


_NULL = re.compile(
    r"\b(?:found|got|but is|not be|received|not support|was|invalid type):? [`'\"]?(?:null|None|nil|NoneType)\b"
    r"|\b(?:null|None|nil|NoneType)[`'\"]? is not (?:of type|an? |allowed|valid|permitted)",
    re.I,
)

_READERS = (
    _door,
    _mode,
    _moved,
    _mandatory,
    _unknown_field,
    _each,
    _between,
    _values,
    _below,
    _range,
    lambda sentence: _plain("first", _FIRST, sentence),
    lambda sentence: _plain("conflict", _CONFLICT, sentence),
    lambda sentence: _plain("requires", _REQUIRES, sentence),
    _must_be,
    lambda sentence: _plain("only", _ONLY, sentence),
    lambda sentence: _plain("unsupported", _UNSUPPORTED, sentence),
    lambda sentence: _plain("null", _NULL, sentence),
)
"""Tried in this order: the most specific first."""
