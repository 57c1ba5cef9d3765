"""Editors. None of them was run: settings come from documentation, habits from users' reports, as of 2026-11-15."""

from __future__ import annotations

from thoughtline.clients.row import CHAT, MESSAGES, RESPONSES, Client, SetupStep

CURSOR = Client(
    "cursor",
    "Cursor",
    formats=(CHAT,),
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
    habit="Strips reasoning, according to reports.",
    notes=(
        "Requests come from Cursor's own servers, so the gateway needs a public HTTPS address or a tunnel, and a "
        "client key. Cursor refuses loopback and private addresses. docs/cursor.md shows how.",
        "A model that shares its name with a built-in one does not go to your address.",
    ),
    agents=("cursor/",),
)

VSCODE = Client(
    "vscode-copilot",
    "VS Code Copilot",
    aliases=("vscode", "copilot-chat", "github-copilot"),
    formats=(CHAT, RESPONSES, MESSAGES),
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
    habit="Gives calls new ids for some models, according to reports.",
    notes=(
        "`url` is the full address of the endpoint. With `apiType` `responses` or `messages` it ends in "
        "`/v1/responses` or `/v1/messages`.",
        "You need VS Code 1.122 or newer. A key that you type into the dialog stays out of the file.",
    ),
    agents=("githubcopilotchat/", "vscode/"),
)

ZED = Client(
    "zed",
    "Zed",
    formats=(CHAT,),
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
            "Enter the key in Agent Settings, LLM Providers; or, before Zed starts:",
            "shell",
            "export THOUGHTLINE_API_KEY=<key>",
        ),
    ),
    habit="Strips reasoning, according to reports.",
    notes=(
        "Zed derives the variable's name from the provider's. Start it in that shell, or it does not see the variable.",
    ),
    agents=("zed/",),
)
