"""Figures of the code that say whether it is easy to live in, and limits that they are held to.

python -m tools.house            print them
python -m tools.house --check    exit status 1 if a limit is passed
python -m tools.house --hold     the same for limits that the code has reached: part of `make check`
python -m tools.house --list     also name what was counted
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from statistics import median, quantiles
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
PRODUCT = "src/thoughtline/"
SIMULATORS = ("src/thoughtline/sim/", "src/thoughtline_sim/")
COVERED_BY = ROOT / "tools" / "covered_by.toml"

LIMITS: Mapping[str, float] = {
    "files that name a provider, a model or a host outside providers/": 0,
    "files that name a format outside formats/": 0,
    "reasons that no file needs": 0,
    "calls with more than five positional arguments": 0,
    "classes of one name imported outside their packages": 0,
    "waivers without a reason": 0,
    "modules with logic without a test file or an entry": 0,
    "entries of covered_by.toml that are not needed": 0,
    "longest function": 80,
    "files over 700 lines": 0,
    "median line length": 44,
    "names that say nothing of the thing": 0,
    "words of the old voice": 3,
    "working classes of more than 20 attributes": 6,
    "class names with several meanings": 15,
    "file names with several meanings": 18,
    "imports, in a hundred lines": 8.5,
}
"""Where we want to be, or how far we have come: such a limit may only fall. A figure without one is only shown."""

Reasons: TypeAlias = Mapping[str, str]
MAY_NAME_A_PROVIDER: Reasons = {
    "src/thoughtline/clients/": "what to set in a client that is made for one provider",
    "src/thoughtline/commands/": "examples on the command line",
    "src/thoughtline/formats/anthropic_messages/__init__.py": "who publishes a model is part of Vertex's paths",
    "src/thoughtline/formats/bedrock_converse/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/bedrock_invoke/__init__.py": "the wire's version has the name of a provider",
    "src/thoughtline/formats/command_code_generate/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/gemini_code_assist/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/gemini_generate/__init__.py": "who publishes a model is part of Vertex's paths",
    "src/thoughtline/formats/gemini_interactions/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/ollama_chat/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/openai_chat/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/openai_chat/message_encoder.py": "a member of the wire has the name of a provider",
    "src/thoughtline/formats/openai_responses/__init__.py": "files of recorded exchanges call the format so",
    "src/thoughtline/formats/vendor_shapes.py": "a type of the wire has the name of a provider",
    "src/thoughtline/gateway/frames.py": "headers of Codex have the name of a provider",
    "src/thoughtline/gateway/upstream_socket.py": "headers of Codex have the name of a provider",
    "src/thoughtline/gateway/websocket_protocol.py": "a WebSocket subprotocol has the name of a provider",
    "src/thoughtline/library/middleware.py": "the module of an SDK",
    "src/thoughtline/library/litellm.py": "LiteLLM's own names for providers",
    "src/thoughtline/library/preserver.py": "a member of the wire has the name of a provider",
    "src/thoughtline/settings/example.py": "an example of settings",
    "src/thoughtline/values/items.py": "names of kinds of reasoning, which stores and envelopes hold",
}
MAY_NAME_A_FORMAT: Reasons = {
    "src/thoughtline/clients/": "which formats a client speaks is a fact about the client",
    "src/thoughtline/library/litellm.py": "LiteLLM's own names for providers",
    "src/thoughtline/providers/": "a row says which formats its provider speaks, and how",
    "src/thoughtline/values/turns.py": "the names themselves: what a format may be called",
}

FACT_TABLES: Reasons = {
    "Wire": "what differs between formats: mypy reports a fact that one of them lacks",
    "ProviderRow": "what is true of a provider, each with its source",
    "Provider": "the same as requests use it, changed by settings",
    "Contract": "what a provider demands, each with its source",
    "RequestRow": "a row of the admin API: its members are fixed",
    "Line": "a line of the log: its members are fixed",
    "Options": "what a request can set, in any format",
    "Series": "an answer of the admin API: a list for each figure",
    "Sums": "a row of the history: a column for each figure",
}
"""Classes that hold facts and do nothing with them: each member is read on its own, by its name."""

ONE_MEANING: Reasons = {
    "access.py": "who may use the gateway, and its admin side",
    "bodies.py": "each format's, and what they share",
    "cache.py": "the cache of reasoning: its command and its address",
    "cache_marks.py": "marks of prompt caches: read in a format, carried to another",
    "connecting.py": "how a client connects: the gateway's sockets, and what the admin API says of them",
    "envelopes.py": "a request inside another body",
    "http_client.py": "the gateway's, and the command line's",
    "recent.py": "recent requests, and their address",
    "refusals.py": "a provider's sentences, and how they are read",
    "sessions.py": "sessions, and their address",
    "run.py": "the command, and `python -m thoughtline.run`",
    "settings.py": "what can be set, and its address",
    "thinking.py": "how thinking is switched: by providers, in formats, in replay",
    "StreamDecoder": "each format's, with the same methods",
    "StreamEncoder": "each format's, with the same methods",
    "Call": "a call of a tool, as two formats have it",
    "Response": "a response, as three formats have it",
}
"""Names that stand in several places for the same thing."""


FAMILIES = frozenset(
    (
        *(
            "fable",
            "haiku",
            "mythos",
            "opus",
            "sonnet",
            "gpt",
            "o1",
            "o3",
            "o4",
            "codex",
            "gemma",
            "imagen",
            "k2",
            "k3",
        ),
        *("magistral", "ministral", "codestral", "devstral", "pixtral", "muse", "llama", "nemotron", "nova", "phi"),
        *("qwq", "sonar", "hy3", "abab", "command-r"),
    )
)
"""Names of models that are no provider's name."""


