"""Coding agents of the terminal that were made for any provider.

Settings and habits come from running the programs, or from their makers' documentation, as of 2026-11-15.
"""

from __future__ import annotations

from thoughtline.clients.row import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Client,
    FormatSetup,
    Passing,
    Program,
    SetupStep,
)

_CLINE_BUDGET = '{"enabled": true, "budgetTokens": 8192}'

CLINE = Client(
    "cline",
    "Cline",
    aliases=("cline-cli", "roo-code", "roo"),
    formats=(CHAT, RESPONSES, MESSAGES, GEMINI),
    steps=(
        SetupStep(
            "In `~/.cline/data/settings/providers.json`:",
            "json",
            """
{
  "version": 1,
  "lastUsedProvider": "<kind>",
  "providers": {
    "<kind>": {
      "settings": {
        "provider": "<kind>",
        "apiKey": "<key>",
        "model": "<model>",
        "headers": {"x-thoughtline-content": "<content>"},
        "reasoning": <thinking>,
        "baseUrl": "<base><path>"
      },
      "updatedAt": "2026-11-16T00:00:00.000Z",
      "tokenSource": "manual"
    }
  }
}
""",
            file="~/.cline/data/settings/providers.json",
            passing=Passing("path", "CLINE_PROVIDER_SETTINGS_PATH"),
        ),
        SetupStep("Or in a shell:", "shell", "cline auth openai -k <key> -m <model> -b <base>/v1"),
        SetupStep(
            "Or in the settings of the extension:",
            "words",
            """
API Provider    OpenAI Compatible
Base URL        <base>/v1
API Key         <key>
Model ID        <model>
""",
        ),
    ),
    habit="Keeps reasoning in chat and Gemini; strips it in Messages and Responses.",
    notes=(
        "The command sets a base URL only for providers of OpenAI's kind. For others, set `baseUrl` in "
        "`~/.cline/data/settings/providers.json`.",
    ),
    tried="3.0.65, by `make test-clients`",
    agents=("cline/",),
    program=Program("cline", "npm install --global cline"),
    spellings=(
        FormatSetup(CHAT, {"kind": "openai-compatible", "path": "/v1"}),
        # Not Responses: there it asks for no encrypted reasoning, so no one keeps what OpenAI requires back.
        FormatSetup(
            MESSAGES,
            {"kind": "anthropic", "path": "/v1"},
            {"claude_budget": _CLINE_BUDGET, "claude_adaptive": _CLINE_BUDGET},
        ),
        FormatSetup(GEMINI, {"kind": "gemini", "path": "/v1beta"}),
    ),
)

_OPENCODE_LINES = """
{
  "provider": {
    "thoughtline-<provider>": {
      "npm": "<package>",
      "name": "thoughtline-<provider>",
      "options": {
        "headers": {"x-thoughtline-content": "<content>"},
        "baseURL": "<base><path>",
        "apiKey": "<key>"
      },
      "models": {
        "<model>": {
          "limit": {"context": <context>, "output": 32000},
          "options": <thinking>,
          "name": "<model>"
        }
      }
    }
  },
  "model": "thoughtline-<provider>/<model>"
}
"""
_OPENCODE_SPELLINGS = (
    FormatSetup(
        CHAT,
        {"package": "@ai-sdk/openai-compatible", "path": "/v1"},
        {"reasoning": '{"reasoning": {"enabled": true}}'},
    ),
    FormatSetup(RESPONSES, {"package": "@ai-sdk/openai", "path": "/v1"}),
    FormatSetup(
        MESSAGES,
        {"package": "@ai-sdk/anthropic", "path": "/v1"},
        {
            "claude_budget": '{"thinking": {"type": "enabled", "budgetTokens": 8192}}',
            "claude_adaptive": '{"thinking": {"type": "adaptive"}}',
        },
    ),
    FormatSetup(GEMINI, {"package": "@ai-sdk/google", "path": "/v1beta"}),
)
_OPENCODE_CHOICE = ("--model", "thoughtline-<provider>/<model>")
_OPENCODE_FORMATS = (CHAT, RESPONSES, MESSAGES, GEMINI)
_OPENCODE_NOTES = (
    "It writes titles with a second, small model of the same provider.",
    "Each provider has a name of its own, so that a session can go on with another: `--model thoughtline-<provider>/"
    "<model>`, which `run` passes on to it.",
)

OPENCODE = Client(
    "opencode",
    "opencode",
    formats=_OPENCODE_FORMATS,
    steps=(
        SetupStep(
            "In `~/.config/opencode/opencode.json`, or the project's `opencode.json`:",
            "json",
            _OPENCODE_LINES,
            file="~/.config/opencode/opencode.json",
            passing=Passing("content", "OPENCODE_CONFIG_CONTENT"),
        ),
    ),
    habit="Keeps reasoning; after a model switch, sends it as visible text.",
    notes=(
        *_OPENCODE_NOTES,
        "`OPENCODE_DISABLE_MODELS_FETCH=1` stops it from contacting models.opencode.ai; it still fetches packages "
        "from npm.",
    ),
    tried="1.18.33, by `make test-clients`",
    agents=("opencode/",),
    program=Program("opencode", "npm install --global opencode-ai", choice=_OPENCODE_CHOICE, choosers=("run",)),
    spellings=_OPENCODE_SPELLINGS,
)

