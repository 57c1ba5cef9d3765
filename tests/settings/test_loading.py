"""Settings: what can be written, in which order it counts, and the errors for all mistakes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.settings.setting_files import HOME, NO_FLAGS, loaded, refused
from thoughtline.destinations.catalogue import PROVIDERS, Timeouts
from thoughtline.providers import CONTRACTS
from thoughtline.settings import (
    FILE_NAME,
    Flags,
    Settings,
    check_exposure,
    data_directory,
    home_folder,
    is_loopback,
    load_settings,
    overlooked_file,
    settings_file,
)
from thoughtline.settings.example import example_settings
from thoughtline.settings.keys import CONTRACT, PROVIDER, PROVIDER_TABLES, ROUTE, TABLES, names
from thoughtline.values.errors import SettingsError


@pytest.fixture
def write(tmp_path: Path) -> Path:
    return tmp_path / "thoughtline.toml"


def test_vertex_next_to_gemini(write: Path) -> None:
    """They are two providers. What signs has credentials, whether or not settings name them."""
    text = """
    [providers.gemini]
    api_key = "k"
    [providers.vertex]
    base_url = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5"
    [providers.bedrock]
    auth = "aws"
    """
    found = loaded(write, text).providers
    assert found["gemini"].api_keys == ("k",)
    assert found["vertex"].is_located
    assert (found["vertex"].formats, found["vertex"].api_keys) == (("gemini_generate", "anthropic_messages"), ())
    assert found["bedrock"].api_keys == ("chain",)
    assert found["bedrock"].has_secrets
    with pytest.raises(SettingsError, match="not AWS credentials"):
        loaded(write, '[providers.bedrock]\nauth = "aws"\napi_key = "sk-some-other-key"')


# --- nothing at all --------------------------------------------------------------------------------------------------


def test_no_file_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing set every provider is there, turns are kept in the user's folder, only this machine is served."""
    monkeypatch.chdir(tmp_path)
    settings = load_settings(None, {}, NO_FLAGS, HOME)
    assert settings.providers == PROVIDERS
    assert settings.configured == frozenset()
    assert settings.default_provider is None
    assert settings.store_url.startswith("sqlite:///")
    assert "nobody" in settings.store_url
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8642)


def test_where_the_file_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment names one, else among the user's settings; `XDG_CONFIG_HOME` says where those are."""
    here, users, xdg = tmp_path / "here", tmp_path / "home", tmp_path / "xdg"
    for folder in (here / "thoughtline", users / ".config" / "thoughtline", xdg / "thoughtline"):
        folder.mkdir(parents=True)
        (folder / FILE_NAME).touch()
    (here / FILE_NAME).touch()
    monkeypatch.chdir(here)
    assert settings_file({}, users) == users / ".config" / "thoughtline" / FILE_NAME
    assert settings_file({"XDG_CONFIG_HOME": str(xdg)}, users) == xdg / "thoughtline" / FILE_NAME
    assert settings_file({"XDG_CONFIG_HOME": str(xdg), "THOUGHTLINE_CONFIG": "mine.toml"}, users) == Path("mine.toml")
    assert (
        settings_file({"XDG_CONFIG_HOME": str(xdg), "THOUGHTLINE_CONFIG": ""}, users) == xdg / "thoughtline" / FILE_NAME
    )


