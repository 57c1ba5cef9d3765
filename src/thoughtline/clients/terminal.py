"""Coding agents of the terminal that were made for one provider.

Settings and habits come from running the programs, or from their makers' documentation, as of 2026-11-15 and 16.
"""

from __future__ import annotations

from thoughtline.clients.row import (
    CHAT,
    CODE_ASSIST,
    GEMINI,
    MESSAGES,
    RESPONSES,
    SHELL,
    Client,
    FormatSetup,
    Passing,
    Program,
    SetupStep,
)

CLAUDE_CODE = Client(
    "claude-code",
    "Claude Code",
    aliases=("claude", "cc"),
    formats=(MESSAGES,),
    provider="anthropic",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export ANTHROPIC_BASE_URL=<base>
export ANTHROPIC_AUTH_TOKEN=<key>
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
    habit="Keeps all thinking, but moves blocks that were between calls, and drops everything when the model changes.",
    notes=(
        "The base URL has no `/v1`. The same names work in the `env` block of `~/.claude/settings.json`.",
        "`ANTHROPIC_API_KEY` instead of `ANTHROPIC_AUTH_TOKEN` works too, but it asks for approval of the key first.",
        "It also asks for models of its own choice, for titles and checks. Where those don't exist, name others with "
        "`ANTHROPIC_DEFAULT_OPUS_MODEL`, `ANTHROPIC_DEFAULT_SONNET_MODEL` and `ANTHROPIC_DEFAULT_HAIKU_MODEL`.",
        "It assumes a context of a million tokens for models it does not know, and so compacts too late. Set the real "
        "size with `CLAUDE_CODE_MAX_CONTEXT_TOKENS`; `--context` adds that line.",
        "`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1` stops telemetry and updates, which bypass the gateway.",
        "For its Bedrock and Vertex modes, see [what to set](gateway.md#bedrock-and-vertex).",
    ),
    tried="2.1.325, by `make test-clients`",
    agents=("claude-cli/", "claude-code/"),
    program=Program(
        "claude",
        "npm install --global @anthropic-ai/claude-code",
        without=(
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ),
    ),
)

CODEX = Client(
    "codex",
    "Codex CLI",
    aliases=("openai-codex",),
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
    habit="Keeps all reasoning items, encrypted and plain, even after a resume.",
    notes=(
        'It speaks Responses only, and refuses to start with `wire_api = "chat"`.',
        "Without `model_reasoning_effort` it asks for no effort at all from models it does not know.",
        "The gateway leaves `web_search` out for providers that know function tools only, such as DeepSeek.",
        "With `supports_websockets = true` it uses a WebSocket and sends only what is new. The built-in provider does "
        "so by default when `openai_base_url` points it here.",
        "It warns that it has no metadata for the model; this is not an error.",
    ),
    tried="0.166.0, by `make test-clients`",
    agents=("codex_", "codex-", "codex/"),
    program=Program("codex", "npm install --global @openai/codex"),
)

COPILOT_CLI = Client(
    "copilot-cli",
    "Copilot CLI",
    aliases=("github-copilot-cli",),
    formats=(CHAT, RESPONSES, MESSAGES),
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export COPILOT_PROVIDER_BASE_URL=<base><path>
export COPILOT_PROVIDER_TYPE=<type>
export COPILOT_PROVIDER_WIRE_API=<wire>
export COPILOT_PROVIDER_API_KEY=<key>
export COPILOT_MODEL=<model>
""",
        ),
    ),
    habit="Keeps all reasoning, in order; gives Responses items new ids.",
    notes=("`COPILOT_OFFLINE=true` stops it from contacting GitHub.",),
    tried="1.0.102, by `make test-clients`",
    agents=("copilot/", "githubcopilotcli/", "copilot-cli/"),
    program=Program(
        "copilot",
        "npm install --global @github/copilot",
        without=("COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_PROVIDER_WIRE_API"),
    ),
    spellings=(
        FormatSetup(CHAT, {"type": "openai", "path": "/v1"}),
        FormatSetup(RESPONSES, {"type": "openai", "path": "/v1", "wire": "responses"}),
        FormatSetup(MESSAGES, {"type": "anthropic", "path": ""}),
    ),
)

QWEN_CODE = Client(
    "qwen-code",
    "Qwen Code",
    aliases=("qwen",),
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
    habit="Keeps reasoning, but trims white space at its end.",
    notes=(
        "0.24 and newer need Node 22. With an older Node, npm installs 0.15, which goes through the proxy of the "
        "environment even to the gateway, whatever `NO_PROXY` says.",
        '`{"privacy": {"usageStatisticsEnabled": false}}` in `~/.qwen/settings.json` stops telemetry.',
    ),
    tried="0.24.4, by `make test-clients`; 0.15.10, by hand on 2026-11-15",
    agents=("qwencode/", "qwen-code/"),
    program=Program("qwen", "npm install --global @qwen-code/qwen-code"),
)

GEMINI_CLI = Client(
    "gemini-cli",
    "Gemini CLI",
    aliases=("gemini",),
    formats=(GEMINI,),
    provider="gemini",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export GOOGLE_GEMINI_BASE_URL=<base>
export GEMINI_API_KEY=<key>
export GEMINI_MODEL=<model>
""",
            file="~/.gemini/.env",
        ),
        SetupStep(
            "In `~/.gemini/settings.json`:",
            "json",
            '{"security": {"auth": {"selectedType": "gemini-api-key"}}}',
            file="~/.gemini/settings.json",
            passing=Passing("home", "GEMINI_CLI_HOME"),
        ),
    ),
    habit="Keeps signatures and drops thoughts; after `--resume`, sends a sentinel in place of a signature.",
    notes=(
        "The base URL has no `/v1beta`. Without the setting it stops with `Invalid auth method selected`.",
        "It may ask for a newer model than the one you name.",
        "Run headless, it stops in a folder that is not trusted. Pass `--skip-trust`, or set "
        "`GEMINI_CLI_TRUST_WORKSPACE=true`.",
        '`"privacy": {"usageStatisticsEnabled": false}` in the same file stops telemetry, which bypasses the gateway.',
    ),
    tried="0.61.0, by `make test-clients`",
    agents=("geminicli/", "gemini-cli/"),
    program=Program(
        "gemini",
        "npm install --global @google/gemini-cli",
        without=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
    ),
)

GEMINI_CLI_LOGIN = Client(
    "gemini-cli-login",
    "Gemini CLI with a Google login",
    aliases=("code-assist", "gemini-code-assist"),
    formats=(CODE_ASSIST,),
    provider="code-assist",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export CODE_ASSIST_ENDPOINT=<base>
export GEMINI_MODEL=<model>
""",
            file="~/.gemini/.env",
        ),
    ),
    habit="Like Gemini CLI; sends thoughts, if it has any, as text that ends in `[Thought: true]`.",
    notes=(
        "Log in as usual (`/auth`). Your token goes to Google through the gateway, which needs no key of its own.",
        "A gateway with client keys accepts those instead of a login, so use one without, on your own machine.",
        "The address has no `/v1internal`. It leads to Code Assist only: use `gemini-cli` for other providers.",
    ),
    tried="0.61.0, by `make test-clients`",
)