KILO = Client(
    "kilo",
    "Kilo",
    aliases=("kilo-code", "kilo-cli"),
    formats=_OPENCODE_FORMATS,
    steps=(
        SetupStep(
            "In `~/.config/kilo/kilo.json`, or the project's `kilo.json`:",
            "json",
            _OPENCODE_LINES,
            file="~/.config/kilo/kilo.json",
            passing=Passing("content", "KILO_CONFIG_CONTENT"),
        ),
    ),
    habit="Keeps reasoning.",
    notes=_OPENCODE_NOTES,
    tried="7.7.9, by hand on 2026-11-15",
    agents=("kilo-code/", "kilocode/", "kilo/"),
    program=Program("kilo", "npm install --global @kilocode/cli", choice=_OPENCODE_CHOICE, choosers=("run",)),
    spellings=_OPENCODE_SPELLINGS,
)

CONTINUE = Client(
    "continue",
    "Continue",
    aliases=("continue-dev", "continue-cli"),
    formats=(CHAT, MESSAGES),
    steps=(
        SetupStep(
            "In `~/.continue/config.yaml`, for the terminal and for editors:",
            "yaml",
            """
name: thoughtline
version: 0.0.1
schema: v1
models:
  - name: <model>
    provider: <kind>
    model: <model>
    apiBase: <base><path>
    apiKey: <key>
    roles: [chat, edit, apply]
    requestOptions: {headers: {x-thoughtline-content: <content>}}
    requestOptions: {extraBodyProperties: {<thinking>}}
""",
            file="~/.continue/config.yaml",
            passing=Passing("path", "--config"),
            kept=("name", "version", "schema"),
        ),
    ),
    habit="Strips all reasoning.",
    notes=("Without `apiBase` the key goes to OpenAI.",),
    tried="1.5.47, by `make test-clients`",
    agents=("continue/",),
    program=Program("cn", "npm install --global @continuedev/cli"),
    spellings=(
        FormatSetup(CHAT, {"kind": "openai", "path": "/v1"}, {"reasoning": "reasoning: {enabled: true}"}),
        FormatSetup(
            MESSAGES,
            {"kind": "anthropic", "path": "/v1"},
            {
                "claude_budget": "thinking: {type: enabled, budget_tokens: 8192}",
                "claude_adaptive": "thinking: {type: adaptive}",
            },
        ),
    ),
)

AIDER = Client(
    "aider",
    "aider",
    formats=(CHAT,),
    steps=(
        SetupStep(
            "In `~/.aider.conf.yml`:",
            "yaml",
            """
model: openai/<model>
openai-api-base: <base>/v1
openai-api-key: <key>
""",
            file="~/.aider.conf.yml",
        ),
        SetupStep(
            "Or in the shell that starts it:",
            "shell",
            """
export OPENAI_API_BASE=<base>/v1
export OPENAI_API_KEY=<key>
aider --model openai/<model>
""",
        ),
    ),
    habit="Strips reasoning; after a restart, sends some of it as visible text. It calls no tools.",
    agents=("aider/",),
    program=Program("aider", "python -m pip install aider-install && aider-install"),
)

# https://github.com/badlogic/pi-mono, packages/coding-agent/docs/custom-provider.md, as of 0.73.1.
# A model in pi's own file has 128,000 tokens unless it says otherwise. One of an extension has none: every prompt is
# summarized.
_PI_EXTENSION = """\
const sized = (row) => ({ ...row, models: row.models.map((model) => ({ contextWindow: 128000, ...model })) });
export default (pi) =>
  Object.entries((<lines>).providers).forEach(([name, row]) => pi.registerProvider(name, sized(row)));
"""

PI = Client(
    "pi",
    "pi",
    aliases=("pi-coding-agent",),
    formats=(CHAT, RESPONSES, MESSAGES, GEMINI),
    steps=(
        SetupStep(
            "In `~/.pi/agent/models.json`:",
            "json",
            """
{
  "providers": {
    "thoughtline": {
      "baseUrl": "<base><path>",
      "api": "<api>",
      "headers": {"x-thoughtline-content": "<content>"},
      "apiKey": "<key>",
      "models": [
        {
          "id": "<model>",
          "name": "<model>",
          "reasoning": true,
          "input": ["text"],
          "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
          "contextWindow": <context>,
          "maxTokens": 32000
        }
      ]
    }
  }
}
""",
            file="~/.pi/agent/models.json",
            passing=Passing("path", "--extension", script=_PI_EXTENSION),
        ),
        SetupStep("Then:", "shell", "pi --provider thoughtline --model <model>"),
    ),
    habit="Keeps reasoning; drops signed blocks without text, and after a model switch sends reasoning as text.",
    notes=(
        "With `anthropic-messages` it sends a thinking budget to Claude models it does not know. The newest refuse "
        "that; the gateway asks them in the way they accept.",
    ),
    tried="0.73.1, by `make test-clients`",
    agents=("pi/", "pi-coding-agent/"),
    program=Program("pi", "npm install --global @mariozechner/pi-coding-agent"),
    spellings=(
        FormatSetup(CHAT, {"api": "openai-completions", "path": "/v1"}),
        FormatSetup(RESPONSES, {"api": "openai-responses", "path": "/v1"}),
        FormatSetup(MESSAGES, {"api": "anthropic-messages", "path": ""}),
        FormatSetup(GEMINI, {"api": "google-generative-ai", "path": "/v1beta"}),
    ),
)
