"""Where requests go: tables of what each SDK would ask, and laws that no client can break out of."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from thoughtline.destinations.addresses import (
    address,
    host_name,
    hosts_of,
    is_private,
    models_address,
    own_url,
    passthrough_address,
    rebased,
    server_url,
    with_query_key,
)
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.formats.paths import Action
from thoughtline.values.errors import AddressError, AddressRefused
from thoughtline.values.turns import FormatName


def at(base: str, *formats: FormatName) -> Provider:
    return Provider("here", base, formats or ("openai_chat",))


def address_of(
    provider: Provider,
    format: FormatName,
    model: str = "m",
    is_streaming: bool = False,
    action: Action = "generate",
    query: str = "",
) -> str:
    return address(provider, format, model, is_streaming=is_streaming, action=action, query=query)


BUILT_IN: list[tuple[str, FormatName, str]] = [
    ("deepseek", "openai_chat", "https://api.deepseek.com/chat/completions"),
    ("deepseek", "openai_responses", "https://api.deepseek.com/responses"),
    ("deepseek", "anthropic_messages", "https://api.deepseek.com/anthropic/v1/messages"),
    ("kimi", "openai_chat", "https://api.moonshot.ai/v1/chat/completions"),
    ("kimi", "anthropic_messages", "https://api.moonshot.ai/anthropic/v1/messages"),
    ("mimo", "anthropic_messages", "https://api.xiaomimimo.com/anthropic/v1/messages"),
    ("glm", "openai_chat", "https://api.z.ai/api/paas/v4/chat/completions"),
    ("glm", "anthropic_messages", "https://api.z.ai/api/anthropic/v1/messages"),
    ("minimax", "anthropic_messages", "https://api.minimax.io/anthropic/v1/messages"),
    ("qwen", "openai_chat", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions"),
    ("qwen", "anthropic_messages", "https://dashscope-intl.aliyuncs.com/apps/anthropic/v1/messages"),
    ("anthropic", "anthropic_messages", "https://api.anthropic.com/v1/messages"),
    ("openai", "openai_responses", "https://api.openai.com/v1/responses"),
    ("gemini", "gemini_generate", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"),
    ("gemini", "openai_chat", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
    ("openrouter", "openai_chat", "https://openrouter.ai/api/v1/chat/completions"),
    ("openrouter", "anthropic_messages", "https://openrouter.ai/api/v1/messages"),
    ("groq", "openai_responses", "https://api.groq.com/openai/v1/responses"),
    ("fireworks", "anthropic_messages", "https://api.fireworks.ai/inference/v1/messages"),
    ("deepinfra", "openai_chat", "https://api.deepinfra.com/v1/openai/chat/completions"),
    ("cohere", "openai_chat", "https://api.cohere.ai/compatibility/v1/chat/completions"),
    ("perplexity", "openai_chat", "https://api.perplexity.ai/chat/completions"),
    ("bedrock", "bedrock_converse", "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse"),
    ("bedrock", "bedrock_invoke", "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/invoke"),
    (
        *("vertex", "gemini_generate"),
        "https://aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent",
    ),
    ("ollama", "ollama_chat", "http://127.0.0.1:11434/api/chat"),
    ("ollama", "openai_chat", "http://127.0.0.1:11434/v1/chat/completions"),
    ("ollama", "anthropic_messages", "http://127.0.0.1:11434/v1/messages"),
    ("vllm", "openai_responses", "http://127.0.0.1:8000/v1/responses"),
    ("vllm", "anthropic_messages", "http://127.0.0.1:8000/v1/messages"),
    ("copilot", "openai_chat", "https://api.githubcopilot.com/chat/completions"),
    ("copilot", "anthropic_messages", "https://api.githubcopilot.com/v1/messages"),
    ("opencode-go", "anthropic_messages", "https://opencode.ai/zen/go/v1/messages"),
]


@pytest.mark.parametrize(("name", "format", "expected"), BUILT_IN)
def test_built_in_addresses(name: str, format: FormatName, expected: str) -> None:
    """A built-in provider is asked where its documentation says."""
    assert address_of(PROVIDERS[name], format) == expected


BASES: list[tuple[str, FormatName, str]] = [
    ("http://h", "openai_chat", "http://h/v1/chat/completions"),
    ("http://h/", "openai_chat", "http://h/v1/chat/completions"),
    ("http://h/v1", "openai_chat", "http://h/v1/chat/completions"),
    ("http://h/v1/", "openai_responses", "http://h/v1/responses"),
    ("http://h/api/coding", "openai_chat", "http://h/api/coding/chat/completions"),
    ("http://h", "anthropic_messages", "http://h/v1/messages"),
    ("http://h/v1", "anthropic_messages", "http://h/v1/messages"),
    ("http://h/anthropic", "anthropic_messages", "http://h/anthropic/v1/messages"),
    ("http://h/anthropic/v1", "anthropic_messages", "http://h/anthropic/v1/messages"),
    ("http://h", "gemini_generate", "http://h/v1beta/models/m:generateContent"),
    ("http://h/v1beta", "gemini_generate", "http://h/v1beta/models/m:generateContent"),
    ("http://h/v1", "gemini_generate", "http://h/v1/models/m:generateContent"),
    ("http://h:1/v1", "ollama_chat", "http://h:1/api/chat"),
    ("http://h:1/proxy", "ollama_chat", "http://h:1/proxy/api/chat"),
]


@pytest.mark.parametrize(("base", "format", "expected"), BASES)
def test_a_base_with_or_without_its_version(base: str, format: FormatName, expected: str) -> None:
    """What people write as a base works with and without a version, and none is doubled."""
    assert address_of(at(base, format), format) == expected


def test_streams_and_counts_have_their_own_paths() -> None:
    """Gemini and Bedrock say in the path that they stream; Anthropic and Gemini count at a path of their own."""
    gemini, bedrock = at("http://h", "gemini_generate"), at("http://h", "bedrock_converse")
    streamed = address_of(gemini, "gemini_generate", is_streaming=True, query="alt=sse")
    assert streamed == "http://h/v1beta/models/m:streamGenerateContent?alt=sse"
    assert address_of(gemini, "gemini_generate", action="count_tokens") == "http://h/v1beta/models/m:countTokens"
    assert address_of(bedrock, "bedrock_converse", is_streaming=True) == "http://h/model/m/converse-stream"
    messages = at("http://h/v1", "anthropic_messages")
    assert address_of(messages, "anthropic_messages", action="count_tokens") == "http://h/v1/messages/count_tokens"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("models/gemini-3-pro", "http://h/v1beta/models/gemini-3-pro:generateContent"),
        ("tunedModels/mine", "http://h/v1beta/tunedModels/mine:generateContent"),
        ("a/b", "http://h/v1beta/models/a%2Fb:generateContent"),
    ],
)
def test_a_gemini_model_with_its_collection(model: str, expected: str) -> None:
    """A model's collection is said once; any other slash is part of its name."""
    assert address_of(at("http://h", "gemini_generate"), "gemini_generate", model) == expected