class Source(NamedTuple):
    """A file of Python. `path` is relative to the checkout."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.text)

    @property
    def folder(self) -> str:
        return str(PurePosixPath(self.path).parent)

    @property
    def module(self) -> str:
        """Its dotted name, where it is in `src`."""
        return self.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


class Figure(NamedTuple):
    """A number, and the names of what was counted."""

    name: str
    value: float
    names: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.name in LIMITS and self.value > LIMITS[self.name]


def sources(*folders: str) -> list[Source]:
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    return [Source(file.relative_to(ROOT).as_posix(), file.read_text()) for file in files]


def lines_by_package(files: Iterable[Source]) -> dict[str, int]:
    """Lines of each folder below the product's own, of its own modules together, and of the simulators."""
    found: Counter[str] = Counter()
    for file in files:
        parts = PurePosixPath(file.path).parts
        found["/".join(parts[1:3]) if len(parts) > 3 else f"{parts[1]}/*.py"] += len(file.lines)
    return dict(sorted(found.items()))


def naming(files: Iterable[Source], words: Iterable[str], home: str, allowed: Reasons) -> tuple[str, ...]:
    """Files outside `home` with one of the words in a literal: a name, a pattern, an address; in a sentence, with a
    number behind it."""
    found = _names_abroad(files, words, home).items()
    return tuple(f"{path}: {', '.join(sorted(names))}" for path, names in found if not _is_allowed(path, allowed))


def needless(files: Iterable[Source], words: Iterable[str], home: str, allowed: Reasons) -> tuple[str, ...]:
    """Entries of `allowed` without which `naming` finds no more."""
    paths = _names_abroad(files, words, home)
    return tuple(entry for entry in allowed if not any(path.startswith(entry) for path in paths))


def _names_abroad(files: Iterable[Source], words: Iterable[str], home: str) -> dict[str, set[str]]:
    """The words of every file outside `home` that has any."""
    word = rf"(?<![a-z0-9_])({'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})(?![a-z0-9_])"
    alone, numbered = re.compile(word), re.compile(rf"{word}[ -]?v?\d")
    found = {}
    for file in files:
        texts = [text.lower() for text in literals(file.tree)]
        names = {hit[1] for text in texts if (hit := (numbered if " " in text else alone).search(text))}
        if names and not file.path.startswith(home):
            found[file.path] = names
    return found


