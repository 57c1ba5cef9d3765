"""What a provider answers when reasoning is not as it wants it, word for word.

Sentences as recorded or documented by 2026-11; `{index}` and the like are filled in by the rule that quotes them.
"""

from __future__ import annotations

from typing import NamedTuple

from thoughtline.replay.contracts import Contract
from thoughtline.replay.findings import RuleCode


class Answer(NamedTuple):
    """A status and a sentence."""

    status: int
    sentence: str


_DEEPSEEK = "The `{field}` in the thinking mode must be passed back to the API."
_EXPECTED = (
    "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` "
    "is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "
    "`tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this "
    "requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)
_GEMINI = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
    "and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_INVALID_SIGNATURE = "messages.{index}.content.{item}: Invalid `signature` in `thinking` block"
_BOUND = (
    _INVALID_SIGNATURE + ". The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the '
    "`thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
)
_MODIFIED = (
    "messages.{index}.content.{item}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot "
    "be modified. These blocks must remain as they were in the original response."
)
_NOT_FOUND = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set "
    "to true, or remove this item from your input."
)
_UNVERIFIED = (
    "The encrypted content for item {id} could not be verified. "
    "Reason: Encrypted content could not be decrypted or parsed."
)
_NO_FOLLOWER = "Item '{id}' of type 'reasoning' was provided without its required following item."
_V32 = (
    "Missing `reasoning_content` field in the assistant message at message index {index}. For more information, please "
    "refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
)
_KIMI = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
_XAI = (
    "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a "
    "previous response."
)

ANSWERS: dict[tuple[str, RuleCode], Answer] = {
    ("deepseek", "missing"): Answer(400, _DEEPSEEK.replace("{field}", "reasoning_content")),
    ("deepseek-v3.2", "missing"): Answer(400, _V32),
    ("deepseek-anthropic", "missing"): Answer(400, _DEEPSEEK.replace("{field}", "content[].thinking")),
    ("deepseek-responses", "missing"): Answer(400, _DEEPSEEK.replace("{field}", "reasoning_text")),
    ("kimi", "missing"): Answer(400, _KIMI),
    ("kimi-anthropic", "missing"): Answer(400, _KIMI),
    ("mimo", "missing"): Answer(
        400, "Param Incorrect: The reasoning_content in the thinking mode must be passed back to the API."
    ),
    ("mimo-anthropic", "missing"): Answer(
        400, "Param Incorrect: The reasoning_content in the thinking mode must be passed back to the API."
    ),
    ("anthropic", "missing"): Answer(400, _EXPECTED),
    ("anthropic", "misplaced"): Answer(
        400, "messages.{index}: The final block in an assistant message cannot be `thinking`."
    ),
    ("anthropic", "truncated"): Answer(400, _INVALID_SIGNATURE),
    ("anthropic", "foreign"): Answer(400, _INVALID_SIGNATURE),
    ("anthropic", "altered"): Answer(400, _MODIFIED),
    ("anthropic", "reordered"): Answer(400, _MODIFIED),
    ("anthropic", "duplicated"): Answer(400, _MODIFIED),
    ("anthropic", "bound-prefix-changed"): Answer(400, _BOUND),
    ("gemini", "missing"): Answer(400, _GEMINI),
    ("gemini", "misplaced"): Answer(400, _GEMINI),
    ("gemini", "truncated"): Answer(400, "Corrupted thought signature."),
    ("gemini", "foreign"): Answer(400, "Corrupted thought signature."),
    ("gemini", "altered"): Answer(400, "Corrupted thought signature."),
    ("openai-responses", "unpaired"): Answer(400, _NO_FOLLOWER),
    ("openai-responses", "misplaced"): Answer(400, _NO_FOLLOWER),
    ("openai-responses", "stale-id"): Answer(404, _NOT_FOUND),
    ("openai-responses", "foreign"): Answer(400, _UNVERIFIED),
    ("openai-responses", "altered"): Answer(400, _UNVERIFIED),
    ("openai-responses", "truncated"): Answer(400, _UNVERIFIED),
    ("openai-responses", "duplicated"): Answer(400, "Duplicate item found with id {id}"),
    ("xai-responses", "foreign"): Answer(400, _XAI),
    ("xai-responses", "altered"): Answer(400, _XAI),
    ("xai-responses", "truncated"): Answer(400, _XAI),
    ("openai-chat", "forbidden"): Answer(400, "Unknown parameter: 'messages[{index}].{field}'."),
    ("mistral", "forbidden"): Answer(422, "Extra inputs are not permitted"),
    ("reasoning-field", "forbidden"): Answer(
        400,
        "'messages.{index}' : for 'role:assistant' the following must be satisfied[('messages.{index}' : property "
        "'{field}' is unsupported)]",
    ),
    ("bedrock-forbidden", "forbidden"): Answer(
        400, "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
    ),
    ("deepseek-r1", "forbidden"): Answer(400, ""),
}

_LIKE = {
    "anthropic-adaptive": "anthropic",
    "anthropic-bound": "anthropic",
    "bedrock-claude": "anthropic",
    "gemini-chat": "gemini",
    "azure-responses": "openai-responses",
    "think-tags": "reasoning-field",
    "copilot": "anthropic",
}


def answer_to(contract: Contract, rule: RuleCode, **facts: object) -> Answer:
    """What the provider of this contract would say. Nothing if it would not mind, or if nobody has seen its words."""
    name = _LIKE.get(contract.name, contract.name)
    found = ANSWERS.get((name, rule))
    if found is None:
        return Answer(0, "")
    filled = found.sentence
    for key, value in facts.items():
        filled = filled.replace("{" + key + "}", str(value))
    return Answer(found.status, filled)
