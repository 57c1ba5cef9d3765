"""Coding agents as their makers publish them, one row for each program and format.

What each needs, and how its settings are spelled, was seen of the versions in package.json on 2026-11-16.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.clients.programs import KEY, Calls, Place, Program, Task


def shell_calls(tool: str, argument: str = "command", **others: object) -> Callable[[Path], Calls]:
    """The task by a tool that runs a command line."""

    def call(command: str) -> str:
        return f"{tool} {json.dumps({argument: command, **others})}"

    calls = Calls(
        call("printf kept > note.txt"), call("cat note.txt"), call("wc -c note.txt"), call("cp note.txt copy.txt")
    )
    return lambda work: calls


def _claude_code_settings(place: Place, task: Task) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": task.base_url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": task.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _claude_code_calls(work: Path) -> Calls:
    """No tool is called twice at one place of a turn: Kimi's call ids repeat, and Claude Code drops a repeated one."""
    return Calls(
        'Bash {"command": "printf kept > note.txt"}',
        f'Read {{"file_path": "{work}/note.txt"}}',
        'Bash {"command": "wc -c note.txt"}',
        f'Write {{"file_path": "{work}/copy.txt", "content": "kept"}}',
    )


# `--dangerously-skip-permissions` is refused to root; the tools of the task are allowed by name instead.
_CLAUDE_CODE_TOOLS = ("--allowedTools", "Bash,Read,Write,Agent,Task")

CLAUDE_CODE = Program(
    "claude-code",
    "@anthropic-ai/claude-code-*/claude",
    _claude_code_calls,
    _claude_code_settings,
    lambda prompt: ["-p", prompt, *_CLAUDE_CODE_TOOLS],
    lambda prompt: ["-p", "--continue", prompt, *_CLAUDE_CODE_TOOLS],
)


