"""The table of simulators: one row each, with its APIs and the rules of its contract."""

from __future__ import annotations

import re
from collections.abc import Callable

from thoughtline_sim import refusals
from thoughtline_sim.exchange import Api, Rule, SimExchange, Simulator, WireFormat
from thoughtline_sim.rules import anthropic, asking, bedrock, forbidden, gemini, openrouter, presence, responses
from thoughtline_sim.values import Rejection
from thoughtline_sim.wire import Json, JsonObject, as_object
from thoughtline_sim.wires import chat_styles, messages, responses_styles
from thoughtline_sim.wires.chat import ChatStyle, chat_wire
from thoughtline_sim.wires.converse import converse_wire
from thoughtline_sim.wires.generate import GENERATE, either
from thoughtline_sim.wires.messages import MessagesStyle, messages_wire
from thoughtline_sim.wires.ollama import OLLAMA
from thoughtline_sim.wires.responses import ResponsesStyle, responses_wire

_CHAT = re.compile(r"/chat/completions$")
_MESSAGES = re.compile(r"/messages$")
_COUNT_MESSAGES = re.compile(r"/messages/count_tokens$")
_RESPONSES = re.compile(r"/responses$")
_GENERATE = re.compile(r"/models/([^/:]+):(?:g|streamG)enerateContent$")
_COUNT_GENERATE = re.compile(r"/models/([^/:]+):countTokens$")
_CONVERSE = re.compile(r"/model/([^/]+)/converse(?:-stream)?$")
_OLLAMA = re.compile(r"/api/chat$")

Thinks = Callable[[SimExchange], bool]


def _always(exchange: SimExchange) -> bool:
    return True


def _unless_disabled(exchange: SimExchange) -> bool:
    """GLM, MiniMax, Qwen, vLLM: each has its own switch."""
    body = exchange.body
    kwargs = as_object(body.get("chat_template_kwargs"))
    is_off = as_object(body.get("thinking")).get("type") == "disabled" or body.get("reasoning_effort") == "none"
    return not (is_off or body.get("enable_thinking") is False or kwargs.get("enable_thinking") is False)


def _unless_no_effort(exchange: SimExchange) -> bool:
    effort = as_object(exchange.body.get("reasoning")).get("effort") or exchange.body.get("reasoning_effort")
    return effort != "none" and not exchange.model.startswith(responses.PLAIN_MODELS)


def _gemini_thinks(exchange: SimExchange) -> bool:
    settings = as_object(either(exchange.body, "generationConfig", "generation_config"))
    config = as_object(either(settings, "thinkingConfig", "thinking_config"))
    return either(config, "thinkingBudget", "thinking_budget") != 0


def _ollama_thinks(exchange: SimExchange) -> bool:
    return exchange.body.get("think") is not False and forbidden.ollama_can_think(_asked(exchange)) is None


def _asked(exchange: SimExchange) -> SimExchange:
    return exchange._replace(body={**exchange.body, "think": True})


def _chat(
    style: ChatStyle, malformed: Callable[[str], Rejection], *rules: Rule, is_thinking: Thinks = _unless_no_effort
) -> Api:
    return Api(_CHAT, chat_wire(style), (asking.chat_results(malformed), *rules), malformed, is_thinking)


def _messages(
    style: MessagesStyle, malformed: Callable[[str], Rejection], is_thinking: Thinks, *rules: Rule
) -> tuple[Api, Api]:
    """The API and its counter of tokens, which looks at the same rules."""
    wire = messages_wire(style)
    counter = Api(_COUNT_MESSAGES, wire, rules, malformed, is_thinking, counts=_count_messages)
    return Api(_MESSAGES, wire, rules, malformed, is_thinking), counter


def _count_messages(exchange: SimExchange, tokens: int) -> JsonObject:
    return {"input_tokens": tokens}


