"""What `thoughtline connect` prints: rows that all keep the same laws, and that work when they are followed."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable

import msgspec
import pytest

from tests.sim.served_simulators import served
from tests.test_cli import run
from thoughtline.clients import (
    CLIENTS,
    DEFAULT_URL,
    KEY,
    Address,
    Client,
    SetupStep,
    address_of,
    fill,
    find,
    format_at,
    instructions,
    lines_of,
    nearest,
)

every_client = pytest.mark.parametrize("client", CLIENTS, ids=[client.name for client in CLIENTS])
STEPS = [(client, step) for client in CLIENTS for step in client.steps]
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": msgspec.yaml.decode,
    "python": lambda text: compile(text, "step", "exec"),
    "shell": shlex.split,
    "words": str.split,
}


@every_client
def test_everything_is_filled_in(client: Client) -> None:
    """No placeholder is left; the base and the key stand there, and the model wherever a client names one."""
    text = instructions(client, Address("https://gate.example/deepseek", "some-model"), "some-key")
    assert not {"<base>", "<key>", "<model>"} & set(text.replace("<", " <").replace(">", "> ").split())
    assert "https://gate.example/deepseek" in text
    assert "some-key" in text or client.name == "gemini-cli-login"  # whose login is its key
    assert "some-model" in text or client.name == "open-webui"  # which asks the gateway for its models


@pytest.mark.parametrize(("client", "step"), STEPS, ids=[f"{client.name}-{step.language}" for client, step in STEPS])
def test_lines_are_what_they_are_said_to_be(client: Client, step: SetupStep) -> None:
    """JSON is JSON, TOML is TOML, and so on: what is printed can be pasted."""
    for provider in (None, "anthropic", "openai", "gemini", "mistral", "openrouter"):
        assert READERS[step.language](lines_of(client, step, address_of(client, DEFAULT_URL, provider)))


def test_what_to_know_of_lists_in_content() -> None:
    """A note for chat clients of a provider that answers in lists, with either kind of URL; for no other client."""
    chat, messages = find("openai"), find("claude-code")
    assert chat
    assert messages
    for address, is_told in (
        (address_of(chat, DEFAULT_URL, "mistral"), True),
        (address_of(chat, DEFAULT_URL, model="mistral/magistral-medium-latest"), True),
        (address_of(chat, DEFAULT_URL, "deepseek"), False),
    ):
        assert ("--plain-content" in instructions(chat, address)) is is_told
    assert "--plain-content" not in instructions(messages, address_of(messages, DEFAULT_URL, "mistral"))


FORMATS_SET = [
    ("opencode", "anthropic", "anthropic_messages", '"npm": "@ai-sdk/anthropic"'),
    ("opencode", "openai", "openai_responses", '"npm": "@ai-sdk/openai"'),
    ("opencode", "gemini", "gemini_generate", "/gemini/v1beta"),
    ("opencode", "deepseek", "openai_chat", '"npm": "@ai-sdk/openai-compatible"'),
    ("opencode", "vertex", "gemini_generate", '"npm": "@ai-sdk/google"'),
    ("opencode", "mine", "openai_chat", '"npm": "@ai-sdk/openai-compatible"'),
    ("kilo", "anthropic", "anthropic_messages", '"npm": "@ai-sdk/anthropic"'),
    ("cline", "anthropic", "anthropic_messages", '"provider": "anthropic"'),
    ("cline", "openai", "openai_chat", '"provider": "openai-compatible"'),
    ("pi", "anthropic", "anthropic_messages", '"api": "anthropic-messages"'),
    ("pi", "gemini", "gemini_generate", '"api": "google-generative-ai"'),
    ("copilot-cli", "openai", "openai_responses", "WIRE_API=responses"),
    ("copilot-cli", "anthropic", "anthropic_messages", "PROVIDER_TYPE=anthropic"),
    ("copilot-cli", "gemini", "openai_chat", "PROVIDER_TYPE=openai"),
    ("continue", "anthropic", "anthropic_messages", "provider: anthropic"),
    ("continue", "openai", "openai_chat", "provider: openai"),
]


@pytest.mark.parametrize(("name", "provider", "format", "line"), FORMATS_SET)
def test_a_client_speaks_the_provider_s_own_format(name: str, provider: str, format: str, line: str) -> None:
    """Where it can be set to; else the one that it usually speaks. What was chosen is said."""
    client = find(name)
    assert client is not None
    address = address_of(client, DEFAULT_URL, provider)
    assert format_at(client, address) == format
    assert line in instructions(client, address)
    is_usual = format == "openai_chat"
    assert (f"It is set to speak {format}" in instructions(client, address)) is not is_usual


def test_a_guest_s_model_is_asked_in_its_maker_s_format() -> None:
    """Claude on Vertex speaks Messages."""
    client = find("opencode")
    assert client is not None
    address = address_of(client, DEFAULT_URL, "vertex", model="claude-sonnet-4-5@20250929")
    assert format_at(client, address) == "anthropic_messages"


@pytest.mark.parametrize("name", ["opencode", "kilo", "cline", "continue", "pi", "mistral-vibe", "llm"])
def test_clients_that_can_t_read_lists_get_plain_content(name: str) -> None:
    """At Mistral, and nowhere else; `connect` says so."""
    client = find(name)
    assert client is not None
    at_mistral = instructions(client, address_of(client, DEFAULT_URL, "mistral"))
    assert re.search(r"x-thoughtline-content\W+plain", at_mistral)
    assert "It gets plain text" in at_mistral
    assert "--plain-content" not in at_mistral
    assert "x-thoughtline-content" not in instructions(client, address_of(client, DEFAULT_URL, "deepseek"))


@pytest.mark.parametrize("name", ["opencode", "kilo", "cline", "continue"])
def test_a_claude_that_thinks_only_if_asked_is_asked(name: str) -> None:
    """In the client's own settings, for in one format the gateway asks for nothing by itself."""
    client = find(name)
    assert client is not None
    for model, is_asked in (("claude-sonnet-4-5", True), ("claude-opus-4-8", True), ("claude-opus-5-5", False)):
        text = instructions(client, address_of(client, DEFAULT_URL, "anthropic", model=model))
        assert ("It is set to ask for thinking" in text) is is_asked
        assert ("8192" in text or "adaptive" in text) is is_asked


