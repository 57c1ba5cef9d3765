"""The table of simulators: one row each, with its APIs and the rules of its contract."""

from __future__ import annotations

import re

from thoughtline_sim import refusals
from thoughtline_sim.exchange import Api, Reject, Rule, SimExchange, Simulator
from thoughtline_sim.reading import JsonObject, as_object, string
from thoughtline_sim.rules import (
    anthropic,
    asking,
    bedrock,
    forbidden,
    gemini,
    openrouter,
    presence,
    responses,
)
from thoughtline_sim.wires import chat_styles, messages
from thoughtline_sim.wires import responses as responses_wires
from thoughtline_sim.wires.chat import OLLAMA, ChatStyle, chat_wire
from thoughtline_sim.wires.converse import converse_wire, invoke_wire
from thoughtline_sim.wires.generate import CODE_ASSIST, GENERATE, code_assist_thinks, either, thinking_config
from thoughtline_sim.wires.interactions import INTERACTIONS
from thoughtline_sim.wires.messages import MessagesStyle, messages_wire
from thoughtline_sim.wires.responses import ResponsesStyle, responses_wire

_MODEL = re.compile(r"/models/([^/:]+):\w+$|/model/([^/]+)/[\w-]+$")


def _unless_disabled(exchange: SimExchange) -> bool:
    """GLM, MiniMax, Qwen, vLLM: each has its own switch."""
    body = exchange.body
    kwargs = as_object(body.get("chat_template_kwargs"))
    is_off = as_object(body.get("thinking")).get("type") == "disabled" or body.get("reasoning_effort") == "none"
    return not (is_off or body.get("enable_thinking") is False or kwargs.get("enable_thinking") is False)


def _chat(style: ChatStyle, *rules: Rule, reject: Reject | None = None) -> Api:
    return Api(r"/chat/completions$", chat_wire(style), (asking.chat_results, *rules), reject=reject)


def _messages(style: MessagesStyle, *rules: Rule, reject: Reject | None = None) -> tuple[Api, Api]:
    """The API and its counter of tokens, which looks at the same rules."""
    api = Api(r"/messages$", messages_wire(style), rules, reject=reject)
    return api, api._replace(path=r"/messages/count_tokens$", counts=lambda tokens: {"input_tokens": tokens})


def _responses(style: ResponsesStyle, *rules: Rule, has_websocket: bool = False) -> Api:
    return Api(r"/responses$", responses_wire(style), rules, has_websocket=has_websocket)


def _model_in_path(body: JsonObject, path: str) -> str:
    found = _MODEL.search(path)
    return (found.group(1) or found.group(2)) if found else ""


def _google(models: str, api: Api) -> tuple[Api, Api]:
    """An API of Google's methods, whole and streamed, and its counter of tokens."""
    api = api._replace(
        path=models + r":(?:g|streamG)enerateContent$", is_streaming=lambda body, path: ":stream" in path
    )
    return api, api._replace(path=models + r":countTokens$", counts=lambda tokens: {"totalTokens": tokens})


def _generate(*rules: Rule) -> tuple[Api, Api]:
    def is_thinking(exchange: SimExchange) -> bool:
        return either(thinking_config(exchange), "thinkingBudget", "thinking_budget") != 0

    return _google(r"/models/[^/:]+", Api("", GENERATE, rules, model_of=_model_in_path, is_thinking=is_thinking))


def _code_assist(*rules: Rule) -> tuple[Api, Api]:
    return _google(r"/v1internal", Api("", CODE_ASSIST, rules, is_thinking=code_assist_thinks, inside="request"))


_CODE_ASSIST_MODELS = ("gemini-3-pro-preview", "gemini-3.7-flash", "claude-sonnet-4-5")
_SIDE_CALLS: tuple[tuple[str, JsonObject], ...] = (
    (
        r"/v1internal:loadCodeAssist$",
        {
            "currentTier": {"id": "standard-tier", "name": "Gemini Code Assist"},
            "cloudaicompanionProject": "simulated",
            "allowedTiers": [],
        },
    ),
    # Who has no quota for a model of Gemini 3 is thought to have no access to them.
    (
        r"/v1internal:retrieveUserQuota$",
        {"buckets": [{"modelId": name, "remainingFraction": 1} for name in _CODE_ASSIST_MODELS]},
    ),
    (r"/v1internal:fetchAvailableModels$", {"models": {name: {} for name in _CODE_ASSIST_MODELS}}),
    (r"/v1internal:\w+$", {}),
)
"""What Gemini CLI and Antigravity ask beside the model: with a tier and a project nobody is taken through a setup."""

