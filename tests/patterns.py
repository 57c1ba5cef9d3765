"""Every regular expression of the package, and texts that make a careless one slow.

A backtracking expression is slow where one part can give up what another part could take as well: after a beginning
that leads to some part of the expression, a text that repeats what this part takes, and an end that fits nowhere.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import re._parser as sre_parse  # type: ignore[import-not-found]  # private: the only reader of expressions
from collections import defaultdict
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import thoughtline
from thoughtline import providers
from thoughtline.formats import FORMATS
from thoughtline.providers.refusals import RefusalTemplate
from thoughtline_sim.simulators import SIMULATORS

METHODS = ("match", "search", "fullmatch", "sub", "findall", "finditer", "split")
_EVERY_METHOD = ("match", "search", "fullmatch", "sub")
_OPTIONS = "thoughtline.translation.translated_options"
_MAX_STARTS, _MAX_PUMPS = 4, 24
ELSEWHERE = {"thoughtline.library.litellm", "thoughtline.litellm"}
"""Needs a package that is not installed for the tests, and has no expression."""


class Use(NamedTuple):
    """An expression, where it stands, and how it is asked."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


# Where expressions stand


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(thoughtline.__path__, "thoughtline."):
        if not info.name.endswith("__main__") and info.name not in ELSEWHERE:
            yield importlib.import_module(info.name)


def uses() -> list[Use]:
    """All expressions of the package: values of its modules, however deep they stand, and those written into calls."""
    asked = _asked_methods()
    found: dict[tuple[Any, int], Use] = {}
    for module in modules():
        for name, value in vars(module).items():
            for member, pattern in _patterns_in(value, name, set()):
                methods = tuple(sorted(asked.get(member, _EVERY_METHOD)))
                use = Use(f"{module.__name__}.{name}", pattern, methods)
                old = found.setdefault((pattern.pattern, pattern.flags), use)
                found[pattern.pattern, pattern.flags] = old._replace(methods=tuple(sorted({*old.methods, *methods})))
    for use in _written_into_calls():
        found.setdefault((use.pattern.pattern, use.pattern.flags), use)
    return list(found.values())


def _patterns_in(value: Any, name: str, seen: set[int]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield name, value.__self__  # a bound method such as `_PATTERN.sub`
    else:
        for member, inner in _members(value, name):
            yield from _patterns_in(inner, member, seen)


def _members(value: Any, name: str) -> list[tuple[str, Any]]:
    """What a value holds, each under its own name where it has one."""
    if isinstance(value, (str, bytes, int, ModuleType)):
        return []
    if isinstance(value, dict):
        return [(name, inner) for inner in (*value.keys(), *value.values())]
    fields = getattr(value, "_fields", None) or getattr(value, "__struct_fields__", None)
    if isinstance(value, RefusalTemplate):
        return [("sentence", value.sentence)]
    if fields and not isinstance(value, type):
        return [(field, getattr(value, field, None)) for field in fields]
    if isinstance(value, (tuple, list, set, frozenset)):
        return [(name, inner) for inner in value]
    return list(vars(value).items()) if hasattr(value, "__dict__") and _home(value).startswith("thoughtline") else []


def _home(value: Any) -> str:
    """The module of a class, or of a value's class."""
    return str(value.__module__ if isinstance(value, type) else type(value).__module__)


def _asked_methods() -> dict[str, set[str]]:
    """By the last name before the dot: `row.sentence.search(…)` asks `sentence` to search."""
    asked: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                owner = node.value
                name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
                asked[name].add(node.attr)
    return asked


def _written_into_calls() -> Iterator[Use]:
    """`re.search("…", text)`. Those whose expression is no literal are in `TABLES`."""
    for module in modules():
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in METHODS):
                continue
            written = node.args[0]
            place = f"{module.__name__}:{node.lineno}"
            if isinstance(written, ast.Constant):
                yield Use(place, re.compile(written.value), (node.func.attr,))
            else:
                name = ast.unparse(written)
                for text in TABLES[module.__name__, name]:
                    yield Use(f"{place} {name}", re.compile(text), (node.func.attr,))