def literals(tree: ast.Module) -> Iterator[str]:
    """Every string but docstrings."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _is_allowed(path: str, allowed: Reasons) -> bool:
    return any(path.startswith(beginning) for beginning in allowed)


def long_calls(files: Iterable[Source], most: int = 5) -> tuple[str, ...]:
    """Calls with more positional arguments; a tuple with a star counts as what is in it."""
    calls = [(file, node) for file in files for node in ast.walk(file.tree) if isinstance(node, ast.Call)]
    return tuple(f"{file.path}:{call.lineno}" for file, call in calls if sum(map(_width, call.args)) > most)


def _width(argument: ast.expr) -> int:
    starred = argument.value if isinstance(argument, ast.Starred) else None
    return len(starred.elts) if isinstance(starred, ast.Tuple) else 1


def shared_names(files: Iterable[Source]) -> tuple[str, ...]:
    """Classes of one name in several modules, where a module of another folder imports one of them."""
    files = list(files)
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(file.module)
    abroad = {name for file in files for name, module in _imports(file) if _is_abroad(file, module, homes[name])}
    return tuple(f"{name}: {', '.join(sorted(homes[name]))}" for name in sorted(abroad) if len(homes[name]) > 1)


def _imports(file: Source) -> Iterator[tuple[str, str]]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.name, node.module) for alias in node.names)


def _is_abroad(file: Source, module: str, homes: set[str]) -> bool:
    """Whether a class that is defined in or below the module is imported from outside the folder of its definition."""
    folder = file.folder.removeprefix("src/").replace("/", ".")
    found = [home for home in homes if home == module or home.startswith(f"{module}.")]
    return any(home.rpartition(".")[0] != folder and home != folder for home in found)


def large_classes(files: Iterable[Source], most: int = 20) -> tuple[str, ...]:
    """Classes with more attributes, declared or assigned to `self`; tables of facts are none of them."""
    found = [(len(_attributes(node)), node.name, file.path) for file in files for node in _classes(file.tree)]
    large = sorted((count, name, path) for count, name, path in found if count > most and name not in FACT_TABLES)
    return tuple(f"{path} {name}: {count}" for count, name, path in reversed(large))


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _attributes(of: ast.ClassDef) -> set[str]:
    names = {
        node.target.id for node in of.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for node in ast.walk(of):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
            case _:
                pass
    return names


def repeated_classes(files: Iterable[Source]) -> tuple[str, ...]:
    """Public classes of one name in several modules, other than of one meaning."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(file.module)
    return _repeated(homes)


