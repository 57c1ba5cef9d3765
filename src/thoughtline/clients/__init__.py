"""How to set up a client for the gateway: `thoughtline connect` prints it, `docs/clients.md` lists it.

A `Client` is a row: steps with the placeholders `<base>`, `<key>` and `<model>`, and notes for the user.

    client's name → find → Client;  url, provider, model → address_of → Address;  both → instructions → text
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from textwrap import indent
from types import MappingProxyType
from typing import NamedTuple

from thoughtline import providers
from thoughtline.clients import editors, further_agents, libraries, open_agents, terminal
from thoughtline.clients.row import CHAT, FormatSetup
from thoughtline.clients.row import Client as Client
from thoughtline.clients.row import SetupStep as SetupStep
from thoughtline.destinations.catalogue import listed
from thoughtline.providers import canonical_name, maker_of
from thoughtline.providers.thinking import knob_for
from thoughtline.replay.detection import resolve
from thoughtline.terminal import unlinked
from thoughtline.values.destination import Destination
from thoughtline.values.nearest import nearest as nearest_word
from thoughtline.values.turns import FormatName

DEFAULT_URL = "http://127.0.0.1:8642"
KEY = "YOUR_KEY"
SETTABLE = re.compile(r"[\w.:/@+~-]+")
"""Values that are safe in any client's file: without spaces, quotes and other characters that need escaping."""

CLIENTS: tuple[Client, ...] = (
    terminal.CLAUDE_CODE,
    terminal.CODEX,
    editors.CURSOR,
    editors.VSCODE,
    terminal.COPILOT_CLI,
    open_agents.CLINE,
    open_agents.OPENCODE,
    open_agents.KILO,
    terminal.GEMINI_CLI,
    terminal.GEMINI_CLI_LOGIN,
    terminal.QWEN_CODE,
    open_agents.CONTINUE,
    open_agents.AIDER,
    open_agents.PI,
    further_agents.GOOSE,
    further_agents.KIMI_CODE,
    further_agents.MISTRAL_VIBE,
    further_agents.OPENHANDS,
    further_agents.MINI_SWE_AGENT,
    further_agents.CLAUDE_CODE_ROUTER,
    editors.ZED,
    libraries.OPENAI_SDK,
    libraries.ANTHROPIC_SDK,
    libraries.GOOGLE_SDK,
    libraries.LITELLM,
    libraries.LLM,
    libraries.OPEN_WEBUI,
)


def example_models() -> dict[str, str]:
    """A model of each provider, for a user who names none."""
    return dict(sorted((row.name, row.example_model) for row in providers.facts().rows if row.example_model))


_LISTS = (
    "This provider's answers have a list in `content`. If a client stops there, or shows `[object Object]`, have it "
    "sent text and `reasoning_content`: give it a key made by `thoughtline keys add NAME --plain-content`, send the "
    'header `x-thoughtline-content: plain`, or set `[content] mode = "plain"` for all clients.'
)


class Address(NamedTuple):
    """A client's target: the base without `/v1`, the model's name at the gateway, and its context size in tokens, if
    known.
    """

    base: str
    model: str
    context: int | None = None


def find(name: str) -> Client | None:
    """The client of that name, title or alias."""
    return _named().get(_plain(name))


@lru_cache(256)
def client_of(user_agent: str) -> str:
    """The name of the client that sends this user agent; empty if it is unknown."""
    shown = user_agent.lower()
    return next((client.name for client in CLIENTS if client.agents and shown.startswith(client.agents)), "")


def nearest(name: str) -> str | None:
    """The client name closest to this one."""
    names = _named()
    close = nearest_word(_plain(name), names)
    return names[close].name if close else None


def address_of(
    client: Client, url: str, provider: str | None = None, *, model: str | None = None, context: int | None = None
) -> Address:
    """Under `/{provider}` a model has the provider's own name for it. Without a provider, a model that names one, as in
    `deepseek/deepseek-v4-pro`, uses the gateway's root, and any other the provider that the client is made for.
    """
    root = url.rstrip("/").removesuffix("/v1")
    if provider is None and model is not None and "/" in model:
        return Address(root, model, context or _context_of(model))
    chosen = provider or client.provider
    named = model or example_models().get(chosen, "MODEL")
    return Address(f"{root}/{chosen}", named, context or _context_of(named))


def _context_of(model: str) -> int | None:
    """The context size of a model, if its row has it: clients guess wrongly there."""
    name = model.rpartition("/")[2].lower()
    every = (context for row in providers.facts().rows for context in row.contexts)
    return next((context.tokens for context in every if name.startswith(context.beginning)), None)


def instructions(client: Client, address: Address, key: str = KEY) -> str:
    """The steps to take, and notes."""
    steps = [f"{step.where}\n\n{indent(lines_of(client, step, address, key=key), '    ')}\n" for step in client.steps]
    notes = [f"- {unlinked(note)}" for note in (*choices_of(client, address), *notes_of(client, address, key))]
    return "\n".join([f"{client.title} through {address.base}\n", *steps, *notes])