_CONVERSE_API = Api(
    r"/model/[^/]+/converse(?:-stream)?$",
    converse_wire(bedrock.STYLE),
    bedrock.RULES,
    model_of=_model_in_path,
    is_streaming=lambda body, path: path.endswith("-stream"),
)
_INVOKE_API = Api(
    r"/model/[^/]+/invoke(?:-with-response-stream)?$",
    invoke_wire(bedrock.INVOKE_STYLE),
    bedrock.INVOKE_RULES,
    model_of=_model_in_path,
    is_streaming=lambda body, path: path.endswith("-stream"),
    is_thinking=anthropic.is_thinking,
)
_OLLAMA_API = Api(
    r"/api/chat$",
    OLLAMA,
    (forbidden.ollama_can_think,),
    is_streaming=lambda body, path: body.get("stream") is not False,
    reject=refusals.plain_error,
    is_thinking=forbidden.ollama_thinks,
)
_DEEPSEEK_TOOLS = (presence.deepseek_tool_kinds, presence.deepseek_tool_choice)
_GEMINI_RULES = (asking.gemini_tools_together, gemini.generate_is_signed, gemini.results_follow_code)
_CLAUDE_RULES = (asking.claude_tool_kinds, asking.claude_sampling, asking.claude_results)


def _published(publisher: str, api: Api) -> Api:
    """An API under Vertex's addresses: with a project and a location, or in express mode with neither."""
    place = r"^/v1(?:beta1)?(?:/projects/[^/]+/locations/[a-z0-9-]+)?/publishers/"
    return api._replace(path=place + publisher + api.path)


def _raw_predict() -> tuple[Api, Api]:
    """Claude on Vertex: the address says the model, the body that it streams and whose version it is of."""
    wire = messages_wire(anthropic.STYLE._replace(reply_id=lambda digits: f"msg_vrtx_01{digits[:22]}"))
    api = Api(
        r"/models/[^/:]+:(?:r|streamR)awPredict$",
        wire,
        (anthropic.vertex_members, *_CLAUDE_RULES, *anthropic.RULES),
        model_of=_model_in_path,
        reject=refusals.anthropic_error,
        is_thinking=anthropic.is_thinking,
    )
    count = api._replace(
        path=r"/models/count-tokens:rawPredict$",
        rules=(*_CLAUDE_RULES, *anthropic.RULES),
        model_of=lambda body, path: string(body.get("model")),
        counts=lambda tokens: {"input_tokens": tokens},
    )
    return count, api