@pytest.mark.parametrize("xdg", ["", ".", "thoughtline", "./"])
@pytest.mark.parametrize("home", ["empty", "."])
def test_a_file_in_the_working_directory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xdg: str, home: str
) -> None:
    """Not by way of a relative folder either."""
    for place in (FILE_NAME, f"thoughtline/{FILE_NAME}", f".config/thoughtline/{FILE_NAME}"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text('[server]\nhost = "0.0.0.0"\n')
    monkeypatch.chdir(tmp_path)
    environment, folder = {"XDG_CONFIG_HOME": xdg}, Path(home) if home == "." else tmp_path / home
    assert settings_file(environment, folder) is None
    assert load_settings(None, environment, NO_FLAGS, folder).server.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [
        ("linux", ".config"),
        ("darwin", ".config"),
        ("darwin", "Library/Application Support"),
        ("win32", "AppData/Roaming"),
        ("win32", ".config"),
    ],
)
def test_each_system_has_its_folder(tmp_path: Path, platform: str, folder: str) -> None:
    """Where programs of that system keep settings."""
    file = tmp_path / folder / "thoughtline" / FILE_NAME
    file.parent.mkdir(parents=True)
    file.touch()
    assert settings_file({}, tmp_path, platform) == file


def test_the_environment_names_a_file(tmp_path: Path) -> None:
    """It is read as if a flag had named it, and must be there."""
    (tmp_path / "mine.toml").write_text("[server]\nport = 9\n")
    assert load_settings(None, {"THOUGHTLINE_CONFIG": str(tmp_path / "mine.toml")}, NO_FLAGS, HOME).server.port == 9
    with pytest.raises(SettingsError, match="can't be read"):
        load_settings(None, {"THOUGHTLINE_CONFIG": str(tmp_path / "none.toml")}, NO_FLAGS, HOME)


def test_which_file_is_overlooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in this folder that is ignored; not if a file was named, or if this is the user's own folder."""
    own = tmp_path / ".config" / "thoughtline"
    own.mkdir(parents=True)
    monkeypatch.chdir(own)
    assert overlooked_file({}, tmp_path) is None
    (own / FILE_NAME).touch()
    assert overlooked_file({}, tmp_path) is None
    assert overlooked_file({}, HOME) == Path(FILE_NAME)
    assert overlooked_file({"THOUGHTLINE_CONFIG": "other.toml"}, HOME) is None


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    """A name without a file is reported, not ignored."""
    with pytest.raises(SettingsError, match="can't be read"):
        load_settings(tmp_path / "none.toml", {}, NO_FLAGS, HOME)


# --- what can be written ---------------------------------------------------------------------------------------------


def test_the_plain_tables(write: Path) -> None:
    """Amounts are written as people write them, and arrive in bytes and seconds."""
    settings = loaded(
        write,
        """
        [server]
        host = "0.0.0.0"
        port = 9000
        workers = 4
        max_body = "8MiB"
        admin_token = "0123456789abcdef"
        insecure = true
        [store]
        url = "redis://localhost"
        ttl = "2h"
        memory_entries = 10
        max_size = "500MB"
        encryption_key = "k"
        [continuity]
        enabled = true
        count = 100
        mode = "always"
        max_chars = 10
        [tags]
        mode = "lift"
        [replay]
        learn = false
        heal = false
        hold_ms = 0
        [replay.on_miss]
        kimi = ["inherit", "blank"]
        glm = []
        """,
    )
    server, store = settings.server, settings.store
    assert (server.host, server.port, server.workers, server.max_body_bytes) == ("0.0.0.0", 9000, 4, 8 * 2**20)
    assert (server.admin_token, server.insecure) == ("0123456789abcdef", True)
    assert settings.store_url == "redis://localhost"
    assert (store.ttl_seconds, store.memory_entries, store.max_bytes) == (7200.0, 10, 500_000_000)
    assert store.encryption_key == "k"
    assert settings.continuity.enabled
    assert (settings.continuity.count, settings.continuity.mode, settings.continuity.max_chars) == (100, "always", 10)
    assert settings.tags == "lift"
    assert (settings.replay.learn, settings.replay.heal, settings.replay.hold_ms) == (False, False, 0)
    assert settings.replay.on_miss == {"kimi": ("inherit", "blank"), "glm": ()}