def repeated_files(files: Iterable[Source]) -> tuple[str, ...]:
    """Modules of one name in several packages, other than of one meaning. The packages of formats are alike, and what
    stands at the root has the names of `library`, or is a simulator's."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        parts = PurePosixPath(file.path).parts
        if parts[1] == "thoughtline" and len(parts) > 3 and not parts[-1].startswith("__"):
            is_format = parts[2] == "formats" and len(parts) > 4
            homes[parts[-1]].add("formats/*" if is_format else "/".join(parts[2:-1]))
    return _repeated(homes)


def _repeated(homes: Mapping[str, set[str]]) -> tuple[str, ...]:
    found = ((name, sorted(places)) for name, places in sorted(homes.items()) if len(places) > 1)
    return tuple(f"{name}: {', '.join(places)}" for name, places in found if name not in ONE_MEANING)


def import_share(files: Iterable[Source]) -> float:
    """Lines of imports in a hundred lines."""
    lines = imports = 0
    for file in files:
        lines += len(file.lines)
        nodes = (node for node in ast.walk(file.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        imports += sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)
    return round(100 * imports / max(lines, 1), 1)


EMPTY_WORDS = frozenset(
    {"told", "said", "heard", "asked", "spoken", "outward", "lane", "lanes", "face", "faces", "way"}
)
"""Names that were given to ten things each. A name says what the thing is: `summary`, `text`, `request`, `route`."""


def empty_names(files: Iterable[Source]) -> tuple[str, ...]:
    """Variables, arguments, members, functions and classes that have one of these words for a name."""
    found = [(file.path, line, name) for file in files for line, name in _names_given(file.tree)]
    return tuple(f"{path}:{line} {name}" for path, line, name in found if name.strip("_").lower() in EMPTY_WORDS)


OLD_VOICE = re.compile(
    r"\b(?:whoever|whomever|nobody|anybody|somebody|told|anew|of\s+late|beside|but\s+for|deeds?|way\s+(?:up|down))\b",
    re.IGNORECASE,
)
"""Words that our docstrings and comments were full of, and that no reader expects in a program. The usual ones are
caller, client, no one, reported, again, recent, next to, except, request and response. Lower the limit of their count
with each package that is rewritten; the aim is fewer than 40."""


def old_words(files: Iterable[Source]) -> tuple[str, ...]:
    """Each such word in a docstring or a comment, with its line."""
    texts = [(file.path, *found) for file in files for found in (*_docstrings(file.tree), *_comments(file.text))]
    return tuple(
        f"{path}:{start + text.count(chr(10), 0, hit.start())} {' '.join(hit[0].split())}"
        for path, start, text in texts
        for hit in OLD_VOICE.finditer(text)
    )


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings that stand alone, with the line where each begins."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _names_given(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case _:
                pass


_CODES = r"\[[\w, -]+\]|:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*"
_WAIVER = re.compile(rf"#\s*(?:ruff:\s*)?(?:noqa|type:\s*ignore|fmt:\s*(?:skip|off))(?:{_CODES})?")


def bare_waivers(files: Iterable[Source], pyproject: str = "") -> tuple[str, ...]:
    """Waivers with no words behind them and no comment above; in pyproject, ignores without a comment."""
    found = []
    for file in files:
        for number, line in enumerate(file.lines, 1):
            waiver = _WAIVER.search(line)
            above = file.lines[number - 2].strip() if number > 1 else ""
            if (
                waiver
                and not line[waiver.end() :].strip(" #")
                and not above.startswith("#")
                and _is_comment(line, waiver)
            ):
                found.append(f"{file.path}:{number}")
    return (*found, *_bare_ignores(pyproject))


def _is_comment(line: str, waiver: re.Match[str]) -> bool:
    """Not within a string, as far as one line shows it."""
    return line[: waiver.start()].count('"') % 2 == 0


def _bare_ignores(pyproject: str) -> Iterator[str]:
    """Lines of `ignore` and `per-file-ignores` that say no reason."""
    is_inside = False
    for number, line in enumerate(pyproject.splitlines(), 1):
        if line.startswith("["):
            is_inside = line.strip() == "[tool.ruff.lint.per-file-ignores]"
        elif re.match(r"(extend-)?ignore = \[", line):
            is_inside = "]" not in line
        elif line.startswith("]"):
            is_inside = False
        elif is_inside and line.strip() and "#" not in line:
            yield f"pyproject.toml:{number}"


class Cover(NamedTuple):
    """A test file that covers a module which it is not named after."""

    module: str
    test: str
    why: str


def covers(text: str) -> list[Cover]:
    tables = tomllib.loads(text).items()
    return [Cover(f"src/{module}", test, table["why"]) for test, table in tables for module in table["modules"]]


def untested(files: Iterable[Source], tests: Iterable[str], covered: Iterable[Cover]) -> tuple[str, ...]:
    """Modules with logic that no test file is named after, and that have no entry."""
    listed = {cover.module for cover in covered}
    return tuple(path for path in _without_test_file(files, tests) if path not in listed)


def unneeded(files: Iterable[Source], tests: Iterable[str], covered: Iterable[Cover]) -> tuple[str, ...]:
    """Entries for a module that is gone or has a test file of its own, or by a test file that is gone."""
    tests = set(tests)
    needed = set(_without_test_file(files, tests))
    return tuple(
        f"{cover.module}: {cover.test}" for cover in covered if cover.module not in needed or cover.test not in tests
    )


def _without_test_file(files: Iterable[Source], tests: Iterable[str]) -> list[str]:
    """`gateway/admin/cache.py` is tested by `gateway/admin/test_cache.py` or `gateway/test_admin_cache.py`."""
    tests = set(tests)
    return [file.path for file in files if _has_logic(file.tree) and tests.isdisjoint(_test_files(file))]


_DECIDING = (ast.If, ast.IfExp, ast.BoolOp, ast.Match, ast.For, ast.AsyncFor, ast.While, ast.comprehension, ast.Try)


def _has_logic(tree: ast.Module) -> bool:
    """Whether one of its functions chooses, repeats or catches something."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(isinstance(node, _DECIDING) for function in functions for node in ast.walk(function))


def _test_files(file: Source) -> Iterator[str]:
    parts = file.module.split(".")
    parts = ["sim", *parts[1:]] if parts[0] == "thoughtline_sim" else parts[1:]
    parts = ["line", *parts[1:]] if parts[:1] == ["library"] else parts  # tests/library has frameworks of its own
    for at in range(len(parts)):
        folder = "/".join(["tests", *parts[:at]])
        yield f"{folder}/test_{'_'.join(parts[at:])}.py"