ON_VERTEX = [
    ("global", "https://aiplatform.googleapis.com"),
    ("us", "https://aiplatform.us.rep.googleapis.com"),
    ("eu", "https://aiplatform.eu.rep.googleapis.com"),
    ("us-east5", "https://us-east5-aiplatform.googleapis.com"),
]


@pytest.mark.parametrize(("location", "host"), ON_VERTEX)
def test_the_host_of_vertex_follows_from_the_location(location: str, host: str) -> None:
    """The project and the location are the client's, unless settings have their own; a host of settings stays."""
    place, vertex = f"v1beta1/projects/p/locations/{location}", PROVIDERS["vertex"]
    more: Any = {"is_streaming": True, "action": "generate", "query": "", "place": place}
    method = "publishers/anthropic/models/claude-x@1:streamRawPredict"
    assert address(vertex, "anthropic_messages", "claude-x@1", **more) == f"{host}/{place}/{method}"
    assert passthrough_address(vertex, f"/{place}/endpoints/1:predict", "").startswith(f"{host}/{place}/")
    pinned = replace(vertex, base_url="https://mine/v1/projects/q/locations/here")
    found = address(pinned, "anthropic_messages", "claude-x@1", **more)
    assert found == f"https://mine/v1/projects/q/locations/here/{method}"
    versioned = replace(vertex, base_url="https://mine/v1")
    assert address(versioned, "anthropic_messages", "claude-x@1", **more) == f"https://mine/{place}/{method}"


@pytest.mark.parametrize(
    "place", ["v1/projects/p/locations/a.b", "v1/projects/../locations/us", "v1/projects/p/locations/"]
)
def test_a_place_on_vertex_that_leads_elsewhere_is_refused(place: str) -> None:
    with pytest.raises(AddressRefused):
        address(
            PROVIDERS["vertex"],
            "anthropic_messages",
            "m",
            is_streaming=False,
            action="generate",
            query="",
            place=place,
        )


