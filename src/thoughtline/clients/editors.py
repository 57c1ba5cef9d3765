"""Editors. None of them was run: settings were read in documentation, habits in reports of users, on 2026-11-15."""

from __future__ import annotations

from thoughtline.clients.row import CHAT, MESSAGES, RESPONSES, Client, SetupStep

CURSOR = Client(
    "cursor",
    "Cursor",
    (),
    formats=(CHAT,),
    provider="deepseek",
    steps=(
        SetupStep(
            "In Settings, Models:",
            "words",
            """
OpenAI API Key              <key>
Override OpenAI Base URL    <base>/v1
Add model                   <model>
""",
        ),
    ),
    habit="Strips reasoning, by report.",
    notes=(
        "Requests come from Cursor's own servers: the gateway needs a public HTTPS address, or a tunnel. Loopback and "
        "private networks are refused.",
        "A model with the name of a built-in one does not go to your address.",
    ),
    agents=("cursor/",),
)

VSCODE = Client(
    "vscode-copilot",
    "VS Code Copilot",
    ("vscode", "copilot-chat", "github-copilot"),
    formats=(CHAT, RESPONSES, MESSAGES),
    provider="deepseek",
    steps=(
        SetupStep(
            "Run `Chat: Manage Language Models`, Add Models, Custom Endpoint; then, in `chatLanguageModels.json`:",
            "json",
            """
[
  {
    "name": "thoughtline",
    "vendor": "customendpoint",
    "apiKey": "<key>",
    "apiType": "chat-completions",
    "models": [
      {
        "id": "<model>",
        "name": "<model>",
        "url": "<base>/v1/chat/completions",
        "toolCalling": true,
        "vision": false,
        "maxInputTokens": 128000,
        "maxOutputTokens": 16000
      }
    ]
  }
]
""",
            file="~/.config/Code/User/chatLanguageModels.json",
        ),
    ),
    habit="Writes call ids anew for some models, by report.",
    notes=(
        "`url` is the full address of the endpoint: with `responses` or `messages` as `apiType` it ends in "
        "`/v1/responses` or `/v1/messages`.",
        "VS Code 1.122 or newer. A key typed into the dialog stays out of the file.",
    ),
    agents=("githubcopilotchat/", "vscode/"),
)

ZED = Client(
    "zed",
    "Zed",
    (),
    formats=(CHAT,),
    provider="deepseek",
    steps=(
        SetupStep(
            "In `~/.config/zed/settings.json`:",
            "json",
            """
{
  "language_models": {
    "openai_compatible": {
      "thoughtline": {
        "api_url": "<base>/v1",
        "available_models": [{"name": "<model>", "display_name": "<model>", "max_tokens": 128000}]
      }
    }
  }
}
""",
            file="~/.config/zed/settings.json",
        ),
        SetupStep(
            "The key in Agent Settings, LLM Providers; or, before Zed starts:",
            "shell",
            "export THOUGHTLINE_API_KEY=<key>",
        ),
    ),
    habit="Strips reasoning, by report.",
    notes=(
        "The variable's name comes from the provider's. An editor that was not started in that shell doesn't see it.",
    ),
    agents=("zed/",),
)
