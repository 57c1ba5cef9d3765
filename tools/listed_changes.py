"""Recorded requests that the gateway changes although they lost nothing, or does not mend, and why: by a part of the
recording's name. `docs/untouched.md` is made of it."""

from __future__ import annotations

RESTORED = "the client had left reasoning out, and it was put back"
REFUSED = "its simulator refuses it as the client sent it"
DOOR = "its own format can't carry reasoning here: it goes up in another one (`door`)"
EMPTY = "a turn that had no reasoning gets the field that its provider demands, with nothing in it"
LEFT_OUT = "an item of a kind that this server is not known to take is left out (`untranslatable`)"
SHOWN_BY_THE_REQUEST = (RESTORED, REFUSED, DOOR, EMPTY, LEFT_OUT)
"""Reasons that the request itself shows, or what the gateway says of it."""

_CIPHERTEXT = "nothing is stored, and the ciphertext was not asked for: without it the reasoning would be lost"
_SIGNED_THOUGHT = "the client put the signature of the words on the thought"
_DOOR = "chat has no field for Grok's encrypted reasoning: it goes up as Responses"
_LOST_DELTA = "the client lost the first piece of the thought, and the whole was put back"
_PROMPT_CHANGED = "the client changed the system prompt within the turn, and the call came without an id"
_PROMPT_LEFT_OUT = "the client left the system prompt out, and sends no id: another conversation"
_BLANKED = "the recorder blanked an argument of the call: another call, so no seal"

PLANNED: dict[str, str] = {
    "fantasy--testazureresponsescommon-azure": _CIPHERTEXT,
    "fantasy--testopenairesponsescommon-openai": _CIPHERTEXT,
    "fantasy--testvercelthinking-gemini-3-pro-preview-thinking": "the client wrote one entry as two",
    "thinking-with-modified-history": "the answer was rewritten: OpenAI refused the id of its reasoning, as recorded",
    "ruby-llm--chat-with-extended-thinking-gemini": _SIGNED_THOUGHT,
    "ruby-llm--chat-with-extended-thinking-vertexai": _SIGNED_THOUGHT,
    "ruby-llm--chat-with-schema-with-gemini": _SIGNED_THOUGHT,
    "ruby-llm--chat-with-schema-with-vertexai": _SIGNED_THOUGHT,
    "file-search-grounding-gemini-3-true": "the client joined the words and the signed part after them",
    "test-hf-model-thinking-part": "the client wrote a blank line into the thought",
    "prompt-caching-streaming-probe": "DeepSeek wants the field in every message beside tools, empty if need be",
}
"""By the plan of a request that lost no reasoning."""

REWRITTEN: dict[str, str] = PLANNED | {
    "openai-responses--chatgpt--langchain--test-codex": _CIPHERTEXT,
    "xai-grok-code-fast": _DOOR,
    "fantasy--testopenroutercommon-glm-multi-tool-streaming": _LOST_DELTA,
    "fantasy--testopenroutercommon-kimi-multi-tool-streaming": _LOST_DELTA,
    "sim copilot.no-items": "this model has refused reasoning items: they are not asked for any more",
}
"""By the gateway, the first requests of a conversation among them."""

CHANGED_TURNS: dict[str, str] = {
    "native-zen-tool-loop": _BLANKED,
    "native-openai-oauth-tool-loop": _BLANKED,
    "thinking-with-modified-history": "the client rewrote the answer: no longer the turn that was captured",
    "stale-thinking-block": "the system prompt was changed: a bound block is not put back",
    "gpt-5-5-reasoning-continuation": _PROMPT_LEFT_OUT,
    "gemini--google--mastra--test-2642b65b": _PROMPT_CHANGED,
    "gemini--google--mastra--test-36e468a1": _PROMPT_CHANGED,
    "gemini--google--mastra--test-6e44f5e0": _PROMPT_CHANGED,
    "gemini--google--mastra--test-7088b7e4": _PROMPT_CHANGED,
}
"""Turns that are not those that were captured: what was lost of them is not put back."""

NOT_PUT_BACK: dict[str, str] = CHANGED_TURNS | {
    "xai-grok-code-fast": _DOOR,
    "test-reused-tool-call-ids-request": _PROMPT_LEFT_OUT,
    "gpustack-qwen3-can-use-tools": "the request says `enable_thinking: false`: a model that is not to think gets none",
}