def test_a_bedrock_model_is_one_segment() -> None:
    """An inference profile's ARN has colons and slashes, and stays one segment."""
    arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-v1:0"
    url = address_of(at("http://h", "bedrock_converse"), "bedrock_converse", arn)
    assert url.count("/") == 5
    assert unquote(url).endswith(f"/model/{arn}/converse")


def test_without_an_address_the_setting_is_named() -> None:
    """Azure has no address until settings give it one; a format that is not spoken has none either."""
    with pytest.raises(AddressError, match=r"base_url in \[providers\.azure\]"):
        address_of(PROVIDERS["azure"], "openai_chat")
    with pytest.raises(AddressError, match=r"formats in \[providers\.anthropic\]"):
        address_of(PROVIDERS["anthropic"], "openai_chat")
    with pytest.raises(AddressError, match="counts tokens"):
        address_of(PROVIDERS["openai"], "openai_chat", action="count_tokens")


PATHS = [
    ("http://h/v1", "/v1/files", "http://h/v1/files"),
    ("http://h/v1", "/files", "http://h/v1/files"),
    ("http://h/v1", "/v1/v1/files", "http://h/v1/files"),
    ("http://h", "/v1/files", "http://h/v1/files"),
    ("http://h", "/v1/v1/files", "http://h/v1/files"),
    ("http://h", "/api/tags", "http://h/api/tags"),
    ("http://h/api/paas/v4", "/v1/models", "http://h/api/paas/v4/models"),
    ("http://h/api/paas/v4", "/api/paas/v4/models", "http://h/api/paas/v4/models"),
    ("http://h/v1/openai", "/v1/models", "http://h/v1/openai/models"),
    ("http://h/api/v1", "/v1/models/a:b", "http://h/api/v1/models/a:b"),
    ("http://h/v1", "/files/", "http://h/v1/files/"),
    ("http://h/v1", "/", "http://h/v1"),
    ("http://h/v1", "", "http://h/v1"),
    ("http://h/v1", "/files/a%20b", "http://h/v1/files/a%20b"),
    ("http://h/v1", "/files/a b?#", "http://h/v1/files/a%20b%3F%23"),
    ("http://h/v1", "/files/v1", "http://h/v1/files/v1"),
    ("http://h/v1", "/files/a%2fb", "http://h/v1/files/a%2fb"),
    ("http://h/v1", "/files/a%252Fb.c%252F..d", "http://h/v1/files/a%252Fb.c%252F..d"),
    (
        "http://h",
        "/model/arn%3Aaws%3Abedrock%3A%3A1%3Ap%2Fus.x/invoke",
        "http://h/model/arn%3Aaws%3Abedrock%3A%3A1%3Ap%2Fus.x/invoke",
    ),
]


@pytest.mark.parametrize(("base", "path", "expected"), PATHS)
def test_passed_through_paths(base: str, path: str, expected: str) -> None:
    """Any other path goes below the base as it came, with the version said once."""
    assert passthrough_address(at(base), path, "") == expected


def test_the_version_of_an_anthropic_face_stays() -> None:
    """A base of Anthropic's SDK has no version in it, whatever its path."""
    provider = at("http://h/anthropic", "anthropic_messages")
    assert passthrough_address(provider, "/v1/models", "limit=1") == "http://h/anthropic/v1/models?limit=1"