def _claude_code_on_bedrock(place: Place, task: Task) -> dict[str, str]:
    return {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
        "ANTHROPIC_BEDROCK_BASE_URL": task.base_url,
        "AWS_REGION": "us-east-1",
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "ANTHROPIC_MODEL": task.model,
        "ANTHROPIC_SMALL_FAST_MODEL": task.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _claude_code_on_vertex(place: Place, task: Task) -> dict[str, str]:
    return {
        "CLAUDE_CODE_USE_VERTEX": "1",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "ANTHROPIC_VERTEX_BASE_URL": f"{task.base_url}/v1",
        "ANTHROPIC_VERTEX_PROJECT_ID": "a-project",
        "CLOUD_ML_REGION": "global",
        "ANTHROPIC_AUTH_TOKEN": KEY,
        "ANTHROPIC_MODEL": task.model,
        "ANTHROPIC_SMALL_FAST_MODEL": task.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _claude_code_that_signs(place: Place, task: Task) -> dict[str, str]:
    """With AWS credentials of its own: each of its requests is signed, for the address that it is given."""
    settings = _claude_code_on_bedrock(place, task)
    for name in ("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "ANTHROPIC_AUTH_TOKEN"):
        del settings[name]
    return {**settings, "AWS_ACCESS_KEY_ID": "AKIATHEUSERSOWNEXAMP", "AWS_SECRET_ACCESS_KEY": "the-users-own"}


CLAUDE_CODE_SIGNING = CLAUDE_CODE._replace(name="claude-code-signing", settings=_claude_code_that_signs)
CLAUDE_CODE_VERTEX = CLAUDE_CODE._replace(name="claude-code-vertex", settings=_claude_code_on_vertex)
CLAUDE_CODE_BEDROCK = CLAUDE_CODE._replace(name="claude-code-bedrock", settings=_claude_code_on_bedrock)

# With plugins on, Codex asks github.com and chatgpt.com for them. Seen of 0.166.0 on 2026-11-15.
CODEX_CONFIG = """\
model = "{task.model}"
model_provider = "here"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false

[model_providers.here]
name = "here"
base_url = "{task.base_url}/v1"
env_key = "HERE_KEY"
wire_api = "responses"
"""


def _codex_settings(place: Place, task: Task) -> dict[str, str]:
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(CODEX_CONFIG.format(task=task))
    return {"HERE_KEY": KEY}


CODEX = Program(
    "codex",
    "@openai/codex-*/vendor/*/bin/codex",
    shell_calls("exec_command", "cmd"),
    _codex_settings,
    lambda prompt: ["exec", "--skip-git-repo-check", prompt],
    lambda prompt: ["exec", "resume", "--last", "--skip-git-repo-check", prompt],
)


def _codex_socket_settings(place: Place, task: Task) -> dict[str, str]:
    """A provider of its own, over a WebSocket."""
    told = _codex_settings(place, task)
    with (place.home / ".codex" / "config.toml").open("a") as file:
        file.write("supports_websockets = true\n")
    return told


def _codex_built_in_settings(place: Place, task: Task) -> dict[str, str]:
    """The built-in provider, which tries a WebSocket by itself."""
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    config = CODEX_CONFIG.partition("[model_providers.here]")[0].format(task=task)
    named = f'openai_base_url = "{task.base_url}/v1"'
    (folder / "config.toml").write_text(config.replace('model_provider = "here"', named))
    return {"CODEX_API_KEY": KEY}


CODEX_SOCKET = CODEX._replace(name="codex-socket", settings=_codex_socket_settings)
CODEX_BUILT_IN = CODEX._replace(name="codex-built-in", settings=_codex_built_in_settings)

# With its statistics on, Gemini CLI asks play.googleapis.com, again and again. Seen of 0.61.0 on 2026-11-15.
GEMINI_CLI_CONFIG = """\
{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}
"""


def _gemini_cli_settings(place: Place, task: Task) -> dict[str, str]:
    folder = place.home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(GEMINI_CLI_CONFIG)
    return {
        "GOOGLE_GEMINI_BASE_URL": task.base_url,
        "GEMINI_API_KEY": KEY,
        "GEMINI_MODEL": task.model,
    }


def _gemini_cli_calls(work: Path) -> Calls:
    shell = shell_calls("run_shell_command")(work)
    return shell._replace(read=f'read_file {{"file_path": "{work}/note.txt"}}')


GEMINI_CLI = Program(
    "gemini-cli",
    "@google/gemini-cli/bundle/gemini.js",
    _gemini_cli_calls,
    _gemini_cli_settings,
    lambda prompt: ["--skip-trust", "--prompt", prompt, "--yolo"],
    lambda prompt: ["--skip-trust", "--resume", "latest", "--prompt", prompt, "--yolo"],
)


def _gemini_cli_login_settings(place: Place, task: Task) -> dict[str, str]:
    """As after a login with Google, of which an access token is all that is left."""
    folder = place.home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(GEMINI_CLI_CONFIG.replace("gemini-api-key", "oauth-personal"))
    return {
        "CODE_ASSIST_ENDPOINT": task.base_url,
        "GOOGLE_GENAI_USE_GCA": "true",
        "GOOGLE_CLOUD_ACCESS_TOKEN": KEY,
        "GEMINI_MODEL": task.model,
    }


# It asks Google whose token it is, and goes on without an answer.
GEMINI_CLI_LOGIN = GEMINI_CLI._replace(
    name="gemini-cli-login", settings=_gemini_cli_login_settings, elsewhere=("www.googleapis.com",)
)


def _opencode_settings(package: str) -> Callable[[Place, Task], dict[str, str]]:
    def settings(place: Place, task: Task) -> dict[str, str]:
        options = {"baseURL": f"{task.base_url}/v1", "apiKey": KEY}
        provider = {"npm": package, "name": "here", "options": options, "models": {task.model: {}}}
        config = {"provider": {"here": provider}, "model": f"here/{task.model}", "autoupdate": False}
        (place.work / "opencode.json").write_text(json.dumps(config))
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}

    return settings


def _opencode(name: str, package: str) -> Program:
    return Program(
        name,
        "opencode-*[0-9]/bin/opencode",
        shell_calls("bash", description="the task"),
        _opencode_settings(package),
        lambda prompt: ["run", prompt],
        lambda prompt: ["run", "--continue", prompt],
        elsewhere=("registry.npmjs.org",),
    )


OPENCODE = _opencode("opencode", "@ai-sdk/openai-compatible")
OPENCODE_MESSAGES = _opencode("opencode-messages", "@ai-sdk/anthropic")


def _copilot_settings(**others: str) -> Callable[[Place, Task], dict[str, str]]:
    return lambda place, task: {
        "COPILOT_PROVIDER_BASE_URL": f"{task.base_url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": task.model,
        "COPILOT_OFFLINE": "true",
        **others,
    }


def _copilot(name: str, **others: str) -> Program:
    return Program(
        name,
        ".bin/copilot",
        shell_calls("bash", description="the task"),
        _copilot_settings(**others),
        lambda prompt: ["--prompt", prompt, "--allow-all-tools", "--silent"],
        lambda prompt: ["--continue", "--prompt", prompt, "--allow-all-tools", "--silent"],
    )


COPILOT_CLI = _copilot("copilot-cli")
COPILOT_CLI_RESPONSES = _copilot("copilot-cli-responses", COPILOT_PROVIDER_WIRE_API="responses")


def _cline_settings(provider: str, path: str) -> Callable[[Place, Task], dict[str, str]]:
    def settings(place: Place, task: Task) -> dict[str, str]:
        folder = place.home / ".cline" / "data" / "settings"
        folder.mkdir(parents=True, exist_ok=True)
        own = {"provider": provider, "apiKey": KEY, "model": task.model, "baseUrl": f"{task.base_url}{path}"}
        row = {"settings": own, "updatedAt": "2026-11-16T00:00:00.000Z", "tokenSource": "manual"}
        listed = {"version": 1, "lastUsedProvider": provider, "modes": {}, "providers": {provider: row}}
        (folder / "providers.json").write_text(json.dumps(listed))
        return {"CLINE_SESSION_BACKEND_MODE": "local"}  # otherwise it leaves a daemon behind

    return settings


def _cline_calls(work: Path) -> Calls:
    def run(command: str) -> str:
        return f"run_commands {json.dumps({'commands': [command]})}"

    return Calls(run("printf kept > note.txt"), run("cat note.txt"), run("wc -c note.txt"), run("cp note.txt copy.txt"))


CLINE = Program(
    "cline",
    ".bin/cline",
    _cline_calls,
    _cline_settings("openai-compatible", "/v1"),
    lambda prompt: [prompt],
    elsewhere=("cline.bot",),
)
CLINE_MESSAGES = CLINE._replace(name="cline-messages", settings=_cline_settings("anthropic", "/v1"))


def _qwen_code_settings(place: Place, task: Task) -> dict[str, str]:
    folder = place.home / ".qwen"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text('{"privacy": {"usageStatisticsEnabled": false}}')
    return {
        "OPENAI_BASE_URL": f"{task.base_url}/v1",
        "OPENAI_API_KEY": KEY,
        "OPENAI_MODEL": task.model,
        "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
    }


QWEN_CODE = Program(
    "qwen-code",
    ".bin/qwen",
    shell_calls("run_shell_command", is_background=False),
    _qwen_code_settings,
    lambda prompt: ["--auth-type", "openai", "--yolo", prompt],
    lambda prompt: ["--auth-type", "openai", "--yolo", "--continue", prompt],
)

CONTINUE_CONFIG = """\
name: here
version: 0.0.1
schema: v1
models:
  - name: {task.model}
    provider: {provider}
    model: {task.model}
    apiBase: {task.base_url}/v1
    apiKey: {key}
    roles: [chat, edit, apply]
"""


def _continue_settings(provider: str) -> Callable[[Place, Task], dict[str, str]]:
    def settings(place: Place, task: Task) -> dict[str, str]:
        folder = place.home / ".continue"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(CONTINUE_CONFIG.format(task=task, provider=provider, key=KEY))
        return {"CONTINUE_TELEMETRY_ENABLED": "0"}

    return settings


CONTINUE = Program(
    "continue",
    ".bin/cn",
    shell_calls("Bash"),
    _continue_settings("openai"),
    lambda prompt: ["--print", "--auto", prompt],
    lambda prompt: ["--print", "--auto", "--resume", prompt],
)
CONTINUE_MESSAGES = CONTINUE._replace(name="continue-messages", settings=_continue_settings("anthropic"))


def _pi_settings(api: str, path: str) -> Callable[[Place, Task], dict[str, str]]:
    def settings(place: Place, task: Task) -> dict[str, str]:
        folder = place.home / ".pi" / "agent"
        folder.mkdir(parents=True, exist_ok=True)
        cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        model = {"id": task.model, "name": task.model, "reasoning": True, "input": ["text"], "cost": cost}
        model |= {"contextWindow": 128_000, "maxTokens": 32_000}
        provider = {"baseUrl": f"{task.base_url}{path}", "api": api, "apiKey": KEY, "models": [model]}
        (folder / "models.json").write_text(json.dumps({"providers": {"here": provider}}))
        chosen = {"defaultProvider": "here", "defaultModel": task.model}
        (folder / "settings.json").write_text(json.dumps(chosen))
        return {"PI_OFFLINE": "1"}

    return settings


def _pi(name: str, api: str, path: str) -> Program:
    return Program(
        name,
        ".bin/pi",
        shell_calls("bash"),
        _pi_settings(api, path),
        lambda prompt: ["--print", prompt],
        lambda prompt: ["--continue", "--print", prompt],
    )


PI = _pi("pi", "openai-completions", "/v1")
PI_MESSAGES = _pi("pi-messages", "anthropic-messages", "")
PI_GEMINI = _pi("pi-gemini", "google-generative-ai", "/v1beta")
