"""Coding agents of the terminal.

Settings and habits were seen of the running programs, or read in their makers' documentation, on 2026-11-15.
"""

from __future__ import annotations

from thoughtline.clients.row import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    SHELL,
    Client,
    Passing,
    Program,
    SetupStep,
)

CLAUDE_CODE = Client(
    "claude-code",
    "Claude Code",
    ("claude", "cc"),
    formats=(MESSAGES,),
    provider="anthropic",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export ANTHROPIC_BASE_URL=<base>
export ANTHROPIC_API_KEY=<key>
export ANTHROPIC_MODEL=<model>
export CLAUDE_CODE_MAX_CONTEXT_TOKENS=<context>
""",
            file="~/.claude/settings.json",
            elsewhere="""
export ANTHROPIC_DEFAULT_OPUS_MODEL=<model>
export ANTHROPIC_DEFAULT_SONNET_MODEL=<model>
export ANTHROPIC_DEFAULT_HAIKU_MODEL=<model>
""",
        ),
    ),
    habit="Keeps all thinking, but moves blocks that stood between calls, and drops all of it when the model changes.",
    notes=(
        "No `/v1` in the base. The same names work in the `env` block of `~/.claude/settings.json`.",
        "`ANTHROPIC_AUTH_TOKEN` in place of `ANTHROPIC_API_KEY` sends a bearer token, and needs no approval.",
        "It also asks for models of its own choice, for titles and checks. `ANTHROPIC_DEFAULT_OPUS_MODEL`, "
        "`ANTHROPIC_DEFAULT_SONNET_MODEL` and `ANTHROPIC_DEFAULT_HAIKU_MODEL` name others where those don't exist.",
        "For a model that it does not know it assumes a context of a million tokens, and compacts too late. "
        "`CLAUDE_CODE_MAX_CONTEXT_TOKENS` says the real size; `--context` puts it here.",
        "`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1` stops telemetry and updates, which go elsewhere.",
        "Its modes for Bedrock and Vertex: [what to set](gateway.md#bedrock-and-vertex).",
    ),
    tried="2.1.325, by `make test-clients`",
    agents=("claude-cli/", "claude-code/"),
    program=Program(
        "claude",
        "npm install --global @anthropic-ai/claude-code",
        without=(
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ),
    ),
)

CODEX = Client(
    "codex",
    "Codex CLI",
    ("openai-codex",),
    formats=(RESPONSES,),
    provider="openai",
    steps=(
        SetupStep(
            "In `~/.codex/config.toml`, above any table:",
            "toml",
            """
model = "<model>"
model_provider = "thoughtline"
model_reasoning_effort = "high"
model_context_window = <context>

[model_providers.thoughtline]
name = "thoughtline"
base_url = "<base>/v1"
env_key = "THOUGHTLINE_KEY"
wire_api = "responses"
""",
            file="~/.codex/config.toml",
            passing=Passing("flags", "-c"),
        ),
        SetupStep(SHELL, "shell", "export THOUGHTLINE_KEY=<key>"),
    ),
    habit="Keeps all reasoning items, encrypted and plain, also over a resume.",
    notes=(
        'It speaks Responses only: `wire_api = "chat"` is refused at start.',
        "Without `model_reasoning_effort` it asks models that it does not know for no effort at all.",
        "Where a provider knows function tools only, as DeepSeek does, the gateway leaves `web_search` out.",
        "With `supports_websockets = true` it asks over a WebSocket and sends only what is new; the built-in provider, "
        "told by `openai_base_url`, does so by itself.",
        "It warns that it has no metadata for the model; that is no error.",
    ),
    tried="0.166.0, by `make test-clients`",
    agents=("codex_", "codex-", "codex/"),
    program=Program("codex", "npm install --global @openai/codex"),
)

COPILOT_CLI = Client(
    "copilot-cli",
    "Copilot CLI",
    ("github-copilot-cli",),
    formats=(CHAT, RESPONSES, MESSAGES),
    provider="deepseek",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export COPILOT_PROVIDER_BASE_URL=<base>/v1
export COPILOT_PROVIDER_TYPE=openai
export COPILOT_PROVIDER_API_KEY=<key>
export COPILOT_MODEL=<model>
""",
        ),
    ),
    habit="Keeps all reasoning in order; writes new ids on Responses items.",
    notes=(
        "`COPILOT_PROVIDER_WIRE_API=responses` for Responses. With `COPILOT_PROVIDER_TYPE=anthropic`: no `/v1`.",
        "`COPILOT_OFFLINE=true` keeps it from GitHub.",
    ),
    tried="1.0.102, by `make test-clients`",
    agents=("copilot/", "githubcopilotcli/", "copilot-cli/"),
    program=Program(
        "copilot",
        "npm install --global @github/copilot",
        without=("COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_PROVIDER_WIRE_API"),
    ),
)