@every_client
def test_every_name_finds_its_client(client: Client) -> None:
    """Names, titles and aliases, however they are written; no two clients share one."""
    for name in (client.name, client.title, *client.aliases):
        assert find(name) is client
        assert find(name.upper().replace("-", "_")) is client
        assert find(name.replace("-", " ")) is client


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        (None, None, Address("http://h:1/openai", "gpt-5")),
        ("deepseek", None, Address("http://h:1/deepseek", "deepseek-v4-pro", 1_000_000)),
        ("deepseek", "deepseek-flash", Address("http://h:1/deepseek", "deepseek-flash")),
        ("groq", "openai/gpt-oss-120b", Address("http://h:1/groq", "openai/gpt-oss-120b")),
        (None, "deepseek/deepseek-v4-pro", Address("http://h:1", "deepseek/deepseek-v4-pro", 1_000_000)),
        (None, "gpt-6", Address("http://h:1/openai", "gpt-6")),
        ("mine", None, Address("http://h:1/mine", "MODEL")),
    ],
)
@pytest.mark.parametrize("url", ["http://h:1", "http://h:1/", "http://h:1/v1"])
def test_address(url: str, provider: str | None, model: str | None, expected: Address) -> None:
    """With a provider in the path the model has its own name; at the root the model names its provider."""
    codex = find("codex")
    assert codex is not None
    assert address_of(codex, url, provider, model=model) == expected


