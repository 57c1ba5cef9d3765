"""Coding agents of the terminal that were made for one provider.

Settings and habits were seen of the running programs, or read in their makers' documentation, on 2026-11-15.
"""

from __future__ import annotations

from thoughtline.clients.row import (
    CHAT,
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