@pytest.mark.parametrize("zero", ["0", '"0"', '"0MiB"'])
def test_no_conversation_need_be_remembered(write: Path, zero: str) -> None:
    """`0` is a size there, and nowhere else."""
    assert loaded(write, f"[replay]\nremembered_size = {zero}").replay.remembered_bytes == 0


def test_a_provider_is_changed(write: Path) -> None:
    """A table under any of a provider's names changes its row, and leaves the rest of it as it was."""
    settings = loaded(
        write,
        """
        [providers.moonshot]
        base_url = "https://api.moonshot.cn/v1/"
        api_key = ["one", "two"]
        contract = "kimi"
        headers = { X-Team = "blue" }
        timeout = "30s"
        """,
    )
    kimi = settings.providers["kimi"]
    assert settings.configured == {"kimi"}
    assert kimi.base_url == "https://api.moonshot.cn/v1"
    assert kimi.bases == {"anthropic_messages": "https://api.moonshot.cn/anthropic"}
    assert kimi.formats == PROVIDERS["kimi"].formats
    assert (kimi.api_keys, kimi.contract, kimi.headers) == (("one", "two"), "kimi", {"x-team": "blue"})
    assert kimi.timeouts == Timeouts(10.0, 30.0, 30.0, 30.0)
    assert settings.providers["glm"] == PROVIDERS["glm"]


def test_a_provider_is_added(write: Path) -> None:
    """A new name needs an address; it speaks chat if nothing else is said."""
    settings = loaded(
        write,
        """
        [providers.mine]
        base_url = "http://10.0.0.1:8000/v1"
        [providers.other]
        base_url = "https://other.example"
        formats = ["anthropic_messages", "openai_chat"]
        bases = { openai_chat = "https://chat.other.example/v1" }
        paths = { openai_chat = "/chat" }
        dialect = "reasoning"
        auth = "x-api-key"
        streams_only = true
        timeout = { connect = "1s", total = "5m" }
        """,
    )
    mine, other = settings.providers["mine"], settings.providers["other"]
    assert (mine.formats, mine.auth, mine.api_keys) == (("openai_chat",), "bearer", ())
    assert other.formats == ("anthropic_messages", "openai_chat")
    assert other.bases == {"openai_chat": "https://chat.other.example/v1"}
    assert other.paths == {"openai_chat": "/chat"}
    assert (other.dialect, other.auth, other.streams_only) == ("reasoning", "x-api-key", True)
    assert other.timeouts == Timeouts(connect=1.0, total=300.0)


def test_an_address_with_formats_is_the_address_of_all_of_them(write: Path) -> None:
    """Who names both leaves nothing to guess: no face stays at the built-in host."""
    text = """
    [providers.kimi]
    base_url = "https://api.kimi.com/coding/v1"
    formats = ["anthropic_messages"]
    """
    kimi = loaded(write, text).providers["kimi"]
    assert (kimi.bases, kimi.formats) == ({}, ("anthropic_messages",))


def test_an_empty_key_is_none(write: Path) -> None:
    """`"${KEY:-}"` with nothing in it lets the caller's credential through; a local server with a key is shown it."""
    settings = loaded(write, '[providers.openai]\napi_key = "${KEY:-}"\n[providers.ollama]\napi_key = "k"')
    assert settings.providers["openai"].api_keys == ()
    assert (settings.providers["ollama"].auth, settings.providers["ollama"].api_keys) == ("bearer", ("k",))
    assert PROVIDERS["ollama"].auth == "none"


def test_routes(write: Path) -> None:
    """A route's targets are known providers' models, by the providers' own names."""
    text = '[routes.smart]\ntargets = ["moonshot/kimi-k3", "openrouter/google/gemini-3-pro"]\nweights = [2, 1]'
    route = loaded(write, text).routes["smart"]
    assert route.targets == ("kimi/kimi-k3", "openrouter/google/gemini-3-pro")
    assert route.weights == (2, 1)
    assert route.continuity is None


