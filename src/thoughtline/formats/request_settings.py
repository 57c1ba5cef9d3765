"""The settings of a request: where they are in its body, and how rules change them.

A setting is a member of a request outside its conversation. `settings_in` lists them by path, and `changed` returns the
members to write to follow the rules. No other byte changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Raw

from thoughtline.formats.json_text import array, decode_list, encode, is_array, members, plain_value, set_members
from thoughtline.formats.thinking import MemberEdit
from thoughtline.providers.setting_rules import SettingRule
from thoughtline.values.nearest import nearest_value

Path: TypeAlias = tuple[str, ...]

NOT_SETTINGS = frozenset(
    {
        *("model", "messages", "input", "contents", "prompt", "system", "instructions", "tools", "functions", "stream"),
        *("systemInstruction", "system_instruction", "previous_response_id", "conversation", "thread", "container"),
        *("response_format", "text", "output_format", "responseSchema", "responseMimeType", "responseJsonSchema"),
        *(
            "mcp_servers",
            "modalities",
            "compaction",
            "audio",
            "background",
            "format",
            "user",
            "metadata",
            "safety_identifier",
        ),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"),
        *("cachedContent", "safetySettings", "guardrailConfig", "inputs", "suffix"),
    }
)
"""Members that say what to do, with which model, or for which user: never changed because a server rejects them."""

_HOLDERS = frozenset({"generationConfig", "generation_config", "inferenceConfig", "additionalModelRequestFields"})
"""Members that hold settings and are none themselves."""

_DEPTH = 5
_MOST = 200


class FoundSetting(NamedTuple):
    """A setting of a request: its path and its value. The last step to an element of a list is its type
    or its string.
    """

    path: Path
    value: Any

    @property
    def name(self) -> str:
        return ".".join(self.path)


def settings_in(body: bytes) -> tuple[FoundSetting, ...]:
    """Every setting of a request, outer ones before those inside."""
    top = members(body)
    found: list[FoundSetting] = []
    for name, raw in top.items():
        if name not in NOT_SETTINGS and len(found) < _MOST:
            found += _inside((name,), plain_value(raw))
    if (text := top.get("text")) is not None and bytes(text)[:1] == b"{":  # the rest of it is the format
        found += [
            FoundSetting(("text", name), plain_value(raw)) for name, raw in members(text).items() if name == "verbosity"
        ]
    return tuple(found)


def _inside(path: Path, value: Any) -> Iterator[FoundSetting]:
    if path[-1] not in _HOLDERS:
        yield FoundSetting(path, value)
    if isinstance(value, dict) and len(path) < _DEPTH:
        for name, inner in value.items():
            if name not in NOT_SETTINGS or path[-1] == "reasoning":
                yield from _inside((*path, name), inner)
    elif isinstance(value, list):
        for element in value:
            kind = element.get("type") if isinstance(element, dict) else element
            if isinstance(kind, str) and kind:
                yield FoundSetting((*path, f"[{kind}]"), element)


class Situation(NamedTuple):
    """The facts about a request that conditions of rules depend on. `thinks`: the model thinks in this request."""

    thinks: bool
    says_off: bool
    streams: bool


class ChangedSetting(NamedTuple):
    """A changed setting: its position as a JSON pointer, and a description of the change."""

    place: str
    message: str


def changed(
    body: bytes, rules: Sequence[SettingRule], situation: Situation
) -> tuple[tuple[MemberEdit, ...], tuple[ChangedSetting, ...]]:
    """The members to write so that the rules are followed, and the changes."""
    top = {name: bytes(raw) for name, raw in members(body).items()}
    before, done = dict(top), list[ChangedSetting]()
    for rule in rules:
        if _holds(rule.when, top, situation):
            done += _KEEPING[rule.do](top, rule)
    names = dict.fromkeys((*before, *top))
    edits = [(name, top.get(name)) for name in names if before.get(name) != top.get(name)]
    return tuple(edits), tuple(done)


def _holds(when: str, top: Mapping[str, bytes], situation: Situation) -> bool:
    match when:
        case "":
            return True
        case "thinking":
            return situation.thinks
        case "unsaid":
            return not situation.says_off
        case "whole":
            return not situation.streams
    kind, _, path = when.partition(" ")
    if kind == "has" and path:
        return _value_at(top, path.split(".")) is not None
    path, _, wanted = when.partition("=")
    held = _value_at(top, path.split("."))
    return held is not None and plain_value(held) == plain_value(wanted.encode())


def _value_at(top: Mapping[str, bytes], path: Sequence[str]) -> bytes | None:
    held = top.get(path[0])
    for step in path[1:]:
        inner = members(held).get(step) if held is not None and held[:1] == b"{" else None
        held = bytes(inner) if inner is not None else None
    return held


def _write(top: dict[str, bytes], path: Sequence[str], value: bytes | None) -> None:
    """Set or remove a setting; an object that becomes empty is removed too."""
    written = _written(top.get(path[0]), path[1:], value)
    if written is None:
        top.pop(path[0], None)
    else:
        top[path[0]] = written


def _written(held: bytes | None, path: Sequence[str], value: bytes | None) -> bytes | None:
    if not path:
        return value
    outer = held if held is not None and held[:1] == b"{" else b"{}"
    inner = members(outer).get(path[0])
    written = set_members(outer, [(path[0], _written(bytes(inner) if inner is not None else None, path[1:], value))])
    return None if value is None and not members(written) else written


def _pointer(rule: SettingRule) -> str:
    return "/" + rule.path.replace(".", "/")


def _drop(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path = rule.path.split(".")
    if _value_at(top, path) is not None:
        _write(top, path, None)
        yield ChangedSetting(_pointer(rule), "this server refuses it: it was left out")


def _set(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, value = rule.path.split("."), rule.values[0].encode()
    if _value_at(top, path) != value:
        _write(top, path, value)
        yield ChangedSetting(_pointer(rule), f"this server wants {rule.values[0]}")


def _default(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path = rule.path.split(".")
    if _value_at(top, path) is None:
        _write(top, path, rule.values[0].encode())
        yield ChangedSetting(_pointer(rule), f"set to {rule.values[0]}: without it, earlier reasoning is not read")


def _one_of(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, legal = rule.path.split("."), [plain_value(one.encode()) for one in rule.values]
    held = _value_at(top, path)
    value = plain_value(held) if held is not None else None
    if held is None or value in legal:
        return
    nearest = nearest_value(value, legal)
    _write(top, path, None if nearest is None else encode(nearest))
    became = "left out" if nearest is None else f"set to {encode(nearest).decode()}"
    yield ChangedSetting(_pointer(rule), f"this server takes {', '.join(rule.values)}: it was {became}")


def _between(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, (low, high) = rule.path.split("."), [float(one) if one else None for one in rule.values]
    held = _value_at(top, path)
    value = plain_value(held) if held is not None else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    kept = max(value, low) if low is not None else value
    kept = min(kept, high) if high is not None else kept
    if kept != value:
        _write(top, path, encode(int(kept) if float(kept).is_integer() else kept))
        yield ChangedSetting(_pointer(rule), f"this server takes it from {low} to {high}")


def _below(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, other = rule.path.split("."), rule.values[0].split(".")
    held, limit = _value_at(top, path), _value_at(top, other)
    if held is None or limit is None:
        return
    value, most = plain_value(held), plain_value(limit)
    if isinstance(value, int) and isinstance(most, int) and value >= most > 1:
        _write(top, path, encode(most - 1))
        yield ChangedSetting(_pointer(rule), f"it must be below {rule.values[0]}")


def _move(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, to = rule.path.split("."), rule.values[0].split(".")
    held = _value_at(top, path)
    if held is not None:
        _write(top, path, None)
        if _value_at(top, to) is None:
            _write(top, to, held)
        yield ChangedSetting(_pointer(rule), f"this server reads it as {rule.values[0]}")


def _unforce(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path = rule.path.split(".")
    held = _value_at(top, path)
    freed = unforced(plain_value(held), to_any=bool(rule.values)) if held is not None else None
    if held is not None and freed is not None:
        _write(top, path, encode(freed))
        yield ChangedSetting(_pointer(rule), "no tool can be forced on a model that thinks: the model may choose")


def unforced(choice: Any, *, to_any: bool = False) -> Any:
    """A tool choice that forces no tool, in its own form; None if nothing changes.

    `to_any`: a forced tool becomes a choice of any tool, of which one must be called.
    """
    match choice:
        case {"type": "tool", **rest}:
            more = {name: one for name, one in rest.items() if name != "name"}
            return {"type": "any" if to_any else "auto", **more}
        case {"type": "function" | "custom"}:
            return "required" if to_any else "auto"
        case _ if to_any:
            return None
        case "required" | "any":
            return "auto"
        case {"type": "any", **rest}:
            return {"type": "auto", **rest}
        case {"type": "allowed_tools", "mode": "required"} | {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required"},
        }:
            return "auto"
        case {"mode": "ANY"}:
            return {**{name: one for name, one in choice.items() if name != "allowedFunctionNames"}, "mode": "AUTO"}
        case {"any": _} | {"tool": _}:
            return {"auto": {}}
    return None


def _drop_kind(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, kind = rule.path.split("."), rule.values[0]
    held = _value_at(top, path)
    if held is None or not is_array(held):
        return
    kept = [one for one in decode_list(held) if _kind_of(one) != kind]
    if len(kept) < len(decode_list(held)):
        _write(top, path, array(kept) if kept else None)
        yield ChangedSetting(_pointer(rule), f"this server refuses {kind} here: it was left out")


def _put_first(top: dict[str, bytes], rule: SettingRule) -> Iterator[ChangedSetting]:
    path, kind = rule.path.split("."), rule.values[0]
    held = _value_at(top, path)
    if held is None or not is_array(held):
        return
    given = decode_list(held)
    ordered = sorted(given, key=lambda one: _kind_of(one) != kind)
    if ordered != given:
        _write(top, path, array(ordered))
        yield ChangedSetting(_pointer(rule), f"{kind} must be the first: it was moved")


def _kind_of(element: Raw) -> str:
    value = plain_value(element)
    kind = value.get("type") if isinstance(value, dict) else value
    return kind if isinstance(kind, str) else ""


_KEEPING: Mapping[str, Callable[[dict[str, bytes], SettingRule], Iterator[ChangedSetting]]] = {
    "drop": _drop,
    "set": _set,
    "default": _default,
    "one_of": _one_of,
    "between": _between,
    "below": _below,
    "move": _move,
    "unforce": _unforce,
    "drop_kind": _drop_kind,
    "put_first": _put_first,
}
