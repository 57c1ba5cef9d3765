"""Errors for all mistakes: position, key, expected value; never a possible secret."""

from __future__ import annotations

from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.settings.setting_files import loaded, refused
from thoughtline.settings import Settings
from thoughtline.settings.keys import TABLES
from thoughtline.values.errors import SettingsError


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "thoughtline.toml"


MISTAKES = [
    ("[sever]", "1: sever: there is no such table (did you mean server?)"),
    ("[server]\nprot = 1", "2: server.prot: there is no such key (did you mean port?)"),
    ('[server]\nport = "8642"', '2: server.port: "8642" is not a port (0 to 65,535, without quotes)'),
    ("[server]\nport = 70000", "2: server.port: 70000 is not a port (0 to 65,535)"),
    ("[server]\ninsecure = 1", "2: server.insecure: found 1 (expected true or false)"),
    ("[server]\nport = true", "2: server.port: true is not a port (0 to 65,535)"),
    ("[server]\nadmin_token = 'short'", "2: server.admin_token: found text (expected at least 16 characters"),
    ("[server]\nadmin_token = 'change-me-to-a-long-secret'", "2: server.admin_token: this secret is an example's"),
    ("[store]\nencryption_key = 'CHANGEME'", "2: store.encryption_key: this secret is an example's"),
    ("[providers.kimi]\napi_key = ['sk-a', 'change_me']", "2: providers.kimi.api_key: this secret is an example's"),
    (
        '[server]\nmax_body = "32 MiB of it"',
        '2: server.max_body: "32 MiB of it" is not a size (such as "500kB", "32MiB", "1GiB")',
    ),
    ('[server]\nmax_body = "0"', '2: server.max_body: "0" is not a size (such as "500kB", "32MiB", "1GiB")'),
    (
        "[replay]\nremembered_size = -1",
        '2: replay.remembered_size: -1 is not a size (such as "500kB", "32MiB", "1GiB", or 0)',
    ),
    ('[store]\nttl = "7 days"', '2: store.ttl: "7 days" is not a duration (such as "30s", "15m", "2h", "7d")'),
    ("[store]\nttl = '0s'", '2: store.ttl: "0s" is not a duration (such as "30s", "15m", "2h", "7d")'),
    (f"[store]\nttl = '{'9' * 400}w'", "2: store.ttl: found text (expected a duration"),
    (f"[store]\nmax_size = '{'9' * 400}GB'", "2: store.max_size: found text (expected a size"),
    (
        '[store]\nurl = "mysql://x"',
        "2: store.url: mysql is no such store (it begins with one of memory, sqlite, redis, rediss",
    ),
    ('[continuity]\nmode = "hand-off"', '2: continuity.mode: "hand-off" is no such word (did you mean handoff?)'),
    ("[continuity]\ncount = 0", "2: continuity.count: 0 is out of range (1 to 100)"),
    (
        "[continuity.models]\n'kim/k3' = 'off'",
        "2: continuity.models.kim/k3: there is no such provider (did you mean kimi?)",
    ),
    (
        "[continuity.models]\n'kimi/k3' = 'allways'",
        '2: continuity.models.kimi/k3: "allways" is no such word (did you mean always?)',
    ),
    (
        "[continuity.models]\n'kimi/k3' = true",
        "2: continuity.models.kimi/k3: found true (expected one of off, handoff, always)",
    ),
    (
        "[continuity.models]\nkimi = 'off'",
        '2: continuity.models.kimi: this is not a provider and its model (write "provider/model")',
    ),
    (
        "[continuity.models]\n'kimi/k*' = 'off'\n'moonshot/K*' = 'off'",
        "3: continuity.models.moonshot/K*: kimi/K* is set twice (set it once)",
    ),
    ("[continuity.models.'kimi/k3']", "1: continuity.models.kimi/k3: found a table instead of a value"),
    ("[continuity]\nmodels = 'off'", "2: continuity.models: found a value instead of a table"),
    ("[continuity.model]", "1: continuity.model: there is no such key (did you mean models?)"),
    ("server = 1", "1: server: found a value instead of a table (begin it with [server])"),
    ("[server.host]", "1: server.host: found a table instead of a value (expected text)"),
    ("[providers.x]\nauth = 'none'", "1: providers.x: unknown provider x (did you mean xai? A new one needs base_url)"),
    ("[providers.'a/b']\nbase_url = 'http://h'", "1: providers.a/b: this name can't be part of an address"),
    ("[providers.v1]\nbase_url = 'http://h'", "1: providers.v1: this name can't be part of an address"),
    ("[providers.kimi]\n[providers.moonshot]", "2: providers.moonshot: kimi is set twice (use one table"),
    ("[providers.kimi]\nformats = []", "2: providers.kimi.formats: a word is unknown, missing or said twice"),
    ("[providers.kimi]\nformats = ['openai']", "2: providers.kimi.formats: a word is unknown, missing or said twice"),
    (
        "[providers.kimi]\ncontract = 'kimmi'",
        '2: providers.kimi.contract: "kimmi" is no such word (did you mean kimi?)',
    ),
    ("[providers.kimi]\napi_key = 1", "2: providers.kimi.api_key: found a whole number (expected a key, or a list"),
    ("[providers.kimi]\napi_key = ['a', 1]", "2: providers.kimi.api_key: found a list (expected a key, or a list"),
    ('[providers.kimi]\napi_key = "a\\nb"', "2: providers.kimi.api_key: found text (expected a key, or a list"),
    (
        "[providers.kimi]\ntimeout = 30",
        '2: providers.kimi.timeout: 30 is not a duration (such as "30s", "15m", "2h", "7d")',
    ),
    (
        "[providers.kimi.timeout]\nconect = '1s'",
        "2: providers.kimi.timeout.conect: there is no such key (did you mean connect",
    ),
    ("[providers.kimi.headers]\nHost = 'h'", "2: providers.kimi.headers.Host: this can't be a header"),
    ('[providers.kimi.headers]\nx = "a\\r\\nb"', "2: providers.kimi.headers.x: this can't be a header"),
    ("[providers.kimi.headers]\n'a b' = 'c'", "2: providers.kimi.headers.a b: this can't be a header"),
    ("[providers.kimi.bases]\nopenai = 'http://h'", "2: providers.kimi.bases.openai: there is no such format (did you"),
    (
        "[providers.kimi.paths]\nopenai_chat = 'chat'",
        '2: providers.kimi.paths.openai_chat: "chat" is not a path (such as "/chat/completions")',
    ),
    ("[routes.a]\ntargets = []", "2: routes.a.targets: a route needs targets"),
    ("[routes.a]", "1: routes.a.targets: a route needs targets"),
    (
        "[routes.a]\ntargets = ['kimi']",
        '2: routes.a.targets[0]: this is not a provider and its model (write "provider/model")',
    ),
    (
        "[routes.a]\ntargets = ['x/y', 'kim/y']",
        "2: routes.a.targets[1]: there is no such provider (did you mean kimi?)",
    ),
    ("[routes.'a/b']\ntargets = ['kimi/x']", "1: routes.a/b: this can't be the name of a route"),
    ("[routes.a]\ntargets = ['kimi/x']\nweights = [1, 2]", "1: routes.a.weights: there must be one for each target"),
    ("[contracts.kimmi]", "1: contracts.kimmi: there is no such contract (did you mean kimi?)"),
    ("[contracts.kimi]\nscop = 'calls'", "2: contracts.kimi.scop: there is no such key (did you mean scope?)"),
    ("[contracts.kimi]\nscope = 'call'", '2: contracts.kimi.scope: "call" is no such word (did you mean calls?)'),
    (
        "[contracts.kimi]\nladder = ['blnk']",
        "2: contracts.kimi.ladder: a word is unknown, missing or said twice (did you mean blank?)",
    ),
    ("[replay.on_miss]\nkimmi = []", "2: replay.on_miss.kimmi: there is no such contract (did you mean kimi?)"),
    ("[replay]\non_mis = 1", "2: replay.on_mis: there is no such key (did you mean on_miss?)"),
    ("a = = 1", "1: this is not valid TOML"),
    ("[server]\nport = 1\nport = 2", "3: this is not valid TOML"),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_mistakes_are_named(write: Path, text: str, expected: str) -> None:
    """Key, line, what was expected and the nearest thing that is known."""
    problems = refused(write, text)
    assert any(line.startswith(f"thoughtline.toml:{expected}") for line in problems), problems


ADDRESSES = [
    "api.example.com",
    "ftp://h",
    "http://",
    "https:///v1",
    "http://user:password@h/v1",
    "http://h/v1#part",
    "http://h/v1?key=1",
    "http://h:99999",
    "http://h:0",
    "http://h\\@evil",
    "http://h/a b",
    "http://h/../x",
    "file:///etc/passwd",
    "http://h\u0430",
    "",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_that_are_none(write: Path, address: str) -> None:
    """An address has http or https, a host, perhaps a port and a path, and nothing else."""
    problems = refused(write, f"[providers.kimi]\nbase_url = '{address}'")
    assert problems == [
        "thoughtline.toml:2: providers.kimi.base_url: found text (expected a URL, http://HOST or https://HOST, "
        "with an optional path and nothing else)"
    ]


def test_all_problems_are_reported_in_order(write: Path) -> None:
    """A person mends everything at once, from the top."""
    problems = refused(
        write, '[tags]\nmode = "x"\n[server]\nport = ""\nhots = "h"\n[store]\nttl = 1\n', {"THOUGHTLINE_WORKERS": "0"}
    )
    assert [line.split(": ")[0] for line in problems] == [
        "thoughtline.toml:2",
        "thoughtline.toml:4",
        "thoughtline.toml:5",
        "thoughtline.toml:7",
        "THOUGHTLINE_WORKERS",
    ]


SECRET = "sk-Secret-0123456789"
WHERE_SECRETS_STAND = [
    "[providers.kimi]\napi_key = '{}\t'\nx = 1",
    "[providers.kimi]\napi_key = ['{} x', 1]",
    "[providers.kimi]\nbase_url = 'https://{}@h/v1'",
    "[providers.kimi]\nauth = '{}'",
    "[providers.kimi]\nformats = ['{}']",
    '[providers.kimi.headers]\nauthorization = "{}\\n"',
    "[providers.kimi.headers]\nhost = '{}'",
    "[store]\nurl = '{}'",
    "[store]\nttl = '{}'",
    "[store]\nencryption_key = ['{}']",
    "[server]\nadmin_token = '{} '\nport = '{}'",
    "[server]\nmax_body = '{}'",
    "[server]\nprovider = '{}'",
    "[routes.a]\ntargets = ['{}/x', '{}']",
    "[server]\nport = '${{KEY}}'",
    "[server]\nport = '${{NONE:-{}}}'",
    "a = '{}",
    "{} = = 1",
]


@pytest.mark.parametrize("text", WHERE_SECRETS_STAND)
def test_no_value_is_ever_said_again(write: Path, text: str) -> None:
    """A value in the wrong place may be a secret: the message never contains it."""
    problems = refused(write, text.replace("{}", SECRET).replace("{{", "{").replace("}}", "}"), {"KEY": SECRET})
    assert problems
    assert SECRET.lower() not in "\n".join(problems).lower()


def test_settings_can_be_printed(write: Path) -> None:
    """What ends up in a traceback or a log by accident has no secrets in it."""
    text = f'[providers.kimi]\napi_key = "{SECRET}"\nheaders = {{ x-key = "{SECRET}" }}\n'
    text += f'[server]\nadmin_token = "{SECRET}"'
    settings = loaded(write, text + f'\n[store]\nurl = "redis://:{SECRET}@h"\nencryption_key = "{SECRET}"')
    assert SECRET not in f"{settings!r} {settings.server!r} {settings.providers!r}"


@given(
    st.sampled_from([(table, key.name) for table, keys in TABLES.items() for key in keys]),
    st.sampled_from(
        ["1", "true", '""', '"x"', '"7d"', "[]", "{}", "1.5", "1979-05-27", '["a"]', '"32MiB"', "-1", '"$"']
    ),
)
def test_any_value_anywhere_loads_or_is_named(key: tuple[str, str], value: str) -> None:
    """A value of any type at any key gives settings, or a problem at that key and line; never another error."""
    with NamedTemporaryFile(suffix=".toml") as temporary:
        file = Path(temporary.name)
        try:
            settings = loaded(file, f"\n[{key[0]}]\n{key[1]} = {value}\n")
        except SettingsError as error:
            assert all(problem.place == f"{file}:3" for problem in error.problems)
            assert all(problem.key.startswith(f"{key[0]}.{key[1]}") for problem in error.problems)
            assert all(problem.message and problem.remedy for problem in error.problems)
        else:
            assert isinstance(settings, Settings)
