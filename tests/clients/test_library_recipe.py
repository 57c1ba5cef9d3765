"""The recipe of `docs/library.md` for the AI SDK, run as printed through a gateway, in an application that forgets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.programs import TIMEOUT_SECONDS
from tests.clients.test_next_app import packages
from tests.clients.upstreams import reach, start
from tests.examples import blocks
from tests.library.ten_turns import ANSWER, OPENING, TURNS

APPLICATION = """
import {{ createOpenAI }} from "@ai-sdk/openai";
import {{ generateText, jsonSchema, stepCountIs, tool }} from "ai";
process.env.OPENAI_API_KEY = "key-of-an-app";
{recipe}
const weather = tool({{
  inputSchema: jsonSchema({{ type: "object", properties: {{ city: {{ type: "string" }} }}, required: ["city"] }}),
  execute: async () => "21 degrees",
}});
const forget = ({{ messages }}) => ({{
  messages: messages.map((message) => {{
    if (message.role !== "assistant" || typeof message.content === "string") return message;
    return {{ ...message, content: message.content.filter((part) => part.type !== "reasoning") }};
  }}),
}});
const {{ text }} = await generateText({{
  model: openai("gpt-5"),
  prompt: {opening!r},
  tools: {{ weather }},
  stopWhen: stepCountIs({turns}),
  prepareStep: forget,
  providerOptions: {{ openai: {{ store: false, include: ["reasoning.encrypted_content"], reasoningSummary: "auto" }} }},
}});
console.log(text);
"""


@pytest.mark.programs
def test_ten_turns(tmp_path: Path) -> None:
    """Every thought of every step comes back, in ten requests."""
    upstream = start("openai")
    title = next(title for title in blocks(language="js") if title.startswith("Vercel"))
    recipe = blocks(language="js")[title].replace("http://127.0.0.1:8642/openai", reach(upstream))
    modules = tmp_path / "node_modules"
    for name, place in packages().items():
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (modules / name).symlink_to(place)
    program = tmp_path / "application.mjs"
    program.write_text(APPLICATION.format(recipe=recipe, opening=OPENING, turns=TURNS))
    done = subprocess.run(["node", str(program)], capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.stdout.strip() == ANSWER, done.stderr
    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * turns for turns in range(TURNS)]
