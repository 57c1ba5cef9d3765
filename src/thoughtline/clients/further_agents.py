"""More coding agents of the terminal, and a router in front of one.

Settings and habits come from running the programs on 2026-11-18, and from their own sources.
"""

from __future__ import annotations

from thoughtline.clients.row import (
    CHAT,
    GEMINI,
    MESSAGES,
    SHELL,
    Client,
    Program,
    SetupStep,
)

GOOSE = Client(
    "goose",
    "goose",
    aliases=("block-goose", "goose-cli"),
    formats=(CHAT, MESSAGES, GEMINI),
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export GOOSE_PROVIDER=openai
export GOOSE_MODEL=<model>
export OPENAI_HOST=<base>
export OPENAI_API_KEY=<key>
export GOOSE_CONTEXT_LIMIT=<context>
""",
        ),
    ),
    habit="Strips reasoning, writes each parallel call as a message of its own, and moves a message with the time "
    "through the conversation.",
    notes=(
        "`OPENAI_HOST` has no `/v1`. For Messages, set `GOOSE_PROVIDER=anthropic` and `ANTHROPIC_HOST`; for Gemini's "
        "own format, `GOOSE_PROVIDER=google` and `GOOGLE_HOST`.",
        "It names its session in `agent-session-id`. On models that bind thinking to all before it, thinking is "
        "dropped: what stands before a turn changes with every request.",
    ),
    tried="1.34.0, by `make test-clients`",
    agents=("goose/",),
    program=Program("goose", "brew install block-goose-cli", without=("OPENAI_BASE_PATH", "OPENAI_BASE_URL")),
)

KIMI_CODE = Client(
    "kimi-code",
    "Kimi Code",
    aliases=("kimi", "kimi-cli"),
    formats=(CHAT, MESSAGES),
    provider="kimi",
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export KIMI_MODEL_NAME=<model>
export KIMI_MODEL_API_KEY=<key>
export KIMI_MODEL_BASE_URL=<base>/v1
export KIMI_MODEL_MAX_CONTEXT_SIZE=<context>
""",
            elsewhere="export KIMI_MODEL_PROVIDER_TYPE=openai",
        ),
    ),
    habit="Keeps reasoning.",
    notes=(
        "For Messages, set `KIMI_MODEL_PROVIDER_TYPE=anthropic`; the base URL then has no `/v1`.",
        "It needs Node 22.19 or newer. `KIMI_CODE_NO_AUTO_UPDATE=1` stops updates.",
    ),
    tried="2.1.0, by `make test-clients`",
    agents=("kimi-code", "kimicli/", "kimi-cli/"),
    program=Program("kimi", "npm install --global @moonshot-ai/kimi-code", without=("KIMI_MODEL_PROVIDER_TYPE",)),
)

MISTRAL_VIBE = Client(
    "mistral-vibe",
    "Mistral Vibe",
    aliases=("vibe",),
    formats=(CHAT, MESSAGES),
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export THOUGHTLINE_KEY=<key>
export VIBE_PROVIDERS='[{
  "name": "thoughtline",
  "extra_headers": {"x-thoughtline-content": "<content>"},
  "api_base": "<base>/v1",
  "api_key_env_var": "THOUGHTLINE_KEY"
}]'
export VIBE_MODELS='[{"name": "<model>", "provider": "thoughtline", "alias": "thoughtline"}]'
export VIBE_ACTIVE_MODEL=thoughtline
""",
        ),
    ),
    habit="Keeps reasoning.",
    notes=(
        "The same tables work in `~/.vibe/config.toml`, as `[[providers]]` and `[[models]]`.",
        'Without `backend` it speaks chat completions to any provider. `"backend": "mistral"` is for Mistral\'s own '
        "models.",
    ),
    tried="3.0.2, by `make test-clients`; 3.0.3, by hand on 2026-11-18",
    agents=("mistral-vibe/",),
    program=Program("vibe", "uv tool install mistral-vibe"),
)

OPENHANDS = Client(
    "openhands",
    "OpenHands CLI",
    aliases=("openhands-cli", "open-hands"),
    formats=(CHAT, MESSAGES),
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export LLM_MODEL=openai/<model>
export LLM_API_KEY=<key>
export LLM_BASE_URL=<base>/v1
openhands --override-with-envs
""",
        ),
    ),
    habit="Keeps reasoning for the models it knows to want it back, and strips it for others.",
    notes=(
        "For Messages, `LLM_MODEL=anthropic/<model>`; the base URL then has no `/v1`.",
        "LiteLLM inside it fetches a price list from GitHub at each start; `LITELLM_LOCAL_MODEL_COST_MAP=True` stops "
        "that.",
    ),
    tried="1.16.0, by `make test-clients`",
    program=Program("openhands", "uv tool install openhands --python 3.12"),
)

MINI_SWE_AGENT = Client(
    "mini-swe-agent",
    "mini-swe-agent",
    aliases=("mini", "swe-agent"),
    formats=(CHAT, MESSAGES),
    steps=(
        SetupStep(
            SHELL,
            "shell",
            """
export OPENAI_API_BASE=<base>/v1
export OPENAI_API_KEY=<key>
export MSWEA_CONFIGURED=true
export MSWEA_COST_TRACKING=ignore_errors
mini --model openai/<model>
""",
        ),
    ),
    habit="Keeps reasoning as LiteLLM gives it.",
    notes=(
        "Without `MSWEA_COST_TRACKING=ignore_errors` it stops at models that LiteLLM has no price for; without "
        "`MSWEA_CONFIGURED=true` it asks for a model and a key first.",
        "2.4.6 also needs the package `mcp`, which it does not ask for: `uv tool install mini-swe-agent --with mcp`.",
    ),
    tried="2.4.6, by `make test-clients`",
    program=Program("mini", "uv tool install mini-swe-agent --with mcp"),
)

CLAUDE_CODE_ROUTER = Client(
    "claude-code-router",
    "claude-code-router",
    aliases=("ccr",),
    formats=(CHAT,),
    steps=(
        SetupStep(
            "In `~/.claude-code-router/config.json`:",
            "json",
            """
{
  "Providers": [
    {
      "name": "thoughtline",
      "api_base_url": "<base>/v1/chat/completions",
      "api_key": "<key>",
      "models": ["<model>"]
    }
  ],
  "Router": {"default": "thoughtline,<model>"}
}
""",
            file="~/.claude-code-router/config.json",
        ),
        SetupStep("Then:", "shell", "ccr restart\nccr code"),
    ),
    habit="Strips reasoning, and switches it off in OpenRouter's words (`reasoning.enabled: false`), which DeepSeek, "
    "Kimi and GLM don't read.",
    notes=(
        "You don't need it to use Claude Code with another provider: `thoughtline run claude-code --provider deepseek` "
        "does the same, and keeps thinking visible.",
    ),
    tried="2.0.0, by `make test-clients`",
)
