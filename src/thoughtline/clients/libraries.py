"""SDKs, and servers between a user and a provider.

Settings and habits come from running the programs, or from their makers' documentation, as of 2026-11-15.
"""

from __future__ import annotations

from thoughtline.clients.row import CHAT, GEMINI, MESSAGES, RESPONSES, Client, SetupStep

OPENAI_SDK = Client(
    "openai-sdk",
    "OpenAI SDK",
    aliases=("openai", "openai-python"),
    formats=(CHAT, RESPONSES),
    steps=(
        SetupStep(
            "In Python:",
            "python",
            """
from openai import OpenAI

client = OpenAI(base_url="<base>/v1", api_key="<key>")
answer = client.chat.completions.create(model="<model>", messages=[{"role": "user", "content": "Hello"}])
print(answer.choices[0].message.content)
""",
        ),
    ),
    habit="Returns `reasoning_content` as an extra field; your code decides whether to send it back.",
    notes=("Or set `OPENAI_BASE_URL` and `OPENAI_API_KEY` in the environment.",),
    tried="as locked, by `make test`",
    agents=("openai/", "asyncopenai/"),
)

ANTHROPIC_SDK = Client(
    "anthropic-sdk",
    "Anthropic SDK",
    aliases=("anthropic", "anthropic-python"),
    formats=(MESSAGES,),
    provider="anthropic",
    steps=(
        SetupStep(
            "In Python:",
            "python",
            """
from anthropic import Anthropic

client = Anthropic(base_url="<base>", api_key="<key>")
messages = [{"role": "user", "content": "Hello"}]
answer = client.messages.create(model="<model>", max_tokens=4096, messages=messages)
print(answer.content[-1].text)
""",
        ),
    ),
    habit="Returns thinking blocks; your code decides whether to send them back.",
    notes=("The base URL has no `/v1`. Or set `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY` in the environment.",),
    tried="as locked, by `make test`",
    agents=("anthropic/", "asyncanthropic/"),
)

GOOGLE_SDK = Client(
    "google-sdk",
    "Google Gen AI SDK",
    aliases=("google", "google-genai", "genai", "gemini-sdk"),
    formats=(GEMINI,),
    provider="gemini",
    steps=(
        SetupStep(
            "In Python:",
            "python",
            """
from google import genai
from google.genai import types

client = genai.Client(api_key="<key>", http_options=types.HttpOptions(base_url="<base>"))
answer = client.models.generate_content(model="<model>", contents="Hello")
print(answer.text)
""",
        ),
    ),
    habit="Returns signatures, and sends them back in URL-safe base64.",
    notes=("The base URL has no `/v1beta`.",),
    tried="as locked, by `make test`",
    agents=("google-genai-sdk/",),
)

LITELLM = Client(
    "litellm",
    "LiteLLM",
    aliases=("litellm-proxy",),
    formats=(CHAT, MESSAGES),
    steps=(
        SetupStep(
            "In the proxy's `config.yaml`:",
            "yaml",
            """
model_list:
  - model_name: <model>
    litellm_params:
      model: openai/<model>
      api_base: <base>/v1
      api_key: <key>
""",
        ),
        SetupStep(
            "Or in Python:",
            "python",
            """
import litellm

messages = [{"role": "user", "content": "Hello"}]
answer = litellm.completion(model="openai/<model>", api_base="<base>/v1", api_key="<key>", messages=messages)
print(answer.choices[0].message.content)
""",
        ),
    ),
    habit="Keeps reasoning in chat, and adds a field of its own; moves Anthropic's thinking to the front.",
    agents=("litellm/",),
)

LLM = Client(
    "llm",
    "llm",
    aliases=("simonw-llm", "datasette-llm"),
    formats=(CHAT,),
    steps=(
        SetupStep(
            "In `extra-openai-models.yaml`, in the folder of the file that `llm logs path` names:",
            "yaml",
            """
- model_id: thoughtline
  model_name: <model>
  headers: {x-thoughtline-content: <content>}
  api_base: <base>/v1
  api_key_name: thoughtline
  supports_tools: true
""",
        ),
        SetupStep("Then:", "shell", "llm keys set thoughtline --value <key>\nllm models default thoughtline"),
    ),
    habit="Strips reasoning.",
    notes=("`LLM_USER_PATH` names another folder.",),
    tried="0.36, by `make test-clients`",
)

OPEN_WEBUI = Client(
    "open-webui",
    "Open WebUI",
    aliases=("webui",),
    formats=(CHAT,),
    steps=(
        SetupStep(
            "Before its first start:", "shell", "export OPENAI_API_BASE_URL=<base>/v1\nexport OPENAI_API_KEY=<key>"
        ),
        SetupStep("Later, in Admin Settings, Connections, OpenAI API:", "words", "URL    <base>/v1\nKey    <key>"),
    ),
    habit="Sends reasoning back as visible text, according to reports.",
    notes=(
        "In a container, 127.0.0.1 is the container itself: use the address of the host.",
        "With `ENABLE_FORWARD_USER_INFO_HEADERS=true` it names its users and chats: people who say the same are told "
        "apart ([how](identity.md#end-users-in-headers)).",
    ),
    agents=("open webui", "open-webui/"),
)