def _responses(
    style: ResponsesStyle, malformed: Callable[[str], Rejection], *rules: Rule, is_thinking: Thinks = _unless_no_effort
) -> Api:
    return Api(_RESPONSES, responses_wire(style), rules, malformed, is_thinking)


def _in_path(pattern: re.Pattern[str]) -> Callable[[JsonObject, str], str]:
    def model_of(body: JsonObject, path: str) -> str:
        found = pattern.search(path)
        return found.group(1) if found else ""

    return model_of


def _generate(*rules: Rule) -> tuple[Api, Api]:
    model_of, counted = _in_path(_GENERATE), _in_path(_COUNT_GENERATE)
    api = Api(_GENERATE, GENERATE, rules, refusals.gemini_error, _gemini_thinks, model_of, _says_stream)
    count = Api(
        _COUNT_GENERATE, GENERATE, rules, refusals.gemini_error, _gemini_thinks, counted, counts=_count_generate
    )
    return api, count


def _says_stream(body: Json, path: str) -> bool:
    return ":stream" in path


def _count_generate(exchange: SimExchange, tokens: int) -> JsonObject:
    return {"totalTokens": tokens}


def _converse() -> Api:
    wire: WireFormat = converse_wire(bedrock.STYLE)
    model_of = _in_path(_CONVERSE)
    return Api(_CONVERSE, wire, bedrock.RULES, refusals.bedrock_error, bedrock.is_thinking, model_of, _ends_with_stream)


def _ends_with_stream(body: Json, path: str) -> bool:
    return path.endswith("-stream")


def _ollama() -> Api:
    rules = (forbidden.ollama_can_think,)
    return Api(_OLLAMA, OLLAMA, rules, refusals.plain_error, _ollama_thinks, is_streaming=_streams_unless_told)


def _streams_unless_told(body: JsonObject, path: str) -> bool:
    return body.get("stream") is not False


def _gemini_chat_malformed(message: str) -> Rejection:
    return refusals.gemini_error(message, is_in_array=True)


_DEEPSEEK_COMMON = (presence.deepseek_tool_kinds, presence.deepseek_tool_choice)