def test_continuity_of_a_route_and_of_a_provider(write: Path) -> None:
    """Each can set its own; invalid words are reported."""
    text = '[routes.smart]\ntargets = ["kimi/kimi-k3"]\ncontinuity = "off"\n[providers.kimi]\ncontinuity = "always"'
    settings = loaded(write, text + '\ntags = "lift"')
    assert settings.routes["smart"].continuity == "off"
    assert (settings.providers["kimi"].continuity, settings.providers["kimi"].tags) == ("always", "lift")
    with pytest.raises(SettingsError, match="off, handoff, always"):
        loaded(write, text.replace("always", "sometimes"))


def test_continuity_of_models(write: Path) -> None:
    """By a provider's own name, whichever it was written under, those of the file's own providers too."""
    text = """
    [continuity.models]
    "moonshot/kimi-*" = "always"
    "openrouter/anthropic/claude-sonnet-4.5" = "off"
    "mine/llama" = "handoff"
    [providers.mine]
    base_url = "http://10.0.0.1:8000/v1"
    """
    assert loaded(write, text).continuity.models == {
        "kimi/kimi-*": "always",
        "openrouter/anthropic/claude-sonnet-4.5": "off",
        "mine/llama": "handoff",
    }


def test_contracts_are_changed(write: Path) -> None:
    """An override replaces the built-in row of its name, and says so."""
    text = '[contracts."deepseek-v3.2"]\nladder = ["inherit"]\ndialect = "reasoning"\nfiller = ""\nscope = "calls"'
    changed = loaded(write, text).contracts["deepseek-v3.2"]
    row = CONTRACTS["deepseek-v3.2"]
    assert (changed.ladder, changed.dialect.carrier, changed.filler, changed.scope) == (
        ("inherit",),
        "reasoning",
        "",
        "calls",
    )
    assert (changed.kind, changed.takes, changed.name) == (row.kind, row.takes, row.name)
    assert str(changed.source.says).endswith("changed in settings")


def test_the_example_is_true(write: Path) -> None:
    """The example with every key loads as it is; uncommented, the defaults in it are what holds without it."""
    assert loaded(write, example_settings()).routes
    bare = re.sub(r'(?m)^# (?!\w+ = "(")|\w+ = "sqlite)', "", example_settings())
    settings = loaded(write, bare)
    assert settings.server == Settings().server
    continuity = replace(settings.continuity, models={})
    assert (settings.store, continuity, settings.tags) == (Settings().store, Settings().continuity, "off")


def test_the_example_has_every_key() -> None:
    """No key can be added without showing up there."""
    bare = re.sub(r"(?m)^# ", "", example_settings())
    values = tomllib.loads(bare)
    for table, keys in TABLES.items():
        assert set(names(keys)) <= set(values[table])
    assert set(values["providers"]["my-server"]) == {*names(PROVIDER), *PROVIDER_TABLES}
    assert set(values["routes"]["smart"]) == set(names(ROUTE))
    assert values["continuity"]["models"]
    assert set(values["contracts"]["kimi"]) == set(names(CONTRACT))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('["Gateway.Example.", "10.0.0.1"]', ("gateway.example", "10.0.0.1")),
        ('["[2001:DB8::1]", "2001:db8:0::1"]', ("2001:db8::1",)),
        ("[]", ()),
        ('"${NAMES}"', ("one.example", "two.example")),
    ],
)
def test_hosts(write: Path, written: str, meant: tuple[str, ...]) -> None:
    """As they are compared: in lower case, without the root's dot, addresses in one spelling."""
    environment = {"NAMES": "one.example, two.example"}
    assert loaded(write, f"[server]\nhosts = {written}", environment).server.hosts == meant


