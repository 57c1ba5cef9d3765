"""The refusals that providers are known to answer with, as rows: how each is recognised, and what it means.

A row matches one sentence of an error body from its first word on, never somewhere inside: a body that merely quotes
such a sentence is not a refusal. Named groups say where: `path` a dotted path into the request, `index` a message
counted from 0, `position` a content counted from 1, `item` an item's id, `field` the field it is about. The first row
that fits wins, so the special ones stand before the general.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from thoughtline.replay.findings import RuleCode

Rule: TypeAlias = (
    # A provider never says `reordered`, `truncated` or `sentinel`: it says `altered` or `foreign`.
    RuleCode
    # A provider's own: the thinking setting does not go with the model, the content or another parameter.
    | Literal[
        "thinking-off",  # the final turn has thinking, and it is switched off
        "thinking-last",  # a turn ends with thinking
        "thinking-conflict",  # another parameter excludes thinking
        "thinking-mode",  # this model can't switch thinking that way
        "thinking-unsupported",  # this model never thinks
    ]
)

Remedy = Literal[
    "restore",  # put back what was lost
    "restore_exact",  # put back the stored blocks, their order and bytes; never leave anything out
    "strip_field",  # leave this member for reasoning out, wherever it stands; another may be the right one
    "drop_member",  # leave the named member out, and nothing else
    "strip_seal",  # leave the sealed half out, keep text and summary
    "unpair",  # leave item ids out, keep call ids and ciphertext
    "drop_item",  # leave the reasoning item out, and the ids of what it was paired with; of duplicates, the later one
    "drop_block",  # leave the thinking block out
    "bare_loop",  # leave out the thinking of the turn that is still going on
    "add_filler_text",  # fill an empty required member with the least that is accepted
    "pause_thinking",  # switch thinking off for this request
    "stop_asking",  # leave out all that asks for thinking
    "adapt_thinking",  # use the one thinking mode that the model has
    "pass_on",  # about reasoning, but only the client can mend it
]


class Row(Struct, frozen=True):
    """One way to be refused.

    `codes`, where there are any, must be met by one of the error's own. `counts_from` is the number that `path` gives
    to a first element.
    """

    meaning: Meaning
    sentence: re.Pattern[str]
    codes: frozenset[str]
    statuses: frozenset[int]
    counts_from: int


class Meaning(Struct, frozen=True):
    """What a refusal says. `field` yields to the sentence's `field` group. `member` is the pattern of the named member
    (`formats/leaving_out.py`), where a sentence does not say the place."""

    rule: Rule
    family: str
    remedy: Remedy
    field: str = ""
    member: str = ""

    def when(
        self, sentence: str, codes: Iterable[str] = (), statuses: Iterable[int] = (400,), counts_from: int = 0
    ) -> Row:
        """The row that reads this meaning from a sentence."""
        return Row(self, re.compile(sentence, re.ASCII), frozenset(codes), frozenset(statuses), counts_from)


_Q = r"[`'\"]?"
"""A quote, which relays and log lines lose."""
_AT = r"(?:(?P<path>[\w.*\[\]]{1,160}): )?"
_ITEM = r"(?P<item>[\w-]{1,128})"
_BLOCK = r"(?P<path>messages\.\d{1,6}\.content\.\d{1,6})\.(?:redacted_)?thinking"
_INPUT = r"(?P<path>input\[\d{1,6}\])"
_CARRIER = r"(?P<field>reasoning|reasoning_(?:content|details|opaque|text)|thinking)"
_MESSAGE_FIELD = rf"(?P<path>messages[.\[]\d{{1,6}}\]?(?:\.[\w-]{{1,60}})?)\.{_CARRIER}"
# Beside the members of a list's element, some write its role or type into the path: `messages.1.assistant.refusal`.
_ELEMENT = (
    r"(?P<path>(?:messages|input|contents)[.\[]\d{1,6}\]?(?:\.[\w-]{1,60})?"
    r"(?:\.(?:content|tool_calls|parts)[.\[]\d{1,6}\]?(?:\.[\w-]{1,60})?)?)"
)
_MEMBER = r"(?P<field>(?!(?:role|content|parts|tool_calls|tool_call_id|call_id|name|type|id)\b)[\w$@-]{1,80})"
_REQUEST_FIELD = (
    r"(?P<path>(?P<field>reasoning|thinking|enable_thinking|thinking_budget|clear_thinking|preserve_thinking))"
)

# DeepSeek-V3#1053, opencode#24083, 9router#2397 (Messages), OmniRoute#10550 (Responses), rig's recording (tool_choice);
# MiMo says DeepSeek's sentence in `param`, which the reader of bodies joins to the message: forgecode#3347. 2026-11.
_PASS_BACK = (
    rf"The {_Q}(?P<field>reasoning_content|content\[\]\.thinking|reasoning_text){_Q}"
    r" in the thinking mode must be passed back to the API"
)
_DEEPSEEK_AND_MIMO = (
    Meaning("missing", "mimo", "restore", "reasoning_content").when(rf"Param Incorrect: {_PASS_BACK}"),
    Meaning("missing", "deepseek", "restore", "reasoning_content").when(_PASS_BACK),
    Meaning("missing", "deepseek", "restore", "reasoning_content").when(
        rf"Missing {_Q}reasoning_content{_Q} field in the assistant message at message index (?P<index>\d{{1,6}})"
    ),
    Meaning("thinking-conflict", "deepseek", "pause_thinking", "tool_choice").when(
        r"Thinking mode does not support this tool_choice"
    ),
)

# opencode#25758, QwenPaw#433 (SiliconFlow, code 20015), nanobot#3939, TeXRA PR#1905. 2026-11.
_KIMI = (
    Meaning("missing", "kimi", "restore", "reasoning_content").when(
        rf"thinking is enabled but {_Q}reasoning_content{_Q} is missing in assistant tool call message"
        r"(?: at index (?P<index>\d{1,6}))?"
    ),
    Meaning("thinking-conflict", "kimi", "drop_member", "reasoning_effort", "reasoning_effort").when(
        rf"cannot specify both {_Q}thinking{_Q} and {_Q}reasoning_effort{_Q}"
    ),
    Meaning("thinking-conflict", "kimi", "pass_on", "thinking").when(
        r"the thinking field in the request \(expected type \w{1,20}\) is illegal"
    ),
)

# haystack-core#2146, claude-code#19539, #56708, #63412, opencode#11546, forgecode#1853, #2107, zed PR#63571, sub2api
# PR#6677, litellm `common_utils.py`, openclaw#27752, Anthropic's page on Opus 5.5. 2026-11.
_INVALID_SEAL = rf"{_AT}Invalid {_Q}(?P<field>signature|data){_Q} in {_Q}(?:redacted_)?thinking{_Q}\s+block"
_ANTHROPIC = (
    Meaning("missing", "anthropic", "restore", "thinking").when(
        rf"{_AT}Expected {_Q}thinking{_Q} or {_Q}redacted_thinking{_Q}, but found"
    ),
    # Something was changed or left out already; leaving out more can't mend it (bifrost core/encryptedreasoning.go).
    Meaning("altered", "anthropic", "restore_exact", "thinking").when(
        rf"{_AT}{_Q}thinking{_Q} or {_Q}redacted_thinking{_Q} blocks in the latest assistant message cannot be"
        r" modified"
    ),
    Meaning("bound-prefix-changed", "anthropic", "drop_block", "signature").when(
        rf"{_INVALID_SEAL}\. The block is bound to a different conversation"
    ),
    Meaning("foreign", "anthropic", "drop_block", "signature").when(_INVALID_SEAL),
    Meaning("missing", "anthropic", "restore", "signature").when(
        rf"{_BLOCK}\.(?P<field>signature|thinking|data)(?:\.str)?: (?:Input should be a valid string|Field required)"
    ),
    Meaning("thinking-off", "anthropic", "bare_loop", "thinking").when(
        rf"{_AT}When {_Q}thinking{_Q} is disabled, an {_Q}assistant{_Q} message in the final position cannot contain"
    ),
    Meaning("thinking-last", "anthropic", "drop_block", "thinking").when(
        rf"{_AT}The final block in an {_Q}assistant{_Q} message cannot be {_Q}(?:redacted_)?thinking"
    ),
    Meaning("forbidden", "anthropic", "drop_member", "block_binding", "thinking.block_binding").when(
        r"(?P<path>thinking\.\w{1,20})\.block_binding: Extra inputs are not permitted"
    ),
    Meaning("forbidden", "anthropic", "drop_member").when(
        rf"{_BLOCK}\.(?P<field>\w{{1,40}}): Extra inputs are not permitted"
    ),
    Meaning("thinking-mode", "anthropic", "adapt_thinking", "thinking").when(
        rf"{_AT}{_Q}thinking\.type\.(?:disabled|enabled){_Q} is not supported for this model"
    ),
    Meaning("thinking-conflict", "anthropic", "pause_thinking", "tool_choice").when(
        rf"{_AT}Thinking may not be enabled when {_Q}tool_choice{_Q} forces tool use"
    ),
    Meaning("thinking-conflict", "anthropic", "pass_on", "temperature").when(
        rf"{_AT}{_Q}(?P<field>temperature|top_p|top_k){_Q} (?:may only be set|must be)[^.]{{0,80}} when"
        rf" {_Q}thinking{_Q} is enabled"
    ),
)

# langchain-aws#401, strands PR#682, LibreChat PR#13888, hermes-agent#105780; Mantle: bifrost `encryptedreasoning.go`.
# AWS counts the members of a list from 1. The prefill sentence names no field: it is about reasoning only where the
# last turn is nothing else, and elsewhere there is no block to drop. 2026-11.
_CONVERSE_SIGNATURE = "messages[].content[].reasoningContent.reasoningText.signature"
_BEDROCK = (
    Meaning("forbidden", "bedrock", "drop_block", "reasoningContent").when(
        r"User messages cannot contain reasoning content"
    ),
    Meaning("forbidden", "bedrock", "drop_member", "signature", _CONVERSE_SIGNATURE).when(
        r"This model doesn't support the reasoningContent\.reasoningText\.signature field"
    ),
    Meaning("missing", "bedrock", "add_filler_text", "text").when(
        r"(?:\d{1,4} validation errors? detected: )?Value (?:null )?at '"
        r"(?P<path>messages\.\w{1,6}\.member\.content\.\w{1,6}\.member)\.reasoningContent\.reasoningText\.text'"
        r" failed to satisfy constraint: Member must not be null",
        counts_from=1,
    ),
    Meaning("thinking-last", "bedrock", "drop_block", "reasoningContent").when(
        r"This model does not support assistant message prefill\. The conversation must end with a user message"
    ),
    Meaning("foreign", "bedrock", "strip_seal", "encrypted_content").when(
        r"[Ee]ncrypted[ _]content (?:is )?missing recognized prefix"
    ),
)

# continue#8785, gemini-cli#13467, Antigravity-Manager PR#3342, 9router#301, inspect_ai#2838 (Vertex). That `position`
# and the number of the content block count from 1 fits every sample; no page says it. 2026-11.
_GEMINI = (
    Meaning("missing", "gemini", "restore", "thought_signature").when(
        rf"Function call is missing a {_Q}thought_signature{_Q} in functionCall parts"
        r"(?:.{0,400}?, position (?P<position>\d{1,6}))?"
    ),
    Meaning("missing", "gemini", "restore", "thought_signature").when(
        rf"(?:Unable to submit request because )?[Ff]unction call .{{1,200}}? in the {_Q}(?P<position>\d{{1,6}})\.{_Q}"
        rf" content block is missing a {_Q}thought_signature"
    ),
    Meaning("foreign", "gemini", "strip_seal", "thought_signature").when(
        r"(?:Unable to submit request because )?"
        r"(?:(?:Corrupted|Invalid) [Tt]hought[ _]signature\b|Thought signature is not valid)"
    ),
)

# pydantic-ai's recording of a modified history, rig#751, openai-agents-js#546, bifrost#5410, sub2api#3138, experiential
# PR#972 (a relay that loses the code), codex (`content`, `status`). 2026-11.
_UNVERIFIED = rf"The encrypted content (?:for item {_ITEM} |\S{{1,1500}} )?could not be verified"
_OPENAI = (
    Meaning("unpaired", "openai", "unpair", "id").when(
        rf"Item '{_ITEM}' of type '\w{{1,40}}' was provided without its required (?:following item|'reasoning' item)"
    ),
    Meaning("stale-id", "openai", "drop_item", "id").when(rf"Item with id '(?=rs_){_ITEM}' not found", (), (400, 404)),
    Meaning("stale-id", "openai", "unpair", "id").when(
        rf"Item with id '{_ITEM}' not found\. Items are not persisted", (), (400, 404)
    ),
    Meaning("stale-id", "openai", "restore", "previous_response_id").when("", ["previous_response_not_found"]),
    Meaning("misplaced", "openai", "drop_item", "encrypted_content").when(
        rf"{_UNVERIFIED}\. Reason: Encrypted content item_id did not match"
    ),
    Meaning("foreign", "openai", "drop_item", "encrypted_content").when(_UNVERIFIED),
    Meaning("foreign", "openai", "drop_item", "encrypted_content").when("", ["invalid_encrypted_content"]),
    Meaning("duplicated", "openai", "drop_item", "id").when(rf"Duplicate item found with id {_Q}{_ITEM}"),
    Meaning("thinking-unsupported", "openai", "stop_asking", "encrypted_content").when(
        r"Encrypted content is not supported with this model"
    ),
    Meaning("forbidden", "openai", "drop_member").when(
        rf"Unknown parameter: '{_INPUT}\.(?P<field>status|content|summary|encrypted_content|reasoning_content|phase)'"
    ),
    Meaning("forbidden", "openai", "drop_member", "content").when(
        rf"Invalid '{_INPUT}\.content': array too long\. Expected an array with maximum length 0"
    ),
    Meaning("missing", "openai", "add_filler_text", "summary").when(
        rf"Missing required parameter: '{_INPUT}\.summary'"
    ),
    Meaning("foreign", "openai", "unpair", "id").when(
        rf"Invalid '{_INPUT}\.id': .{{0,200}}?Expected an ID that begins with '(?:rs|fc|msg)"
    ),
    Meaning("thinking-conflict", "openai-chat", "pass_on", "reasoning_effort").when(
        r"Function tools with reasoning_effort are not supported"
    ),
)

# sub2api#4535, grok2api PR#689; the check of the caller is Meta's, seen through opencode zen (opencode#48741). 2026-11.
_XAI_AND_META = (
    Meaning("foreign", "xai", "strip_seal", "encrypted_content").when(
        rf"Could not decrypt the provided {_Q}encrypted_content{_Q}"
    ),
    Meaning("missing", "xai", "add_filler_text", "summary").when(r"Could not decode the compaction blob"),
    Meaning("foreign", "meta", "drop_item", "encrypted_content").when(
        rf"(?:reasoning |The )?{_Q}encrypted_content{_Q} (?:for item {_ITEM} )?was not issued to this caller"
    ),
)

# MassGen#624, gptel#1190 (OpenRouter before Gemini's own error). 2026-11.
_OPENROUTER = (
    Meaning("missing", "openrouter", "restore", "reasoning_details").when(
        r"Gemini models require OpenRouter reasoning details to be preserved in each request"
    ),
    Meaning("thinking-mode", "openrouter", "adapt_thinking", "reasoning").when(
        r"Reasoning is mandatory for this endpoint and cannot be disabled"
    ),
)

# crush#1590, litellm#30835 (Mistral: the reader of bodies writes `loc` before `msg`), kilocode#10375 (Cerebras),
# jan#8136 (Groq), openai-php#645 (OpenAI). Groq and Cerebras give one violation per line. The first rows are about the
# members for reasoning, for which there may be a better one; the others name any member. 2026-11.
_NOT_PERMITTED = ": Extra inputs are not permitted"
_UNSUPPORTED = r"(?:[\w.]+: )?property '{}' is unsupported"
_GROQ = r"(?='messages\.\d).{{0,1500}}?'(?P<path>messages\.\d{{1,6}})' : property '{}' is unsupported"
_UNEXPECTED = (
    r"Additional properties are not allowed \('{}'(?:, '[^']{{1,80}}'){{0,20}} w(?:as|ere) unexpected\)"
    r"(?: - '(?P<path>messages\.\d{{1,6}})')?"
)
_UNKNOWN_PARAMETER = "Unknown parameter: '{}'"
_FORBIDDING = (
    Meaning("forbidden", "mistral", "strip_field").when(
        _MESSAGE_FIELD + _NOT_PERMITTED, ["extra_forbidden"], (400, 422)
    ),
    Meaning("forbidden", "anthropic", "strip_field").when(_MESSAGE_FIELD + _NOT_PERMITTED),
    Meaning("forbidden", "cerebras", "strip_field").when(_UNSUPPORTED.format(_MESSAGE_FIELD)),
    Meaning("forbidden", "groq", "strip_field").when(_GROQ.format(_CARRIER)),
    Meaning("forbidden", "openai-chat", "strip_field").when(_UNKNOWN_PARAMETER.format(_MESSAGE_FIELD)),
    Meaning("forbidden", "openai-chat", "strip_field").when(_UNEXPECTED.format(_CARRIER)),
    Meaning("forbidden", "mistral", "drop_member").when(
        rf"{_ELEMENT}\.{_MEMBER}{_NOT_PERMITTED}", ["extra_forbidden"], (400, 422)
    ),
    Meaning("forbidden", "anthropic", "drop_member").when(rf"{_ELEMENT}\.{_MEMBER}{_NOT_PERMITTED}"),
    Meaning("forbidden", "fireworks", "drop_member").when(
        rf"Extra inputs are not permitted, field: '{_ELEMENT}\.{_MEMBER}'"
    ),
    Meaning("forbidden", "cerebras", "drop_member").when(_UNSUPPORTED.format(rf"{_ELEMENT}\.{_MEMBER}")),
    Meaning("forbidden", "cerebras", "drop_member").when(_UNSUPPORTED.format(_REQUEST_FIELD), ["wrong_api_format"]),
    Meaning("forbidden", "groq", "drop_member").when(_GROQ.format(_MEMBER)),
    Meaning("forbidden", "openai-chat", "drop_member").when(_UNKNOWN_PARAMETER.format(rf"{_ELEMENT}\.{_MEMBER}")),
    Meaning("forbidden", "openai-chat", "drop_member").when(_UNKNOWN_PARAMETER.format(_REQUEST_FIELD)),
    Meaning("forbidden", "openai-chat", "drop_member").when(_UNEXPECTED.format(_MEMBER)),
    Meaning("forbidden", "gemini", "drop_member").when(
        rf"(?:Invalid JSON payload received\. )?Unknown name \\?\"{_MEMBER}\\?\" at '{_ELEMENT}': Cannot find field"
    ),
    Meaning("forbidden", "bedrock", "drop_member").when(
        rf"#/(?P<path>messages/\d{{1,6}}(?:/content/\d{{1,6}})?): extraneous key \[{_MEMBER}\] is not permitted"
    ),
)

# Reasonix#6173 (a relay's own check), Qwen's known neighbour, Ollama's and llama.cpp's `common/chat.cpp`, sglang's
# `encoding_dsv32.py`. 2026-11.
_OTHERS = (
    Meaning("missing", "openai-chat", "restore", "reasoning_content").when(
        rf"{_AT}assistant message with tool_calls must include {_Q}reasoning_content{_Q}"
    ),
    Meaning("thinking-conflict", "qwen", "pause_thinking", "enable_thinking").when(
        rf"(?:parameter\.)?{_Q}enable_thinking{_Q} must be set to false for non-streaming calls"
    ),
    Meaning("missing", "sglang", "restore", "reasoning_content").when(
        r"ThinkingMode: thinking, invalid message without reasoning_content/tool_calls"
    ),
    Meaning("thinking-last", "llama.cpp", "add_filler_text", "content").when(
        r"Expected 'content' or 'tool_calls' \(ref: .{0,200}?8367 & .{0,200}?12279\)"
    ),
    Meaning("thinking-unsupported", "ollama", "stop_asking", "think").when(
        r"(?:registry\.\S{1,100} )?\\?[\"'`][^\"'`\\]{1,200}\\?[\"'`] does not support (?:thinking|reasoning)"
    ),
    Meaning("thinking-unsupported", "openai-chat", "stop_asking", "thinking").when(
        r"(?:[Tt]his model|(?:[Tt]he )?[Mm]odel \S{1,200}) does(?: not|n't) support"
        r" (?:extended )?(?:thinking|reasoning)(?! (?:effort|level|budget|summar))\b"
    ),
    Meaning("thinking-unsupported", "gemini", "stop_asking", "thinkingConfig").when(
        r"(?:Unable to submit request because )?[Tt]hinking is not (?:supported|enabled) (?:for|by|on) "
    ),
    Meaning("forbidden", "openai-chat", "drop_member").when(
        r"(?:Unsupported parameter: )?[`'\"]?(?P<path>(?P<field>reasoning_effort|reasoning_format|reasoning|thinking"
        r"|enable_thinking|thinking_budget))[`'\"]? is not supported (?:with|for|by) this model"
    ),
    Meaning("forbidden", "openai", "drop_member", "effort", "reasoning.effort").when(
        r"Unsupported parameter: 'reasoning\.effort' is not supported with this model"
    ),
    Meaning("forbidden", "openai", "drop_member", "summary", "reasoning.summary").when(
        r"Unsupported parameter: 'reasoning\.summary' is not supported with this model"
    ),
    Meaning("forbidden", "xai", "drop_member", "reasoning_effort", "reasoning_effort").when(
        r"(?:Argument not supported on this model: |Model \S{1,200} does not support parameter )reasoning_?[eE]ffort"
    ),
)

ROWS: tuple[Row, ...] = (
    *_DEEPSEEK_AND_MIMO,
    *_KIMI,
    *_ANTHROPIC,
    *_BEDROCK,
    *_GEMINI,
    *_OPENAI,
    *_XAI_AND_META,
    *_OPENROUTER,
    *_FORBIDDING,
    *_OTHERS,
)