def functions(files: Iterable[Source]) -> list[tuple[int, str]]:
    """The length of every function, and where it stands."""
    return [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{file.path}:{node.lineno} {node.name}")
        for file in files
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def names_in_the_table() -> set[str]:
    """Names and aliases of all rows, the domains of their addresses, and families of models."""
    rows = import_module("thoughtline.providers").PROVIDERS
    hosts = {urlsplit(url).hostname or "" for row in rows for url in (row.base_url, *row.bases.values())}
    domains = {".".join(host.split(".")[-2:]) for host in hosts if not host.replace(".", "").isdigit()}
    return {name for row in rows for name in (row.name, *row.aliases)} | (domains - {""}) | FAMILIES


def figures(everything: list[Source]) -> Iterator[Figure]:
    product = [file for file in everything if not file.path.startswith(SIMULATORS)]
    for name, lines in lines_by_package(everything).items():
        yield Figure(f"lines of {name}", lines)
    yield Figure("lines of the product", sum(len(file.lines) for file in product))
    yield Figure("lines with simulators", sum(len(file.lines) for file in everything))
    yield from held(everything)
    yield from _sizes(everything)


def held(files: list[Source]) -> Iterator[Figure]:
    """Figures whose limits were reached."""
    waiving, pyproject = sources("src", "tests", "tools", "bench"), (ROOT / "pyproject.toml").read_text()
    product = [file for file in files if not file.path.startswith(SIMULATORS)]
    providers = (product, names_in_the_table(), f"{PRODUCT}providers/", MAY_NAME_A_PROVIDER)
    formats = (product, import_module("thoughtline.formats").FORMATS, f"{PRODUCT}formats/", MAY_NAME_A_FORMAT)
    counted = {
        "files that name a provider, a model or a host outside providers/": naming(*providers),
        "files that name a format outside formats/": naming(*formats),
        "reasons that no file needs": (*needless(*providers), *needless(*formats)),
        "calls with more than five positional arguments": long_calls(files),
        "classes of one name imported outside their packages": shared_names(files),
        "names that say nothing of the thing": empty_names(files),
        "words of the old voice": old_words(files),
        "waivers without a reason": bare_waivers(waiving, pyproject),
        "working classes of more than 20 attributes": large_classes(files),
        "class names with several meanings": repeated_classes(files),
        "file names with several meanings": repeated_files(files),
        "files over 700 lines": tuple(file.path for file in files if len(file.lines) > 700),
    }
    yield from _counts(counted)
    length, place = max(functions(files))
    yield Figure("longest function", length, (place,))
    yield Figure("imports, in a hundred lines", import_share(files))


def tested(files: list[Source]) -> Iterator[Figure]:
    """Whether every module with logic has a test file, and which have one of another name."""
    tests, covered = [file.path for file in sources("tests")], covers(COVERED_BY.read_text())
    counted = {
        "modules with logic without a test file or an entry": untested(files, tests, covered),
        "entries of covered_by.toml that are not needed": unneeded(files, tests, covered),
        "entries of covered_by.toml": tuple(f"{cover.module}: {cover.test}, {cover.why}" for cover in covered),
    }
    yield from _counts(counted)


def _counts(counted: Mapping[str, tuple[str, ...]]) -> Iterator[Figure]:
    return (Figure(name, len(names), names) for name, names in counted.items())


def _sizes(files: list[Source]) -> Iterator[Figure]:
    sizes = [length for length, _ in functions(files)]
    yield Figure("nine functions in ten, at most", quantiles(sizes, n=10)[-1])
    yield Figure("median function", median(sizes))
    yield Figure("median line length", median(len(line) for file in files for line in file.lines if line.strip()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.house")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a limit is passed")
    parser.add_argument("--hold", action="store_true", help="the same for limits that the code has reached")
    parser.add_argument("--list", action="store_true", help="also name what was counted")
    chosen = parser.parse_args()
    product = sources("src")
    found = [*(held(product) if chosen.hold else figures(product)), *tested(product)]
    for figure in found:
        limit = f"at most {LIMITS[figure.name]:,}" if figure.name in LIMITS else ""
        print(f"{figure.name:54}{figure.value:>9,g}  {limit:>15}{'  OVER' if figure.is_over else ''}")
        if chosen.list or (chosen.hold and figure.is_over):
            print("".join(f"    {name}\n" for name in figure.names), end="")
    return 1 if (chosen.check or chosen.hold) and any(figure.is_over for figure in found) else 0


if __name__ == "__main__":
    raise SystemExit(main())