@pytest.mark.parametrize(
    "written", ['["a:80"]', '["a:"]', '["https://a"]', '["a/b"]', '["*"]', '[""]', '["a b"]', '"a"']
)
def test_no_hosts(write: Path, written: str) -> None:
    """A port or a pattern there would never be compared."""
    assert "server.hosts" in refused(write, f"[server]\nhosts = {written}")[0]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('["https://App.Example/", "http://localhost:5173"]', ("https://app.example", "http://localhost:5173")),
        (
            '["https://a.example:443", "http://a.example:80", "http://[::1]:3000"]',
            ("https://a.example", "http://a.example", "http://[::1]:3000"),
        ),
        ('["chrome-extension://abc", "tauri://localhost"]', ("chrome-extension://abc", "tauri://localhost")),
        ("[]", ()),
        ('"${NAMES}"', ("https://one.example", "https://two.example")),
    ],
)
def test_origins(write: Path, written: str, meant: tuple[str, ...]) -> None:
    """As browsers name them."""
    environment = {"NAMES": "https://one.example, https://two.example"}
    assert loaded(write, f"[server]\ncors = {written}", environment).server.cors == meant


@pytest.mark.parametrize(
    "written",
    [
        '["*"]',
        '["null"]',
        '["app.example"]',
        '["https://*.example"]',
        '["https://a/b"]',
        '["https://u@a"]',
        '[""]',
        "true",
    ],
)
def test_no_origins(write: Path, written: str) -> None:
    """No pattern, no path: each entry is one site."""
    assert "server.cors" in refused(write, f"[server]\ncors = {written}")[0]


# --- variables -------------------------------------------------------------------------------------------------------

VARIABLES = [
    ("${A}", "1"),
    ("x${A}y${A}", "x1y1"),
    ("${B:-2}", "2"),
    ("${EMPTY:-3}", "3"),
    ("${A:-4}", "1"),
    ("$${A}", "${A}"),
    ("$$$$", "$$"),
    ("a$b", "a$b"),
    ("${B:-http://x:1/y}", "http://x:1/y"),
]


@pytest.mark.parametrize(("written", "meant"), VARIABLES)
def test_variables(write: Path, written: str, meant: str) -> None:
    """`${NAME}`, `${NAME:-default}`, `$$`; a dollar sign before anything else is one."""
    settings = loaded(write, f'[contracts.kimi]\nfiller = "{written}"', {"A": "1", "EMPTY": ""})
    assert settings.contracts["kimi"].filler == meant


def test_a_variable_may_mean_a_number(write: Path) -> None:
    """Whatever comes through a variable comes as text, and is taken for what the key is."""
    text = '[server]\nport = "${PORT}"\ninsecure = "${YES}"\n[providers.mine]\nbase_url = "${URL}"\nformats = ["${F}"]'
    settings = loaded(write, text, {"PORT": "81", "YES": "true", "URL": "http://h", "F": "openai_chat"})
    assert (settings.server.port, settings.server.insecure) == (81, True)
    assert settings.providers["mine"].base_url == "http://h"


def test_a_variable_that_is_not_set(write: Path) -> None:
    """Key, line and variable are named, also inside a list."""
    problems = refused(write, '[providers.kimi]\napi_key = [\n  "${ONE}",\n  "${TWO}",\n]\nauth = "${}"')
    assert problems == [
        "thoughtline.toml:2: providers.kimi.api_key: the variable ONE is not set (set ONE, or write ${ONE:-default})",
        "thoughtline.toml:2: providers.kimi.api_key: the variable TWO is not set (set TWO, or write ${TWO:-default})",
        "thoughtline.toml:6: providers.kimi.auth: a variable needs a name (write ${NAME}, ${NAME:-default}, $$ for $)",
        "thoughtline.toml:6: providers.kimi.auth: there is no such word (known: bearer, x-api-key, x-goog-api-key, "
        "api-key, query, aws, none)",
    ]


# --- the environment, flags ------------------------------------------------------------------------------------------


