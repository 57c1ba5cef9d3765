"""Gemini CLI, with a key and with a login. Seen of the running program on 2026-11-15 and 16."""

from __future__ import annotations

from thoughtline.clients.row import CODE_ASSIST, GEMINI, SHELL, Client, Passing, Program, SetupStep

GEMINI_CLI = Client(
    "gemini-cli",
    "Gemini CLI",
    ("gemini",),
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
            passing=Passing("path", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"),
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
    ("code-assist", "gemini-code-assist"),
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