SIMULATORS: dict[str, Simulator] = {
    row.name: row
    for row in (
        Simulator(
            "deepseek-r1",
            "DeepSeek of 2025: reasoning in the input is an error",
            ("deepseek-reasoner",),
            (_chat(chat_styles.DEEPSEEK, refusals.deepseek_error, presence.deepseek_r1_forbids, is_thinking=_always),),
        ),
        Simulator(
            "deepseek-v3.2",
            "DeepSeek V3.2: reasoning of the current tool loop must come back",
            ("deepseek-reasoner", "deepseek-chat"),
            (
                _chat(
                    chat_styles.DEEPSEEK,
                    refusals.deepseek_error,
                    *_DEEPSEEK_COMMON,
                    presence.deepseek_v3_2_requires,
                    is_thinking=presence.deepseek_is_thinking,
                ),
            ),
        ),
        Simulator(
            "deepseek",
            "DeepSeek V4: with tools in the request, all reasoning must come back; chat, Anthropic and Responses APIs",
            ("deepseek-v4-pro", "deepseek-flash"),
            (
                _chat(
                    chat_styles.DEEPSEEK,
                    refusals.deepseek_error,
                    *_DEEPSEEK_COMMON,
                    presence.deepseek_chat_requires,
                    is_thinking=presence.deepseek_is_thinking,
                ),
                *_messages(
                    messages.PLAIN,
                    refusals.deepseek_error,
                    presence.deepseek_is_thinking,
                    presence.deepseek_tool_choice,
                    presence.deepseek_messages_requires,
                ),
                _responses(
                    responses_styles.DEEPSEEK,
                    refusals.deepseek_error,
                    *_DEEPSEEK_COMMON,
                    presence.deepseek_calls_before_outputs,
                    presence.deepseek_responses_requires,
                    is_thinking=presence.deepseek_is_thinking,
                ),
            ),
            ("tools", "toolcalls", "nonblank"),
        ),
        Simulator(
            "kimi",
            "Moonshot Kimi: reasoning of every tool call must come back; call ids collide; chat and Anthropic APIs",
            ("kimi-k2.6", "kimi-k3", "kimi-k2-thinking"),
            (
                _chat(
                    chat_styles.KIMI,
                    refusals.kimi_error,
                    presence.kimi_thinking_is_object,
                    presence.kimi_one_switch,
                    presence.kimi_text_not_empty,
                    presence.kimi_requires(presence.has_field),
                    is_thinking=presence.kimi_is_thinking,
                ),
                *_messages(
                    messages.KIMI,
                    refusals.kimi_error,
                    presence.kimi_is_thinking,
                    presence.kimi_requires(presence.has_block),
                ),
            ),
        ),
        Simulator(
            "mimo",
            "Xiaomi MiMo: as Kimi, its sentence hidden in `param`; chat and Anthropic APIs",
            ("mimo-v2.5-pro", "mimo-v2-flash"),
            (
                _chat(
                    chat_styles.MIMO,
                    refusals.mimo_error,
                    presence.mimo_requires(presence.has_field),
                    is_thinking=presence.mimo_is_thinking,
                ),
                *_messages(
                    messages.PLAIN,
                    refusals.mimo_error,
                    presence.mimo_is_thinking,
                    presence.mimo_requires(presence.has_block),
                ),
            ),
        ),
        Simulator(
            "glm",
            "Zhipu GLM: never refuses; what came back is in /_stats",
            ("glm-5", "glm-4.7"),
            (_chat(chat_styles.GLM, refusals.openai_error, is_thinking=_unless_disabled),),
        ),
        Simulator(
            "minimax",
            "MiniMax: `<think>` in the text, or `reasoning_split`; never refuses; chat and Anthropic APIs",
            ("MiniMax-M3", "MiniMax-M2"),
            (
                _chat(chat_styles.MINIMAX, refusals.openai_error, is_thinking=_unless_disabled),
                *_messages(messages.PLAIN, refusals.anthropic_error, _unless_disabled),
            ),
        ),
        Simulator(
            "qwen",
            "Qwen on DashScope: never refuses; what came back is in /_stats",
            ("qwen3.7-max",),
            (_chat(chat_styles.QWEN, refusals.openai_error, is_thinking=_unless_disabled),),
        ),
        Simulator(
            "anthropic",
            "Anthropic Messages: signed thinking; profiles for Claude 4/4.5, for 4.6 and later, and for bound blocks",
            ("claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5"),
            _messages(
                anthropic.STYLE,
                refusals.anthropic_error,
                anthropic.is_thinking,
                anthropic.thread_known,
                asking.claude_tool_kinds,
                asking.claude_sampling,
                asking.claude_results,
                *anthropic.RULES,
            ),
            ("classic", "adaptive", "bound"),
        ),
        Simulator(
            "bedrock",
            "Bedrock Converse: Claude with signed reasoning; Nova and DeepSeek-R1, which want none back; gpt-oss",
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-2-lite-v1:0", "openai.gpt-oss-120b-1:0"),
            (_converse(),),
            ("classic", "adaptive"),
        ),
        Simulator(
            "gemini",
            "Gemini 3: signed function calls; generateContent with both stream framings, and the OpenAI-compatible API",
            ("gemini-3-pro-preview", "gemini-3.7-flash"),
            (
                *_generate(asking.gemini_tools_together, gemini.generate_is_signed, gemini.results_follow_code),
                _chat(chat_styles.GOOGLE, _gemini_chat_malformed, gemini.chat_is_signed),
            ),
        ),
        Simulator(
            "gemini-2.5",
            "Gemini 2.5: signatures that nobody checks; what came back is in /_stats",
            ("gemini-2.5-pro", "gemini-2.5-flash"),
            (
                *_generate(asking.gemini_tools_together),
                _chat(chat_styles.GOOGLE, _gemini_chat_malformed),
            ),
        ),
        Simulator(
            "openai",
            "OpenAI: Responses, stored or not, with pairs and ciphertext; chat, where reasoning has no place",
            ("gpt-5.1", "o4-mini"),
            (
                _responses(responses_styles.OPENAI, refusals.openai_error, *responses.OPENAI_RULES),
                _chat(
                    chat_styles.OPENAI,
                    refusals.openai_error,
                    responses.chat_parameters_known,
                    responses.chat_call_ids_fit,
                    responses.chat_effort_with_tools,
                ),
            ),
        ),
        Simulator(
            "azure",
            "Azure OpenAI: as OpenAI; ciphertext of another resource does not open",
            ("gpt-5-mini",),
            (
                _responses(responses_styles.AZURE, refusals.openai_error, *responses.OPENAI_RULES),
                _chat(
                    chat_styles.OPENAI,
                    refusals.openai_error,
                    responses.chat_parameters_known,
                    responses.chat_call_ids_fit,
                ),
            ),
        ),
        Simulator(
            "xai",
            "xAI: Responses with ciphertext that must be its own; chat",
            ("grok-4.7", "grok-3-mini"),
            (
                _responses(
                    responses_styles.XAI,
                    refusals.xai_error,
                    asking.xai_tool_kinds,
                    responses.xai_summary_given,
                    responses.xai_ciphertext_opens,
                ),
                _chat(chat_styles.XAI, refusals.xai_error),
            ),
        ),
        Simulator(
            "openrouter",
            "OpenRouter: `reasoning_details`; the rules of the model's own provider, errors wrapped",
            ("anthropic/claude-sonnet-4.5", "google/gemini-3-pro-preview", "openai/gpt-5", "deepseek/deepseek-v4-pro"),
            (
                _chat(
                    openrouter.STYLE,
                    refusals.openai_error,
                    openrouter.upstream_agrees,
                    is_thinking=openrouter.is_thinking,
                ),
            ),
        ),
        Simulator(
            "mistral",
            "Mistral: thinking chunks in content; any key it does not know is a 422",
            ("magistral-medium-latest", "mistral-small-latest"),
            (_chat(chat_styles.MISTRAL, refusals.mistral_error, forbidden.mistral_extra_keys),),
        ),
        Simulator(
            "groq",
            "Groq: `reasoning`; refuses every member of a message that it does not know",
            ("openai/gpt-oss-120b",),
            (_chat(chat_styles.GROQ, refusals.groq_error, forbidden.groq_properties),),
        ),
        Simulator(
            "cerebras",
            "Cerebras: `reasoning`; refuses every member of a message that it does not know, in a flat body",
            ("gpt-oss-120b", "zai-glm-4.7"),
            (_chat(chat_styles.CEREBRAS, refusals.cerebras_error, forbidden.cerebras_properties),),
        ),
        Simulator(
            "ollama",
            "Ollama: its own chat with `thinking`, and the OpenAI-compatible API with `reasoning`",
            ("qwen3:14b", "llama3.2"),
            (_ollama(), _chat(chat_styles.OLLAMA, refusals.openai_error, forbidden.ollama_effort_known)),
        ),
        Simulator(
            "vllm",
            "vLLM: `reasoning` out, either name in; never refuses",
            ("Qwen/Qwen3-32B",),
            (_chat(chat_styles.VLLM, refusals.openai_error, is_thinking=_unless_disabled),),
        ),
        Simulator(
            "copilot",
            "GitHub Copilot: `reasoning_text` with `reasoning_opaque`; Responses without store",
            ("claude-sonnet-4.5", "gpt-5.3-codex"),
            (
                _chat(chat_styles.COPILOT, refusals.copilot_error, forbidden.copilot_opaque_opens),
                _responses(responses_styles.COPILOT, refusals.copilot_error, *responses.OPENAI_RULES),
            ),
        ),
    )
}