def test_environment_over_file_and_flags_over_both(write: Path) -> None:
    """Each goes over the one before it, key by key."""
    text = '[server]\nhost = "file"\nport = 1\nworkers = 1\n[store]\nurl = "memory://"'
    environment = {"THOUGHTLINE_HOST": "environment", "THOUGHTLINE_PORT": "2", "THOUGHTLINE_STORE": "redis://e"}
    settings = loaded(write, text, environment, Flags(port=3, store="sqlite:///f"))
    assert (settings.server.host, settings.server.port, settings.server.workers) == ("environment", 3, 1)
    assert settings.store_url == "sqlite:///f"


def test_every_value_has_a_variable(write: Path) -> None:
    """Long names for all, in every kind; a variable that is set to nothing says nothing."""
    settings = loaded(
        write,
        '[providers.my-server]\nbase_url = "http://h"',
        {
            "THOUGHTLINE_SERVER__MAX_BODY": "1MiB",
            "THOUGHTLINE_SERVER__INSECURE": "true",
            "THOUGHTLINE_STORE__TTL": "90s",
            "THOUGHTLINE_STORE__MEMORY_ENTRIES": "",
            "THOUGHTLINE_CONTINUITY__MODE": "always",
            "THOUGHTLINE_TAGS__MODE": "markers",
            "THOUGHTLINE_REPLAY__HOLD_MS": "10",
            "THOUGHTLINE_ADMIN_TOKEN": "0123456789abcdef",
            "THOUGHTLINE_ENCRYPTION_KEY": "k",
            "THOUGHTLINE_PROVIDERS__OPENCODE_GO__API_KEY": "sk",
            "THOUGHTLINE_PROVIDERS__MY_SERVER__FORMATS": "openai_chat, ollama_chat",
            "THOUGHTLINE_PROVIDERS__NEW_ONE__BASE_URL": "http://new",
            "THOUGHTLINE_SOMETHING_ELSE": "ours to ignore",
        },
    )
    assert (settings.server.max_body_bytes, settings.server.insecure) == (2**20, True)
    assert (settings.store.ttl_seconds, settings.store.memory_entries) == (90.0, 2000)
    assert (settings.continuity.mode, settings.tags, settings.replay.hold_ms) == ("always", "markers", 10)
    assert (settings.server.admin_token, settings.store.encryption_key) == ("0123456789abcdef", "k")
    assert settings.providers["opencode-go"].api_keys == ("sk",)
    assert settings.providers["my-server"].formats == ("openai_chat", "ollama_chat")
    assert settings.providers["new-one"].base_url == "http://new"


def test_mistakes_in_the_environment(write: Path) -> None:
    """The variable is the position; a long unknown name is a mistake, since it has our prefix."""
    problems = refused(write, "", {"THOUGHTLINE_PORT": "many", "THOUGHTLINE_SERVER__PROT": "1"})
    assert problems == [
        'THOUGHTLINE_PORT: server.port: "many" is not a port (0 to 65,535)',
        "THOUGHTLINE_SERVER__PROT: there is no such variable (did you mean THOUGHTLINE_SERVER__PORT?)",
    ]


CLIENT_FORMATS = (
    *("openai_chat", "openai_responses", "anthropic_messages"),
    *("gemini_generate", "gemini_code_assist", "gemini_interactions", "ollama_chat", "command_code_generate"),
)


@pytest.mark.parametrize(
    ("upstream", "provider", "name", "formats"),
    [
        ("https://api.deepseek.com", None, "deepseek", PROVIDERS["deepseek"].formats),
        ("https://eu.api.openai.com/v1", None, "openai", PROVIDERS["openai"].formats),
        ("http://127.0.0.1:9/v1", "moonshot", "kimi", PROVIDERS["kimi"].formats),
        ("http://127.0.0.1:9/v1", None, "upstream", CLIENT_FORMATS),
        ("http://127.0.0.1:9/v1", "mine", "mine", CLIENT_FORMATS),
    ],
)
def test_an_upstream(write: Path, upstream: str, provider: str | None, name: str, formats: tuple[str, ...]) -> None:
    """It becomes the default, as the named provider, the one with its host, or an unknown one."""
    settings = loaded(write, "", {}, Flags(upstream=upstream, provider=provider))
    assert settings.default_provider == name
    assert settings.providers[name].base_url == upstream
    assert settings.providers[name].formats == formats
    assert name in settings.configured