@every_client
def test_a_context_size_that_is_not_known_is_left_out(client: Client) -> None:
    """And what is printed without it can still be pasted."""
    for step in client.steps:
        lines = lines_of(client, step, Address("https://gate.example/x", "some-model"))
        assert "None" not in lines
        assert READERS[step.language](lines)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("claude-code", "--provider", "kimi"), "CLAUDE_CODE_MAX_CONTEXT_TOKENS=262144\n"),
        (("claude-code", "--provider", "glm", "--model", "glm-5.2"), "CLAUDE_CODE_MAX_CONTEXT_TOKENS=1048576\n"),
        (("claude-code", "--provider", "vllm", "--context", "40000"), "CLAUDE_CODE_MAX_CONTEXT_TOKENS=40000\n"),
        (("codex", "--provider", "kimi"), 'model_reasoning_effort = "high"\n    model_context_window = 262144\n'),
        (("opencode", "--provider", "deepseek"), '"limit": {"context": 1000000, "output": 32000}'),
        (("pi", "--provider", "kimi"), '"contextWindow": 262144,'),
    ],
)
def test_the_command_prints_what_a_program_would_guess_wrongly(arguments: tuple[str, ...], printed: str) -> None:
    """How many tokens a model takes, and how hard it is to think."""
    assert printed in run("connect", *arguments).stdout


@pytest.mark.parametrize("tokens", ["many", "-1", "10", "1e6", "9" * 30])
def test_a_context_size_is_a_number_of_tokens(tokens: str) -> None:
    """Anything else is named, with an example."""
    result = run("connect", "codex", "--context", tokens)
    assert (result.returncode, "is not a number of tokens" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("typed", "meant"), [("claud", "claude-code"), ("cursr", "cursor"), ("opencod", "opencode"), ("zzzzzz", None)]
)
def test_nearest(typed: str, meant: str | None) -> None:
    """A slip of the finger gets the name that was meant, nonsense gets none."""
    assert nearest(typed) == meant


@pytest.mark.parametrize(
    ("name", "simulator"), [("openai-sdk", "deepseek"), ("anthropic-sdk", "anthropic"), ("google-sdk", "gemini")]
)
def test_python_that_is_printed_runs(name: str, simulator: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands, against a strict simulator at that address."""
    client = find(name)
    assert client is not None
    (step,) = client.steps
    code = fill(step.lines, address_of(client, served(simulator).url, simulator))
    exec(compile(code, name, "exec"), {})
    assert capsys.readouterr().out == "Here is the answer you asked for.\n"


def test_the_command_names_all_clients() -> None:
    """Without a client it lists them, each on a line."""
    result = run("connect")
    assert (result.returncode, len(result.stdout.splitlines())) == (0, len(CLIENTS))
    assert all(client.name in result.stdout for client in CLIENTS)


def test_the_command_prints_what_to_set() -> None:
    """For the provider, model and address given; the key stays a blank to fill."""
    result = run("connect", "Claude", "--provider", "kimi", "--model", "kimi-k3", "--url", "https://gate.example")
    assert result.returncode == 0
    assert "export ANTHROPIC_BASE_URL=https://gate.example/kimi\n" in result.stdout
    assert "export ANTHROPIC_MODEL=kimi-k3\n" in result.stdout
    assert f"export ANTHROPIC_AUTH_TOKEN={KEY}\n" in result.stdout


@pytest.mark.parametrize(
    ("typed", "message"), [("claude-cod", "did you mean claude-code?"), ("zzzzzz", "lists them all")]
)
def test_the_command_refuses_a_client_it_does_not_know(typed: str, message: str) -> None:
    """Status 2, with the nearest name if there is one."""
    result = run("connect", typed)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("model", ['a"b', "a b", "a'b", "a\\b", "$(id)"])
def test_the_command_refuses_what_would_break_a_file(model: str) -> None:
    """A value that needs escaping somewhere is no value of a setting."""
    result = run("connect", "codex", "--model", model)
    assert result.returncode == 2
    assert "can't be written into a settings file" in result.stderr


@every_client
def test_no_markdown_in_a_terminal(client: Client) -> None:
    """What `connect` prints has no link of Markdown in it."""
    text = instructions(client, address_of(client, "http://127.0.0.1:8642", None))
    assert re.search(r"\]\([\w./#-]+\)", text) is None