HOSTILE = [
    "/..",
    "/../admin",
    "/a/../../admin",
    "/a/..",
    "/.",
    "/%2e%2e/admin",
    "/.%2E/admin",
    "/%252e%252e/admin",
    "/%25252e%25252e/x",
    "/..;/admin",
    "/..;x=1/admin",
    "/a%2f..%2fb",
    "/a%2F..",
    "/..%2Fb",
    "/..%252Fb",
    "/a%252F%252e%252e%252Fb",
    "/a%2F.%2Fb",
    "/a%2F..;x%2Fb",
    "/%2Fa",
    "/%2F%2Fevil.example",
    "/a%2F%2Fb",
    "/a%2F",
    "/a%2F%5C..%5Cb",
    "/a%2F%00",
    "/a%5cb",
    "/a\\b",
    "//evil.example/x",
    "/a//b",
    "/a\nb",
    "/a%0d%0ahost:evil",
    "/a%00",
    "/%c0%ae%c0%ae/x",
    "/a%",
    "/a%zz",
    "/%2525252525252e",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused(path: str) -> None:
    """What could be read as a way out, by this or the next server, is the client's error."""
    with pytest.raises(AddressRefused) as caught:
        passthrough_address(at("http://h/v1"), path, "")
    assert caught.value.status == 400


@pytest.mark.parametrize("model", ["..", ".", "a\nb", "a\x00", "..;x", "models/.."])
def test_hostile_models_are_refused(model: str) -> None:
    """A model's name becomes a segment, so it must be able to be one."""
    for api in ("gemini_generate", "bedrock_converse"):
        with pytest.raises(AddressRefused):
            address_of(at("http://h", "gemini_generate", "bedrock_converse"), api, model)


WILD = st.text(st.sampled_from(list("/.%\\;?#@:vaV125eEfFcC0 \n\x00é\u2028")), max_size=24)
SOME_BASES = st.sampled_from(["https://h.example", "https://h.example/v1", "https://h.example:8443/api/v1"])


@given(SOME_BASES, WILD, WILD)
def test_no_path_leaves_its_base(base: str, path: str, query: str) -> None:
    """Whatever a client writes, the address is below the base after any number of decodings, or it is refused."""
    try:
        url = passthrough_address(at(base), path, query)
    except AddressRefused:
        return
    stays_below(base, url)


@given(SOME_BASES, WILD, WILD, st.booleans(), st.sampled_from(["gemini_generate", "bedrock_converse"]))
def test_no_model_leaves_its_base(base: str, model: str, query: str, is_streaming: bool, format: FormatName) -> None:
    """The same for a model's name, which is quoted."""
    try:
        url = address_of(at(base, format), format, model, is_streaming, query=query)
    except AddressRefused:
        return
    stays_below(base, url)
    assert urlsplit(url).path.count("/") == urlsplit(address_of(at(base, format), format, "m")).path.count("/")


def stays_below(base: str, url: str) -> None:
    expected, parts = urlsplit(base), urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == (expected.scheme, expected.netloc, "")
    assert url.isascii()
    assert url.isprintable()
    assert " " not in url
    decoded = parts.path.removeprefix(expected.path)
    while True:
        below = decoded.replace("\\", "/")
        normal = posixpath.normpath(expected.path + below or "/")
        assert normal == expected.path or normal.startswith(expected.path + "/")
        assert ".." not in below.split("/")
        if unquote(decoded) == decoded:
            return
        decoded = unquote(decoded)


@given(st.lists(st.sampled_from(["v1", "v1beta"]), max_size=4), st.sampled_from(["", "/v1", "/api/v1", "/paas/v4"]))
def test_versions_are_said_once(versions: list[str], within: str) -> None:
    """However often a client repeats a version, one stands in the address; the base's own wins."""
    path = "/".join(["", *versions, "files"])
    url = passthrough_address(at(f"http://h{within}"), path, "")
    own = within or (f"/{versions[-1]}" if versions else "")
    assert url == f"http://h{own}/files"


QUERIES: list[tuple[str, str]] = [
    ("beta=true", "?beta=true"),
    ("", ""),
    ("alt=sse&key=secret", "?alt=sse"),
    ("key=secret", ""),
    ("%6bey=secret&a=1", "?a=1"),
    ("a=b c#d\n", "?a=b%20c%23d%0A"),
    ("a=%20&&b", "?a=%20&b"),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_queries_are_kept_without_keys(query: str, expected: str) -> None:
    """The client's query is forwarded, without a credential if the provider does not read one there."""
    assert address_of(at("http://h/v1"), "openai_chat", query=query) == f"http://h/v1/chat/completions{expected}"
    assert passthrough_address(at("http://h/v1"), "/files", query) == f"http://h/v1/files{expected}"


def test_a_key_in_the_query_goes_to_who_reads_it_there() -> None:
    """Google takes the client's key in the query; not if the gateway has one of its own."""
    gemini = at("http://h", "gemini_generate")
    assert passthrough_address(gemini, "/v1beta/files", "key=k") == "http://h/v1beta/files?key=k"
    assert passthrough_address(replace(gemini, api_keys=("ours",)), "/v1beta/files", "key=k") == "http://h/v1beta/files"
    assert address_of(replace(at("http://h"), auth="query"), "openai_chat", query="key=k").endswith("?key=k")


def test_a_key_of_ours_is_quoted() -> None:
    """A key is shown as one value, whatever is in it."""
    assert with_query_key("http://h/a", "x&y=1") == "http://h/a?key=x%26y%3D1"
    assert with_query_key("http://h/a?alt=sse", "k") == "http://h/a?alt=sse&key=k"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai", "https://api.openai.com/v1/models"),
        ("anthropic", "https://api.anthropic.com/v1/models"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/models"),
        ("deepseek", "https://api.deepseek.com/models"),
        ("ollama", "http://127.0.0.1:11434/v1/models"),
        ("glm", "https://api.z.ai/api/paas/v4/models"),
        ("deepinfra", "https://api.deepinfra.com/v1/openai/models"),
    ],
)
def test_where_models_are_listed(name: str, expected: str) -> None:
    """The list that says whether a key is good, at no cost."""
    assert models_address(PROVIDERS[name]) == expected


@pytest.mark.parametrize(
    ("name", "moved", "expected"),
    [
        ("kimi", "https://api.moonshot.cn/v1", {"anthropic_messages": "https://api.moonshot.cn/anthropic"}),
        ("kimi", "http://127.0.0.1:9", {"anthropic_messages": "http://127.0.0.1:9/anthropic"}),
        ("kimi", "http://proxy/kimi/v1/", {"anthropic_messages": "http://proxy/kimi/anthropic"}),
        ("deepseek", "http://proxy/ds", {"anthropic_messages": "http://proxy/ds/anthropic"}),
        ("glm", "https://api.z.ai/api/coding/paas/v4", {"anthropic_messages": "https://api.z.ai/api/anthropic"}),
        ("kimi", "https://api.kimi.com/coding", {}),
        ("cohere", "http://127.0.0.1:9", {}),
        ("openai", "http://127.0.0.1:9", {}),
    ],
)
def test_a_provider_that_moves_takes_its_faces_along(name: str, moved: str, expected: dict[str, str]) -> None:
    """No face of a provider stays at the old host when its base is set: a key never goes where it was not meant to."""
    assert rebased(PROVIDERS[name], moved) == expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", "http://127.0.0.1:8642"), ("localhost", "http://localhost:8642"), ("::1", "http://[::1]:8642")],
)
def test_where_a_server_is(host: str, expected: str) -> None:
    """An IPv6 host stands in brackets."""
    assert server_url(host, 8642) == expected


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:1"), ("::", "http://[::1]:1"), ("10.0.0.1", "http://10.0.0.1:1")],
)
def test_how_a_program_of_the_machine_calls_a_server(host: str, url: str) -> None:
    """By an address that is one, and that the server knows as its own."""
    assert own_url(host, 1) == url