def _tables() -> dict[tuple[str, str], list[str]]:
    """Expressions that are kept as text, by the module that asks them and the name they have there."""
    rows = (*providers.PROVIDERS, providers.UNLISTED)
    contracts = [contract for row in rows for contract in row.contracts]
    return {
        ("thoughtline.providers.table", "row.hosts"): [row.hosts for row in rows],
        ("thoughtline.providers.table", "row.models"): [row.models for row in rows],
        ("thoughtline.providers.table", "row.wanted_models"): [row.wanted_models for row in rows],
        ("thoughtline.library.preserver", "models"): [models for row in rows for models, _ in row.asks],
        ("thoughtline.providers.row", "row.models"): [one.models for row in rows for one in row.rows],
        ("thoughtline.clients", "contract.thinks_if_asked"): [one.thinks_if_asked for one in contracts],
        (_OPTIONS, "rules.never"): [one.sampling.never for one in contracts],
        (_OPTIONS, "rules.takes_both"): [one.sampling.takes_both for one in contracts],
        ("thoughtline.providers.knobs", "self.models"): [knob.models for one in contracts for knob in one.knobs],
        ("thoughtline.gateway.model_lists", "wire.models.path"): [wire.models.path for wire in FORMATS.values()],
        ("thoughtline.engine.heal", "sent.contract.forces_any"): [one.forces_any for one in contracts],
        ("thoughtline.verify.checks", "contract.forces_any"): [one.forces_any for one in contracts],
        ("thoughtline.verify.checks", "sampling.never"): [one.sampling.never for one in contracts],
        ("thoughtline.replay.settling", "contract.forces_any"): [one.forces_any for one in contracts],
        (_OPTIONS, "contract.forces_any"): [one.forces_any for one in contracts],
        ("thoughtline.replay.settling", "sampling.never"): [one.sampling.never for one in contracts],
        ("thoughtline.providers.row", "self.models"): [door.models for row in rows for door in row.doors],
        ("thoughtline.providers.row", "self.but"): [door.but for row in rows for door in row.doors],
        ("thoughtline.replay.rules", "contract.forces_any"): [one.forces_any for one in contracts],
        (_OPTIONS, "contract.thinks_if_asked"): [one.thinks_if_asked for one in contracts],
        ("thoughtline.replay.plans", "contract.unread"): [one.unread for one in contracts],
        ("thoughtline.replay.rules", "case.contract.accounts_differ"): [one.accounts_differ for one in contracts],
        ("thoughtline.translation.cache_marks", "contract.cache.needs_marks"): [
            one.cache.needs_marks for one in contracts
        ],
        ("thoughtline.translation.requests", "contract.forms.sees"): [one.forms.sees for one in contracts],
        ("thoughtline.translation.tools", "fitting"): [one.forms.names for one in contracts],
        ("thoughtline.replay.setting_refusals", "refused"): [],  # escaped words of a sentence
        ("thoughtline.replay.setting_refusals", "words"): [],
        # A test of its author's own against his own models.
        ("thoughtline.commands.handoff_eval", "check.matches"): [],
        ("thoughtline.commands.handoff_eval", "check.recalls"): [],
        ("thoughtline.commands.handoff_eval", "f'(?<!\\\\w){re.escape(known)}(?!\\\\w)'"): [],
        ("thoughtline.gateway.masking", 'f\'"(?:content|text|input)"\\\\s*:\\\\s*"{re.escape(quoted)}"\''): [],
        ("thoughtline_sim.model", "piece.recalls"): [],
        ("thoughtline_sim.simulation", "api.path"): [api.path for row in SIMULATORS.values() for api in row.apis],
    }


TABLES = _tables()


# Texts that make them slow


