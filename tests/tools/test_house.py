"""The counters of `tools.house`, on small sources that are made up."""

from __future__ import annotations

import pytest

from tools.house import (
    LIMITS,
    Source,
    bare_waivers,
    covers,
    empty_names,
    functions,
    held,
    import_share,
    large_classes,
    lines_by_package,
    long_calls,
    names_in_the_table,
    naming,
    needless,
    old_words,
    repeated_classes,
    repeated_files,
    shared_names,
    unneeded,
    untested,
)

LOGIC = "def f(a: int) -> int:\n    return 1 if a else 2\n"


def test_lines_are_counted_by_package() -> None:
    """Folders below the product's, modules beside them, and the simulators wherever they are."""
    files = [
        Source("src/thoughtline/cli.py", "a\n" * 3),
        Source("src/thoughtline/gateway/admin/cache.py", "a\n" * 5),
        Source("src/thoughtline/gateway/app.py", "a\n" * 7),
        Source("src/thoughtline_sim/app.py", "a\n" * 2),
    ]
    assert lines_by_package(files) == {"thoughtline/*.py": 3, "thoughtline/gateway": 12, "thoughtline_sim/*.py": 2}


def test_names_in_literals_are_found() -> None:
    """Names, patterns and addresses, and versions in sentences; not docstrings, longer words, and files that may."""
    files = [
        Source("src/a.py", 'x = "kimi"'),
        Source("src/b.py", 'x = r"(moonshot|Kimi)-k2"'),
        Source("src/c.py", '"""kimi"""\nx = "kimi is a model"\ny = "kimis"\nz = "kimi_chat"'),
        Source("src/d.py", 'x = f"since Kimi 2 it is so"\ny = "for kimi, 3 times"'),
        Source("src/providers/kimi.py", 'x = "kimi"'),
        Source("src/clients/row.py", 'x = "kimi"'),
    ]
    found = naming(files, {"kimi", "moonshot"}, "src/providers/", {"src/clients/": "a client of its own"})
    assert found == ("src/a.py: kimi", "src/b.py: moonshot", "src/d.py: kimi")


def test_models_and_hosts_are_names_of_the_table() -> None:
    """Beside providers: a fact about one of them stands in its row."""
    words = names_in_the_table()
    assert {"kimi", "moonshot", "opus", "gpt", "googleapis.com", "moonshot.ai"} <= words
    files = [Source("src/a.py", 'x = r"fable-5-1|opus"'), Source("src/b.py", 'x = "https://dashscope.aliyuncs.com/v1"')]
    assert len(naming(files, words, "src/providers/", {})) == 2


def test_reasons_that_no_file_needs_are_found() -> None:
    """The file is gone, or no longer names anything."""
    files = [Source("src/a.py", 'x = "kimi"'), Source("src/b.py", "x = 1"), Source("src/providers/kimi.py", '"kimi"')]
    allowed = dict.fromkeys(("src/a.py", "src/b.py", "src/gone.py", "src/providers/"), "why")
    assert needless(files, {"kimi"}, "src/providers/", allowed) == ("src/b.py", "src/gone.py", "src/providers/")


def test_names_that_say_nothing_are_found() -> None:
    """Wherever a name is given; not where one is read, nor longer names."""
    source = "class Said:\n    told: int\ndef f(asked):\n    self._heard = told\n    asked_at = is_said = 1\n"
    found = empty_names([Source("src/a.py", source)])
    assert sorted(found) == ["src/a.py:1 Said", "src/a.py:2 told", "src/a.py:3 asked", "src/a.py:4 _heard"]


def test_words_of_the_old_voice_are_found() -> None:
    """In docstrings and comments, in any case, across a line break; not in other strings, names or longer words."""
    source = (
        '"""Whoever asks.\n\nAll but\nfor one, and one beside it.\n"""\n'
        "x = 1  # nobody reads it\n"
        '"""What was told."""\n'
        'told = "nobody"\n'
        'def f() -> None:\n    """Besides, it is stolden."""  # noqa: D400  retold\n'
    )
    found = old_words([Source("src/a.py", source)])
    assert sorted(found) == [
        "src/a.py:1 Whoever",
        "src/a.py:3 but for",
        "src/a.py:4 beside",
        "src/a.py:6 nobody",
        "src/a.py:7 told",
    ]


def test_long_calls_are_found() -> None:
    """By their positional arguments, those behind a star too."""
    source = 'f(1, 2, 3, 4, 5)\nf(1, 2, 3, 4, 5, 6)\nf(*("a", "b", "c"), 4, 5, 6)\nf(*many, 2, c=3, d=4, e=5, f=6)\n'
    assert long_calls([Source("src/a.py", source)]) == ("src/a.py:2", "src/a.py:3")


def test_shared_names_are_found() -> None:
    """Of two classes of one name, one is imported elsewhere: directly, or through its package."""
    files = [
        Source("src/thoughtline/a/one.py", "class Step: ...\nclass Own: ...\nclass Line: ..."),
        Source("src/thoughtline/b/two.py", "class Step: ...\nclass Own: ...\nclass Line: ..."),
        Source("src/thoughtline/a/near.py", "from thoughtline.a.one import Own"),
        Source("src/thoughtline/c.py", "from thoughtline.a.one import Step\nfrom thoughtline.b import Line"),
    ]
    assert [one.partition(":")[0] for one in shared_names(files)] == ["Line", "Step"]