_ROWS = (
    Simulator(
        "deepseek-r1",
        "DeepSeek of 2025: reasoning in the input is an error",
        ("deepseek-reasoner",),
        reject=refusals.deepseek_error,
        apis=(_chat(chat_styles.DEEPSEEK, presence.deepseek_r1_forbids),),
        is_thinking=lambda exchange: True,
    ),
    Simulator(
        "deepseek-v3.2",
        "DeepSeek V3.2: reasoning of the current tool loop must come back",
        ("deepseek-reasoner", "deepseek-chat"),
        reject=refusals.deepseek_error,
        apis=(_chat(chat_styles.DEEPSEEK, *_DEEPSEEK_TOOLS, presence.deepseek_v3_2_requires),),
        is_thinking=presence.deepseek_is_thinking,
    ),
    Simulator(
        "deepseek",
        "DeepSeek V4: with tools in the request, all reasoning must come back; chat, Anthropic and Responses APIs",
        ("deepseek-v4-pro", "deepseek-flash"),
        reject=refusals.deepseek_error,
        apis=(
            _chat(chat_styles.DEEPSEEK, *_DEEPSEEK_TOOLS, presence.deepseek_chat_requires),
            *_messages(
                messages.PLAIN,
                presence.deepseek_tool_choice,
                presence.deepseek_requires(presence.has_block, "content[].thinking"),
            ),
            _responses(
                responses_wires.DEEPSEEK,
                *_DEEPSEEK_TOOLS,
                presence.deepseek_calls_before_outputs,
                presence.deepseek_requires(presence.has_item, "reasoning_text"),
            ),
        ),
        is_thinking=presence.deepseek_is_thinking,
        profiles=("tools", "toolcalls", "nonblank"),
    ),
    Simulator(
        "kimi",
        "Moonshot Kimi: reasoning of every tool call must come back; call ids collide; chat and Anthropic APIs",
        ("kimi-k2.6", "kimi-k3", "kimi-k2-thinking"),
        reject=refusals.typed_error,
        apis=(
            _chat(
                chat_styles.KIMI,
                presence.kimi_thinking_is_object,
                presence.kimi_one_switch,
                presence.kimi_text_not_empty,
                presence.calls_require(presence.has_field, presence.kimi_missing),
            ),
            *_messages(messages.KIMI, presence.calls_require(presence.has_block, presence.kimi_missing)),
        ),
        is_thinking=presence.kimi_is_thinking,
    ),
    Simulator(
        "mimo",
        "Xiaomi MiMo: like Kimi, with its sentence hidden in `param`; chat and Anthropic APIs",
        ("mimo-v2.5-pro", "mimo-v2-flash"),
        reject=refusals.mimo_error,
        apis=(
            _chat(chat_styles.MIMO, presence.calls_require(presence.has_field, presence.mimo_missing)),
            *_messages(messages.PLAIN, presence.calls_require(presence.has_block, presence.mimo_missing)),
        ),
        is_thinking=presence.mimo_is_thinking,
    ),
    Simulator(
        "glm",
        "Zhipu GLM: never refuses; what came back is in /_stats",
        ("glm-5", "glm-4.7"),
        apis=(_chat(chat_styles.GLM),),
        is_thinking=_unless_disabled,
    ),
    Simulator(
        "minimax",
        "MiniMax: `<think>` in the text, or `reasoning_split`; never refuses; chat and Anthropic APIs",
        ("MiniMax-M3", "MiniMax-M2"),
        apis=(_chat(chat_styles.MINIMAX), *_messages(messages.PLAIN, reject=refusals.anthropic_error)),
        is_thinking=_unless_disabled,
    ),
    Simulator(
        "qwen",
        "Qwen on DashScope: never refuses; what came back is in /_stats",
        ("qwen3.7-max",),
        apis=(_chat(chat_styles.QWEN),),
        is_thinking=_unless_disabled,
    ),
    Simulator(
        "anthropic",
        "Anthropic Messages: signed thinking; profiles for Claude 4/4.5, for 4.6 and later, and for bound blocks",
        ("claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5"),
        reject=refusals.anthropic_error,
        apis=_messages(
            anthropic.STYLE,
            anthropic.thread_known,
            *_CLAUDE_RULES,
            *anthropic.RULES,
        ),
        is_thinking=anthropic.is_thinking,
        profiles=("classic", "adaptive", "bound"),
    ),
    Simulator(
        "bedrock",
        "Bedrock: Converse, and InvokeModel for Claude, signed or not; Nova and DeepSeek-R1, which want none back",
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-2-lite-v1:0", "openai.gpt-oss-120b-1:0"),
        reject=refusals.bedrock_error,
        apis=(_CONVERSE_API, _INVOKE_API),
        is_thinking=bedrock.is_thinking,
        profiles=("classic", "adaptive", "bound"),
    ),
    Simulator(
        "gemini",
        "Gemini 3: signed function calls; generateContent in both framings, Interactions, the OpenAI-compatible API",
        ("gemini-3-pro-preview", "gemini-3.7-flash"),
        reject=refusals.gemini_error,
        apis=(
            *_generate(*_GEMINI_RULES),
            _chat(chat_styles.GOOGLE, gemini.chat_is_signed, reject=refusals.gemini_chat_error),
            Api(
                r"/interactions$",
                INTERACTIONS,
                (gemini.previous_known, gemini.signatures_open, gemini.thoughts_lead_to_calls),
            ),
        ),
    ),
    Simulator(
        "code-assist",
        "Code Assist and Antigravity: Gemini in an envelope, signed as Gemini 3; Claude with signed thoughts",
        _CODE_ASSIST_MODELS,
        reject=refusals.gemini_error,
        apis=_code_assist(
            gemini.for_gemini(asking.gemini_tools_together),
            gemini.for_gemini(gemini.generate_is_signed),
            gemini.for_gemini(gemini.results_follow_code),
            gemini.claude_is_signed,
        ),
        others=_SIDE_CALLS,
    ),
    Simulator(
        "vertex",
        "Vertex AI: Gemini 3 and Claude under Vertex's addresses, each by its maker's rules",
        ("gemini-3-pro-preview", "claude-sonnet-4-5@20250929", "claude-opus-4-8"),
        reject=refusals.gemini_error,
        apis=(
            *(_published("google", api) for api in _generate(*_GEMINI_RULES)),
            *(_published("anthropic", api) for api in _raw_predict()),
        ),
        profiles=("classic", "adaptive", "bound"),
    ),
    Simulator(
        "gemini-2.5",
        "Gemini 2.5: unchecked signatures; what came back is in /_stats",
        ("gemini-2.5-pro", "gemini-2.5-flash"),
        reject=refusals.gemini_error,
        apis=(
            *_generate(asking.gemini_tools_together),
            _chat(chat_styles.GOOGLE, reject=refusals.gemini_chat_error),
        ),
    ),
    Simulator(
        "openai",
        "OpenAI: Responses, stored or not, with pairs and ciphertext; chat, where reasoning has no place",
        ("gpt-5.1", "o4-mini"),
        apis=(
            _responses(responses_wires.OPENAI, *responses.OPENAI_RULES, has_websocket=True),
            _chat(chat_styles.OPENAI, *responses.CHAT_RULES, responses.chat_effort_with_tools),
        ),
    ),
    Simulator(
        "azure",
        "Azure OpenAI: like OpenAI; ciphertext of another resource is refused",
        ("gpt-5-mini",),
        apis=(
            _responses(responses_wires.OPENAI, *responses.OPENAI_RULES, has_websocket=True),
            _chat(chat_styles.OPENAI, *responses.CHAT_RULES),
        ),
    ),
    Simulator(
        "xai",
        "xAI: Responses with ciphertext, which must be xAI's own; chat",
        ("grok-4.7", "grok-3-mini"),
        reject=refusals.xai_error,
        apis=(
            _responses(
                responses_wires.XAI,
                asking.xai_tool_kinds,
                responses.xai_summary_given,
                responses.xai_ciphertext_opens,
                has_websocket=True,
            ),
            _chat(chat_styles.XAI),
        ),
    ),
    Simulator(
        "openrouter",
        "OpenRouter: `reasoning_details`; the rules of the model's own provider, errors wrapped",
        ("anthropic/claude-sonnet-4.5", "google/gemini-3-pro-preview", "openai/gpt-5", "deepseek/deepseek-v4-pro"),
        apis=(_chat(openrouter.STYLE, openrouter.upstream_agrees),),
        is_thinking=openrouter.is_thinking,
    ),
    Simulator(
        "mistral",
        "Mistral: thinking chunks in content; any unknown member is a 422",
        ("magistral-medium-latest", "mistral-small-latest"),
        reject=refusals.mistral_error,
        apis=(_chat(chat_styles.MISTRAL, forbidden.mistral_extra_keys),),
    ),
    Simulator(
        "groq",
        "Groq: `reasoning`; refuses unknown members of a message",
        ("openai/gpt-oss-120b",),
        reject=refusals.typed_error,
        apis=(_chat(chat_styles.GROQ, forbidden.groq_properties),),
    ),
    Simulator(
        "cerebras",
        "Cerebras: `reasoning`; refuses unknown members of a message, with a flat error body",
        ("gpt-oss-120b", "zai-glm-4.7"),
        reject=refusals.cerebras_error,
        apis=(_chat(chat_styles.CEREBRAS, forbidden.cerebras_properties),),
    ),
    Simulator(
        "ollama",
        "Ollama: its own chat with `thinking`, and the OpenAI-compatible API with `reasoning`",
        ("qwen3:14b", "llama3.2"),
        apis=(_OLLAMA_API, _chat(chat_styles.OLLAMA, forbidden.ollama_effort_known)),
    ),
    Simulator(
        "vllm",
        "vLLM: `reasoning` out, either name in; never refuses",
        ("Qwen/Qwen3-32B",),
        apis=(_chat(chat_styles.VLLM),),
        is_thinking=_unless_disabled,
    ),
    Simulator(
        "copilot",
        "GitHub Copilot: `reasoning_text` with `reasoning_opaque`; Responses without store",
        ("claude-sonnet-4.5", "gpt-5.3-codex"),
        reject=refusals.copilot_error,
        apis=(
            _chat(chat_styles.COPILOT, forbidden.copilot_opaque_opens),
            _responses(responses_wires.COPILOT, *responses.OPENAI_RULES),
        ),
    ),
)
SIMULATORS: dict[str, Simulator] = {row.name: row for row in _ROWS}
