"""What a provider and its model demand back, as data.

A contract says which turns must carry reasoning, when, in which shape, whose it may be, and what to do for a turn
whose reasoning nobody has. `ROWS` are the demands by family; `detection.resolve` picks one by provider, host, model and
format, with the place where that provider keeps reasoning. Sources: provider documentation and recordings, 2026-11.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from thoughtline import providers as dialects
from thoughtline.providers import Dialect
from thoughtline.values.options import FUNCTIONS_ONLY, ToolRange
from thoughtline.values.turns import FormatName, Transcript

Kind = Literal["presence", "authenticity", "advisory", "forbidden"]
Scope = Literal[
    "nowhere",
    "calls_after_user",  # assistant turns with calls after the last user message
    "calls",  # assistant turns with calls, anywhere
    "all_with_tools",  # every assistant turn, if the request offers tools
    "loop_head",  # the first assistant turn of the tool loop that is being continued
    "first_call_of_step",  # the first call of each model step after the last user message
    "pairs",  # elements that name each other by id
]
Takes = Literal["text", "own", "nothing"]
Rung = Literal["empty", "inherit", "blank", "sentinel", "unpair", "pause_thinking"]


class Contract(Struct, frozen=True, gc=False):
    """A row. `takes` is what may be sent: any text, only what this provider made, or nothing at all.

    `filler` is the least that is known to be accepted where a field must be there and nobody has its text.
    `follows_answers`: the server's answers say which member holds reasoning; the dialect's is where to begin.
    `may_seal`: nobody lists the server, so seals of a client's may be its own. `drops`: members that it refuses.
    """

    name: str
    kind: Kind
    scope: Scope
    takes: Takes
    dialect: Dialect
    source: str
    ladder: tuple[Rung, ...] = ()
    filler: str = " "
    thinks_by_default: bool = False
    only_when_thinking: bool = True
    binds_prefix: bool = False
    binds_model: bool = False
    follows_answers: bool = False
    may_seal: bool = False
    drops: tuple[str, ...] = ()
    never_thinks: bool = False
    refuses_empty: bool = False  # not even for a turn that had no reasoning does an empty text pass
    format: FormatName = "openai_chat"
    tools: ToolRange = FUNCTIONS_ONLY

    def thinks(self, transcript: Transcript) -> bool:
        """Whether this request has the model think."""
        return self.thinks_by_default if transcript.thinking == "unsaid" else transcript.thinking != "off"

    @property
    def is_strict(self) -> bool:
        return self.kind in ("presence", "authenticity") and self.scope != "nowhere"


def _row(name: str, kind: Kind, scope: Scope, takes: Takes, dialect: Dialect, source: str, **rest: object) -> Contract:
    return replace(Contract(name, kind, scope, takes, dialect, source), **rest)


_PRESENCE: tuple[Rung, ...] = ("empty", "blank", "pause_thinking")

ROWS: tuple[Contract, ...] = (
    _row(
        "deepseek-r1",
        "forbidden",
        "nowhere",
        "nothing",
        dialects.DEEPSEEK,
        "DeepSeek API docs 2025, Reasoning Model: reasoning_content in the input is a 400",
        thinks_by_default=True,
    ),
    _row(
        "deepseek-v3.2",
        "presence",
        "calls_after_user",
        "text",
        dialects.DEEPSEEK,
        "DeepSeek API docs 2025-12, Thinking Mode; DeepSeek's own encoder in SGLang",
        ladder=_PRESENCE,
    ),
    _row(
        "deepseek",
        "presence",
        "all_with_tools",
        "text",
        dialects.DEEPSEEK,
        "DeepSeek API docs 2026, Thinking Mode: with tools, every assistant message's reasoning comes back",
        ladder=_PRESENCE,
        thinks_by_default=True,
    ),
    _row(
        "deepseek-anthropic",
        "presence",
        "all_with_tools",
        "text",
        dialects.DEEPSEEK_ANTHROPIC,
        "the same rule in Anthropic's format; signatures are not checked",
        ladder=_PRESENCE,
        thinks_by_default=True,
        format="anthropic_messages",
    ),
    _row(
        "deepseek-responses",
        "presence",
        "all_with_tools",
        "text",
        dialects.DEEPSEEK_RESPONSES,
        "the same rule in the Responses format; ids and handles are not checked",
        ladder=_PRESENCE,
        thinks_by_default=True,
        format="openai_responses",
    ),
    _row(
        "kimi",
        "presence",
        "calls",
        "text",
        dialects.KIMI,
        "Moonshot docs, Using Thinking Models; its 400 names the assistant tool call message",
        ladder=_PRESENCE,
        thinks_by_default=True,
    ),
    _row(
        "kimi-anthropic",
        "presence",
        "calls",
        "text",
        dialects.KIMI_ANTHROPIC,
        "the same rule in Anthropic's format; its signature is decoration",
        ladder=_PRESENCE,
        thinks_by_default=True,
        format="anthropic_messages",
    ),
    _row(
        "mimo",
        "presence",
        "calls",
        "text",
        dialects.MIMO,
        "Xiaomi MiMo docs 2026-05-12, Passing Back reasoning_content",
        ladder=_PRESENCE,
        thinks_by_default=True,
    ),
    _row(
        "mimo-anthropic",
        "presence",
        "calls",
        "text",
        dialects.MIMO_ANTHROPIC,
        "the same rule in Anthropic's format",
        ladder=_PRESENCE,
        thinks_by_default=True,
        format="anthropic_messages",
    ),
    _row(
        "glm",
        "advisory",
        "nowhere",
        "text",
        dialects.GLM,
        "Z.ai docs, Thinking Mode: return it unmodified; nothing is enforced",
        thinks_by_default=True,
    ),
    _row(
        "minimax",
        "advisory",
        "nowhere",
        "text",
        dialects.MINIMAX_TAGS,
        "MiniMax docs, M2 Tool Use & Interleaved Thinking; nothing is enforced",
        thinks_by_default=True,
    ),
    _row(
        "minimax-anthropic",
        "advisory",
        "nowhere",
        "text",
        dialects.MINIMAX_ANTHROPIC,
        "the same in Anthropic's format",
        thinks_by_default=True,
        format="anthropic_messages",
    ),
    _row(
        "qwen",
        "advisory",
        "nowhere",
        "text",
        dialects.QWEN,
        "Qwen Cloud docs, Thinking: used with preserve_thinking, never enforced",
    ),
    _row(
        "anthropic",
        "authenticity",
        "loop_head",
        "own",
        dialects.ANTHROPIC,
        "Anthropic docs, Extended thinking: a tool loop starts with its thinking, unmodified",
        ladder=("pause_thinking",),
        format="anthropic_messages",
        binds_model=True,
    ),
    _row(
        "anthropic-adaptive",
        "authenticity",
        "nowhere",
        "own",
        dialects.ANTHROPIC,
        "Anthropic docs, Adaptive thinking (4.6 and later): a tool turn may have none; what is sent is checked",
        format="anthropic_messages",
        binds_model=True,
    ),
    _row(
        "anthropic-bound",
        "authenticity",
        "nowhere",
        "own",
        dialects.ANTHROPIC,
        "Anthropic docs, Preserved thinking (Fable 5.1, Opus 5.5, Sonnet 5.5, Haiku 5.5; from 2026-08-31)",
        thinks_by_default=True,
        binds_prefix=True,
        binds_model=True,
        format="anthropic_messages",
    ),
    _row(
        "bedrock-claude",
        "authenticity",
        "loop_head",
        "own",
        dialects.BEDROCK_CLAUDE,
        "AWS docs, ReasoningContentBlock; Anthropic's rules behind Converse",
        ladder=("pause_thinking",),
        format="bedrock_converse",
        binds_model=True,
    ),
    _row(
        "bedrock-forbidden",
        "forbidden",
        "nowhere",
        "nothing",
        dialects.BEDROCK_PLAIN,
        "Nova and DeepSeek-R1 on Converse refuse reasoning content in the history",
        format="bedrock_converse",
    ),
    _row(
        "bedrock-plain",
        "advisory",
        "nowhere",
        "text",
        dialects.BEDROCK_PLAIN,
        "gpt-oss, Qwen, Kimi, MiniMax on Converse: text is taken, a signature is refused",
        format="bedrock_converse",
    ),
    _row(
        "gemini-2.5",
        "advisory",
        "nowhere",
        "own",
        dialects.GEMINI,
        "Gemini docs, Thought signatures: not validated before Gemini 3",
        thinks_by_default=True,
        format="gemini_generate",
        binds_model=True,
    ),
    _row(
        "gemini",
        "authenticity",
        "first_call_of_step",
        "own",
        dialects.GEMINI,
        "Gemini docs, Thought signatures: the first call of each step of the current turn",
        ladder=("sentinel",),
        thinks_by_default=True,
        only_when_thinking=False,
        format="gemini_generate",
        binds_model=True,
    ),
    _row(
        "gemini-chat",
        "authenticity",
        "first_call_of_step",
        "own",
        dialects.GOOGLE_CHAT,
        "Gemini docs, OpenAI compatibility: extra_content.google.thought_signature on the first call",
        ladder=("sentinel",),
        thinks_by_default=True,
        only_when_thinking=False,
        binds_model=True,
    ),
    _row(
        "openai-responses",
        "authenticity",
        "pairs",
        "own",
        dialects.OPENAI_RESPONSES,
        "OpenAI docs, Reasoning items: pairing by id; ciphertext bound to item, organisation, endpoint",
        ladder=("unpair",),
        thinks_by_default=True,
        only_when_thinking=False,
        format="openai_responses",
    ),
    _row(
        "azure-responses",
        "authenticity",
        "pairs",
        "own",
        dialects.AZURE_RESPONSES,
        "Azure docs: as OpenAI, ciphertext bound to the resource",
        ladder=("unpair",),
        thinks_by_default=True,
        only_when_thinking=False,
        format="openai_responses",
    ),
    _row(
        "xai-responses",
        "authenticity",
        "nowhere",
        "own",
        dialects.XAI_RESPONSES,
        "xAI docs, Reasoning: never required; ciphertext is verified, summary must be there",
        thinks_by_default=True,
        only_when_thinking=False,
        format="openai_responses",
    ),
    _row(
        "xai-chat",
        "advisory",
        "nowhere",
        "text",
        dialects.REASONING_CONTENT,
        "xAI's chat endpoint gives reasoning_content and demands nothing",
        thinks_by_default=True,
    ),
    _row(
        "openai-chat",
        "forbidden",
        "nowhere",
        "nothing",
        dialects.NO_REASONING,
        "OpenAI Chat Completions knows no reasoning in messages: unknown parameters are refused",
    ),
    _row(
        "openrouter",
        "advisory",
        "nowhere",
        "own",
        dialects.REASONING_DETAILS,
        "OpenRouter docs, Reasoning tokens: pass reasoning_details back unmodified",
    ),
    _row(
        "mistral",
        "advisory",
        "nowhere",
        "text",
        dialects.MISTRAL,
        "Mistral docs, Reasoning: thinking chunks; any other field is a 422",
        thinks_by_default=True,
    ),
    _row(
        "reasoning-field",
        "advisory",
        "nowhere",
        "text",
        dialects.REASONING,
        "Groq, Cerebras, Together, vLLM: `reasoning`; Groq and Cerebras refuse reasoning_content",
        thinks_by_default=True,
    ),
    _row(
        "think-tags",
        "advisory",
        "nowhere",
        "text",
        dialects.THINK_TAGS,
        "Cerebras' GLM takes its reasoning as <think> in the content",
        thinks_by_default=True,
    ),
    _row(
        "reasoning-content",
        "advisory",
        "nowhere",
        "text",
        dialects.REASONING_CONTENT,
        "Fireworks, SiliconFlow, Nebius, DeepInfra, SambaNova, SGLang, llama.cpp, LM Studio",
        thinks_by_default=True,
    ),
    _row(
        "cohere",
        "advisory",
        "nowhere",
        "text",
        dialects.COHERE,
        "Cohere v2 docs: thinking chunks, unvalidated",
        thinks_by_default=True,
    ),
    _row(
        "no-reasoning",
        "forbidden",
        "nowhere",
        "nothing",
        dialects.NO_REASONING,
        "Perplexity has no replay; <think> is visible text there",
    ),
    _row(
        "ollama",
        "advisory",
        "nowhere",
        "text",
        dialects.OLLAMA,
        "Ollama API docs: thinking in and out, nothing enforced",
        thinks_by_default=True,
        format="ollama_chat",
    ),
    _row(
        "copilot",
        "authenticity",
        "nowhere",
        "own",
        dialects.COPILOT,
        "VS Code's Copilot client: reasoning_text and reasoning_opaque go back on the last tool turn",
        thinks_by_default=True,
        binds_model=True,
    ),
    _row(
        "unknown",
        "advisory",
        "nowhere",
        "text",
        dialects.REASONING_CONTENT,
        "a model we don't know: what the client sends is left alone",
        follows_answers=True,
        may_seal=True,
    ),
)

BY_NAME: dict[str, Contract] = {row.name: row for row in ROWS}
UNKNOWN = BY_NAME["unknown"]