CLINE = Client(
    "cline",
    "Cline",
    ("cline-cli", "roo-code", "roo"),
    formats=(CHAT, RESPONSES, MESSAGES, GEMINI),
    provider="deepseek",
    steps=(
        SetupStep(
            "In `~/.cline/data/settings/providers.json`:",
            "json",
            """
{
  "version": 1,
  "lastUsedProvider": "openai-compatible",
  "providers": {
    "openai-compatible": {
      "settings": {
        "provider": "openai-compatible",
        "apiKey": "<key>",
        "model": "<model>",
        "baseUrl": "<base>/v1"
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
    habit="Keeps reasoning on chat and Gemini; strips it on Anthropic and on Responses.",
    notes=(
        "The command sets a base for OpenAI's kinds only; others: `baseUrl` in "
        "`~/.cline/data/settings/providers.json`.",
    ),
    tried="3.0.65, by `make test-clients`",
    agents=("cline/",),
    program=Program("cline", "npm install --global cline"),
)

_OPENCODE_LINES = """
{
  "provider": {
    "thoughtline": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "thoughtline",
      "options": {"baseURL": "<base>/v1", "apiKey": "<key>"},
      "models": {
        "<model>": {
          "limit": {"context": <context>, "output": 32000},
          "name": "<model>"
        }
      }
    }
  },
  "model": "thoughtline/<model>"
}
"""
_OPENCODE_FORMATS = (CHAT, RESPONSES, MESSAGES, GEMINI)
_OPENCODE_NOTES = (
    "A second, small model writes titles, on the same provider.",
    "With `@ai-sdk/anthropic` or `@ai-sdk/openai` the base ends in `/v1` too, with `@ai-sdk/google` in `/v1beta`.",
)

OPENCODE = Client(
    "opencode",
    "opencode",
    (),
    formats=_OPENCODE_FORMATS,
    provider="deepseek",
    steps=(
        SetupStep(
            "In `~/.config/opencode/opencode.json`, or `opencode.json` of the project:",
            "json",
            _OPENCODE_LINES,
            file="~/.config/opencode/opencode.json",
            passing=Passing("content", "OPENCODE_CONFIG_CONTENT"),
        ),
    ),
    habit="Keeps reasoning; after a switch of the model it sends it as visible text.",
    notes=(
        *_OPENCODE_NOTES,
        "`OPENCODE_DISABLE_MODELS_FETCH=1` keeps it from models.opencode.ai; packages it asks of npm even so.",
    ),
    tried="1.18.33, by `make test-clients`",
    agents=("opencode/",),
    program=Program("opencode", "npm install --global opencode-ai"),
)

KILO = Client(
    "kilo",
    "Kilo",
    ("kilo-code", "kilo-cli"),
    formats=_OPENCODE_FORMATS,
    provider="deepseek",
    steps=(
        SetupStep(
            "In `~/.config/kilo/kilo.json`, or `kilo.json` of the project:",
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
    program=Program("kilo", "npm install --global @kilocode/cli"),
)

QWEN_CODE = Client(
    "qwen-code",
    "Qwen Code",
    ("qwen",),
    formats=(CHAT,),
    provider="qwen",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export OPENAI_BASE_URL=<base>/v1
export OPENAI_API_KEY=<key>
export OPENAI_MODEL=<model>
qwen --auth-type openai
""",
            file="~/.qwen/.env",
        ),
    ),
    habit="Keeps reasoning, but cuts blanks off its end.",
    notes=(
        "From 0.24 on it needs Node 22; 0.15, which npm installs beside an older Node, asks the proxy of the "
        "environment for the gateway too, whatever `NO_PROXY` says.",
        '`{"privacy": {"usageStatisticsEnabled": false}}` in `~/.qwen/settings.json` stops telemetry.',
    ),
    tried="0.24.4, by `make test-clients`; 0.15.10, by hand on 2026-11-15",
    agents=("qwencode/", "qwen-code/"),
    program=Program("qwen", "npm install --global @qwen-code/qwen-code"),
)

CONTINUE = Client(
    "continue",
    "Continue",
    ("continue-dev", "continue-cli"),
    formats=(CHAT, MESSAGES),
    provider="deepseek",
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
    provider: openai
    model: <model>
    apiBase: <base>/v1
    apiKey: <key>
    roles: [chat, edit, apply]
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
)

AIDER = Client(
    "aider",
    "aider",
    (),
    formats=(CHAT,),
    provider="deepseek",
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
    habit="Strips reasoning; after a restart it sends some of it as visible text. It calls no tools.",
    agents=("aider/",),
    program=Program("aider", "python -m pip install aider-install && aider-install"),
)

PI = Client(
    "pi",
    "pi",
    ("pi-coding-agent",),
    formats=(CHAT, RESPONSES, MESSAGES, GEMINI),
    provider="deepseek",
    steps=(
        SetupStep(
            "In `~/.pi/agent/models.json`:",
            "json",
            """
{
  "providers": {
    "thoughtline": {
      "baseUrl": "<base>/v1",
      "api": "openai-completions",
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
        ),
        SetupStep("Then:", "shell", "pi --provider thoughtline --model <model>"),
    ),
    habit="Keeps reasoning; drops a signed block whose text is empty, and sends it as text after a switch of the "
    "model.",
    notes=(
        "`api` may be `openai-responses`, `anthropic-messages` (no `/v1`) or `google-generative-ai` (`/v1beta`).",
        "With `anthropic-messages` it asks Claude models that it does not know for a budget of thinking, which the "
        "newest refuse; with `openai-completions` the gateway asks as they want it.",
    ),
    tried="0.73.1, by `make test-clients`",
    agents=("pi/", "pi-coding-agent/"),
)