def lines_of(client: Client, step: SetupStep, address: Address, *, key: str = KEY) -> str:
    """The lines of a step, filled in, with those that only other providers need if it is one."""
    is_elsewhere = step.elsewhere and _provider_at(address)[0] != client.provider
    lines = f"{step.lines.rstrip()}\n{step.elsewhere.strip()}" if is_elsewhere else step.lines
    return fill_words(client, lines, address, key).strip()


def fill_words(client: Client, text: str, address: Address, key: str = KEY) -> str:
    """A text of a client's row, filled in."""
    return fill(text, address, key, _words(client, address))


def format_at(client: Client, address: Address) -> FormatName:
    """The format for this client at this provider: one that the provider speaks, of those that the client can be set
    to.
    """
    if not client.spellings:
        return client.formats[0]
    provider, model = _provider_at(address)
    row, maker = providers.host_named(provider), maker_of(model)
    wanted = row.formats if row is not None else ()
    if row is not None and maker is not None and maker.name in row.guests:
        wanted = (row.guests[maker.name],)
    formats = [spelling.format for spelling in client.spellings]
    return next((one for one in wanted if one in formats), formats[0])


def choices_of(client: Client, address: Address) -> list[str]:
    """The choices made for this client at this provider, one sentence each."""
    words = _words(client, address)
    lines = "".join(step.lines for step in client.steps)
    sentences = []
    if client.spellings and format_at(client, address) != client.spellings[0].format:
        sentences.append(f"It is set to speak {format_at(client, address)}, the provider's own format.")
    if words.get("thinking") and "<thinking>" in lines:
        sentences.append("It is set to ask for thinking: this model thinks only if asked.")
    if words.get("content") and "<content>" in lines:
        sentences.append("It gets plain text, for it can't read this provider's lists in `content`.")
    return sentences


def _words(client: Client, address: Address) -> Mapping[str, str | None]:
    """The values of the placeholders in a client's lines at this URL."""
    provider, model = _provider_at(address)
    own_format = format_at(client, address)
    spelling = next((one for one in client.spellings if one.format == own_format), FormatSetup(own_format, {}))
    contract = resolve(Destination(provider, "", model, format=own_format))
    thinks_if_asked = re.search(contract.thinks_if_asked, model.lower()) and not contract.thinks_by_default
    return {
        **{name: None for one in client.spellings for name in one.words},
        **spelling.words,
        "provider": provider,
        "thinking": spelling.thinking.get(knob_for(contract, model).style) if thinks_if_asked else None,
        "content": "plain" if _has_lists(provider, model) and own_format == CHAT else None,
    }


def _has_lists(provider: str, model: str) -> bool:
    """Whether a provider's chat answers have a list in `content`."""
    return resolve(Destination(provider, "", model, format=CHAT)).dialect.carrier in ("mistral_chunks", "cohere_chunks")


def key_variables(address: Address) -> tuple[str, ...]:
    """Environment variables that may hold a key for the gateway or its provider; the first one set counts."""
    name = _provider_at(address)[0]
    row = providers.host_named(name)
    usual = row.key_variables if row is not None else ()
    return ("THOUGHTLINE_KEY", *(usual or (f"{name.upper().replace('-', '_')}_API_KEY",)))


def notes_of(client: Client, address: Address, key: str = KEY) -> list[str]:
    """Notes on a client and on its provider."""
    is_set = any("<content>" in step.lines for step in client.steps)
    has_lists = CHAT in client.formats and not is_set and _has_lists(*_provider_at(address))
    notes = (client.habit, *client.notes, *([_LISTS] if has_lists else []))
    return [fill_words(client, note, address, key) for note in notes]


def _provider_at(address: Address) -> tuple[str, str]:
    """A provider and its own name of the model: from the URL, else from the model."""
    named = address.base.rpartition("/")[2]
    if named in listed() or "/" not in address.model:
        return canonical_name(named), address.model
    provider, _, name = address.model.partition("/")
    return canonical_name(provider), name


def fill(text: str, address: Address, key: str = KEY, words: Mapping[str, str | None] = MappingProxyType({})) -> str:
    """The text with the URL, the key, the model, its context size and other placeholders filled in. A line with an
    unknown value is left out: the client's own default is as good.
    """
    known = {**words, "context": str(address.context) if address.context is not None else None}
    known |= {"base": address.base, "model": address.model, "key": key}
    for name, word in known.items():
        if word is None:
            text = "".join(line for line in text.splitlines(keepends=True) if f"<{name}>" not in line)
        else:
            text = text.replace(f"<{name}>", word)
    return text


def _named() -> dict[str, Client]:
    return {_plain(name): client for client in CLIENTS for name in (client.name, client.title, *client.aliases)}


def _plain(name: str) -> str:
    """Names are compared without case and punctuation: `Claude Code`, `claude_code`, `claudecode`."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