class Attack(NamedTuple):
    """A beginning, what is repeated behind it, and an end."""

    start: str
    pump: str
    end: str

    def text(self, size: int) -> str:
        times = max(1, (size - len(self.start) - len(self.end)) // len(self.pump))
        return self.start + self.pump * times + self.end


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """Texts of the expression's own alphabet, the most promising first."""
    written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = sre_parse.parse(written, pattern.flags & ~re.UNICODE)
    letters = sorted(_letters(tree))
    starts = list(dict.fromkeys(["", *_starts(tree)]))[:_MAX_STARTS]
    pumps = [*letters[:12], *dict.fromkeys(_pumps(tree))][:_MAX_PUMPS]
    return [Attack(start, pump, end) for start in starts for pump in pumps if pump for end in ("", "\x00")]


def _letters(tree: Any) -> set[str]:
    """One or two characters of every class that stands in the expression, and every character that it names."""
    found = {" ", "\n", "a", "0", "_", "-", "/"}
    for op, argument in _nodes(tree):
        name = str(op)
        if name == "LITERAL":
            found.add(chr(argument))
        elif name == "IN":
            found.update(_in_class(argument))
    return found


def _in_class(members: list[Any]) -> list[str]:
    is_not = str(members[0][0]) == "NEGATE"
    if is_not:
        taken = re.compile("[" + "".join(_class_text(member) for member in members[1:]) + "]", re.DOTALL)
        return [c for c in ("a", " ", "0", "\n", "(", ":", ".", "<") if not taken.match(c)][:2]
    found = []
    for kind, argument in members:
        if str(kind) == "LITERAL":
            found.append(chr(argument))
        elif str(kind) == "RANGE":
            found.append(chr(argument[0]))
        else:
            found += {"CATEGORY_SPACE": [" ", "\n"], "CATEGORY_DIGIT": ["0"], "CATEGORY_WORD": ["a", "0"]}.get(
                str(argument), ["!"]
            )
    return found


def _class_text(member: tuple[Any, Any]) -> str:
    kind, argument = member
    if str(kind) == "LITERAL":
        return re.escape(chr(argument))
    if str(kind) == "RANGE":
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    return {"CATEGORY_SPACE": r"\s", "CATEGORY_DIGIT": r"\d", "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W"}[
        str(argument)
    ]


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    for node in tree:
        yield node
        for inner in _inner(node):
            yield from _nodes(inner)


def _inner(node: tuple[Any, Any]) -> list[Any]:
    op, argument = node
    match str(op):
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "SUBPATTERN":
            return [argument[3]]
        case "BRANCH":
            return list(argument[1])
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
        case _:
            return []


def _example(tree: Any, repeats: int = 1, branch: int = 0) -> str:
    """A text that the expression takes, roughly."""
    return "".join(_example_of(node, repeats, branch) for node in tree)


def _example_of(node: tuple[Any, Any], repeats: int, branch: int) -> str:
    op, argument = node
    match str(op):
        case "LITERAL":
            return chr(argument)
        case "NOT_LITERAL":
            return "a" if argument != ord("a") else "b"
        case "ANY":
            return "a"
        case "IN":
            found = _in_class(argument)
            return str(found[branch % len(found)]) if found else ""
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = argument
            return _example(inner, repeats, branch) * int(min(max(low, repeats), high))
        case "BRANCH":
            branches = argument[1]
            return _example(branches[branch % len(branches)], repeats, branch)
        case "SUBPATTERN":
            return _example(argument[3], repeats, branch)
        case "ATOMIC_GROUP":
            return _example(argument, repeats, branch)
        case _:
            return ""


def _starts(tree: Any) -> Iterator[str]:
    """Beginnings that lead to each part of the expression."""
    for branch in (0, 1):
        for size in range(len(tree), 0, -1):
            yield _example(tree[:size], 0, branch)


def _pumps(tree: Any) -> Iterator[str]:
    """What neighbouring parts take together, at every level of the expression."""
    levels = [tree]
    for level in levels:
        levels += [inner for node in level for inner in _inner(node)]
        for branch in (0, 1, 2):
            for first in range(len(level)):
                for last in range(len(level), first, -1):
                    text = _example(level[first:last], 1, branch)
                    if len(text) <= 200:
                        yield text