# --- whose a host is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:8642", "localhost"),
        ("a.example.", "a.example"),
        ("127.0.0.1:", "127.0.0.1"),
        ("[::1]:1", "::1"),
        ("[0:0::0001]", "::1"),
        ("[::ffff:127.0.0.1]", "::ffff:7f00:1"),
    ],
)
def test_a_host_is_compared_by_its_name(written: str, name: str) -> None:
    """Case, port, the root's dot and the spelling of an address don't count."""
    assert host_name(written) == name


@pytest.mark.parametrize(
    "written", ["", ".", ":80", "a b", "a,b", "me@a", "[::1", "[::g]", "a:80:80", "ä.example", "a/b"]
)
def test_what_names_no_host(written: str) -> None:
    """Nothing is read into it."""
    assert host_name(written) is None


NEAR = "localhost 127.0.0.1 127.8.8.8 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.1 192.168.1.1 169.254.169.254 100.64.0.1 "
NEAR += "::1 :: fe80::1 fd00::1 fc00::1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 2002:7f00:1:: 64:ff9b::a00:1 LOCALHOST "
NEAR += "localhost. a.localhost gpu.local host.docker.internal nas.lan box.home.arpa ollama vllm"
FAR = "8.8.8.8 172.32.0.1 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 localhost.example a.b.local.co"


@pytest.mark.parametrize("host", NEAR.split())
def test_what_is_of_this_machine_or_its_network(host: str) -> None:
    """Loopback, private, link-local, unique local, also inside IPv6; names that only a network of its own knows."""
    assert is_private(host)


@pytest.mark.parametrize("host", FAR.split())
def test_a_gateway_that_anyone_can_reach(host: str) -> None:
    """What only begins or ends like it is not."""
    assert not is_private(host)


@pytest.mark.parametrize("name", ["ollama", "llamacpp", "vllm", "lmstudio"])
def test_local_servers_that_are_built_in_are_near(name: str) -> None:
    """With nothing set at all."""
    assert all(map(is_private, hosts_of(PROVIDERS[name])))


def test_providers_of_the_world_are_not_near() -> None:
    """No built-in row but the local ones, whichever format it is asked in."""
    near = [name for name, row in PROVIDERS.items() if any(map(is_private, hosts_of(row)))]
    assert near == ["ollama", "llamacpp", "vllm", "lmstudio"]