def test_an_upstream_keeps_what_the_file_says_of_its_provider(write: Path) -> None:
    """Whatever name the file uses for it; the environment can name one too."""
    text = '[providers.moonshot]\napi_key = "k"'
    settings = loaded(write, text, {"THOUGHTLINE_UPSTREAM": "http://127.0.0.1:9", "THOUGHTLINE_PROVIDER": "kimi"})
    kimi = settings.providers["kimi"]
    assert (settings.default_provider, kimi.api_keys, kimi.base_url) == ("kimi", ("k",), "http://127.0.0.1:9")
    assert kimi.bases == {"anthropic_messages": "http://127.0.0.1:9/anthropic"}


def test_a_default_provider_by_name(write: Path) -> None:
    """A name alone is enough for one that is known."""
    assert loaded(write, "", {}, Flags(provider="zai")).default_provider == "glm"
    problems = refused(write, "", {}, Flags(provider="deepsek"))
    assert problems == ["--provider: server.provider: there is no such provider (did you mean deepseek?)"]
    assert refused(write, "", {}, Flags(upstream="ftp://x"))[0].startswith("--upstream: server.upstream: found text")


# --- who can reach it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("my-machine", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback(host: str, is_local: bool) -> None:
    """Whether only this machine can reach it; a name that could be anything is not local."""
    assert is_loopback(host) is is_local


def test_keys_are_not_laid_open(write: Path) -> None:
    """On the network, with a provider's key and no client keys, it does not start; each way out is enough."""
    key = '[providers.kimi]\napi_key = "k"\n'
    open_door = loaded(write, key + '[server]\nhost = "0.0.0.0"')
    error = check_exposure(open_door, has_client_keys=False)
    assert error is not None
    assert "kimi" in str(error)
    assert "thoughtline keys add" in str(error)
    assert check_exposure(open_door, has_client_keys=True) is None
    assert check_exposure(loaded(write, key), has_client_keys=False) is None
    assert check_exposure(loaded(write, '[server]\nhost = "0.0.0.0"'), has_client_keys=False) is None
    insecure = loaded(write, key + '[server]\nhost = "0.0.0.0"\ninsecure = true')
    assert check_exposure(insecure, has_client_keys=False) is None


@pytest.mark.parametrize(
    ("headers", "is_worth_it"),
    [('{ Authorization = "Bearer ${KEY}" }', True), ('{ x-custom = "${KEY}" }', True), ('{ x-team = "blue" }', False)],
)
def test_keys_in_headers_are_not_laid_open_either(write: Path, headers: str, is_worth_it: bool) -> None:
    """Anyone who reaches the gateway could use them; neither the error nor a repr shows them."""
    key = "sk-proj-0123456789abcdefghij"
    text = f'[server]\nhost = "0.0.0.0"\n[providers.kimi]\nheaders = {headers}\n'
    settings = loaded(write, text, {"KEY": key})
    error = check_exposure(settings, has_client_keys=False)
    assert (error is not None) is is_worth_it
    assert check_exposure(settings, has_client_keys=True) is None
    assert key not in f"{error} {settings!r} {settings.providers['kimi']!r}"


def test_the_data_directory() -> None:
    """The folder of the embedded store."""
    assert data_directory({"XDG_DATA_HOME": "/data"}, HOME) == Path("/data/thoughtline")


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container a user may have none: then nothing of it is read, and nothing can be written there."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert home_folder() == Path("/nonexistent")
    assert settings_file({}, home_folder()) is None