def test_large_classes_are_found() -> None:
    """By what they declare and what their methods assign, once each; tables of facts may be large."""
    members = "".join(f"    m{at}: int\n" for at in range(20))
    assigns = "    def f(self) -> None:\n        self.m1 = self.other = 1\n"
    files = [
        Source("src/a.py", f"class Fits:\n{members}\nclass Large:\n{members}{assigns}"),
        Source("src/b.py", f"class Wire:\n{members}{assigns}"),
    ]
    assert large_classes(files) == ("src/a.py Large: 21",)


def test_names_of_several_meanings_are_found() -> None:
    """Classes and modules; not those of formats that are alike, of the root's doors, or that are listed."""
    files = [
        Source("src/thoughtline/gateway/keys.py", "class Row: ...\nclass _Own: ...\nclass StreamDecoder: ..."),
        Source("src/thoughtline/stores/keys.py", "class Row: ...\nclass _Own: ...\nclass StreamDecoder: ..."),
        Source("src/thoughtline/formats/one/parts.py", ""),
        Source("src/thoughtline/formats/two/parts.py", ""),
        Source("src/thoughtline/codecs.py", ""),
        Source("src/thoughtline/library/codecs.py", ""),
        Source("src/thoughtline_sim/wires/keys.py", ""),
    ]
    assert repeated_classes(files) == ("Row: thoughtline.gateway.keys, thoughtline.stores.keys",)
    assert repeated_files(files) == ("keys.py: gateway, stores",)


def test_the_share_of_imports() -> None:
    """Each line of an import counts, wherever it stands."""
    source = "import a\nfrom b import (\n    c,\n)\n\ndef f() -> None:\n    import d\n\n\nx = 1\n"
    assert import_share([Source("src/a.py", source)]) == 50.0


def test_waivers_without_a_reason_are_found() -> None:
    """A reason stands behind the waiver or above it."""
    mark = "# " + "noqa: N815"
    source = f'a = 1  {mark}\nb = 2  {mark} as the wire has it\n# As the wire has it.\nc = 3  {mark}\nd = "{mark}"\n'
    pyproject = '[tool.ruff.lint.per-file-ignores]\n"a/*" = ["T20"] # prints\n"b/*" = ["T20"]\n'
    found = bare_waivers([Source("src/a.py", source)], pyproject)
    assert found == ("src/a.py:1", "pyproject.toml:3")


def test_modules_without_a_test_file_are_found() -> None:
    """A file is named after its module and its folders; or an entry says which one it is."""
    files = [
        Source("src/thoughtline/gateway/admin/cache.py", LOGIC),
        Source("src/thoughtline/gateway/admin/trail.py", LOGIC),
        Source("src/thoughtline/gateway/app.py", LOGIC),
        Source("src/thoughtline/gateway/proxy.py", LOGIC),
        Source("src/thoughtline_sim/script.py", LOGIC),
    ]
    tests = ["tests/gateway/test_admin_cache.py", "tests/gateway/admin/test_trail.py", "tests/sim/test_script.py"]
    tests += ["tests/test_app.py"]  # of another module: the name alone says nothing
    covered = covers('["tests/gateway/test_laws.py"]\nwhy = "…"\nmodules = ["thoughtline/gateway/proxy.py"]')
    assert untested(files, tests, covered) == ("src/thoughtline/gateway/app.py",)


@pytest.mark.parametrize(
    ("source", "has_logic"),
    [
        (LOGIC, True),
        ("class A:\n    async def f(self) -> bool:\n        return self.a or self.b\n", True),
        ("def f() -> set[int]:\n    return {g(i) for i in range(3)}\n", True),
        ("def f() -> None: ...\n", False),
        ("def f() -> int:\n    return g(1) + 2\n", False),
        ("ROWS = tuple(row for row in (1, 2) if row)\nif ROWS:\n    X = 1\n", False),
    ],
)
def test_modules_without_logic_need_no_test_file(source: str, has_logic: bool) -> None:
    """Logic is a function that chooses or repeats."""
    assert bool(untested([Source("src/thoughtline/a.py", source)], [], [])) == has_logic


def test_entries_that_are_not_needed_are_found() -> None:
    """Of a module or a test file that is gone, and of a module that a test file is named after."""
    files = [Source(f"src/thoughtline/{name}.py", LOGIC) for name in ("alone", "named", "lost")]
    modules = ["thoughtline/alone.py", "thoughtline/named.py", "thoughtline/gone.py"]
    covered = covers(
        f'["tests/test_laws.py"]\nwhy = "…"\nmodules = {modules}\n'
        '["tests/test_gone.py"]\nwhy = "…"\nmodules = ["thoughtline/lost.py"]\n'
    )
    found = unneeded(files, ["tests/test_laws.py", "tests/test_named.py"], covered)
    assert [entry.partition(":")[0] for entry in found] == [
        "src/thoughtline/named.py",
        "src/thoughtline/gone.py",
        "src/thoughtline/lost.py",
    ]


def test_functions_are_measured() -> None:
    """From their first line to their last."""
    source = "class A:\n    def f(self) -> None:\n        ...\n\nasync def g() -> None: ...\n"
    assert functions([Source("src/a.py", source)]) == [(1, "src/a.py:5 g"), (2, "src/a.py:2 f")]


def test_what_was_reached_is_held() -> None:
    """Every figure that is held has a limit, and says what passes it."""
    long = "def f() -> None:\n" + "    f(1, 2, 3, 4, 5, 6)\n" * 700
    found = {figure.name: figure for figure in held([Source("src/a.py", long)])}
    over = {name for name, figure in found.items() if figure.is_over}
    over.remove("reasons that no file needs")  # a made-up source needs none of the product's
    assert over == {"calls with more than five positional arguments", "longest function", "files over 700 lines"}
    assert found["files over 700 lines"].names == ("src/a.py",)
    assert found.keys() <= LIMITS.keys()
