"""The table of simulators: one row each, with its APIs and the rules of its contract."""

from __future__ import annotations

from thoughtline_sim import refusals
from thoughtline_sim.apis import (
    chat_api,
    code_assist_api,
    generate_api,
    messages_api,
    model_in_path,
    responses_api,
)
from thoughtline_sim.exchange import Api, SimExchange, Simulator
from thoughtline_sim.reading import JsonObject, as_object, string
from thoughtline_sim.rules import (
    anthropic,
    asking,
    bedrock,
    claude_settings,
    command_code,
    deepseek,
    forbidden,
    gemini,
    gemini_settings,
    kimi,
    openai_models,
    openrouter,
    presence,
    responses,
    switches,
    templates,
    tool_schemas,
)
from thoughtline_sim.wires import chat_styles, messages
from thoughtline_sim.wires import responses as responses_wires
from thoughtline_sim.wires.chat import OLLAMA
from thoughtline_sim.wires.command_code import COMMAND_CODE
from thoughtline_sim.wires.converse import converse_wire, invoke_wire
from thoughtline_sim.wires.interactions import INTERACTIONS
from thoughtline_sim.wires.messages import messages_wire


def _unless_disabled(exchange: SimExchange) -> bool:
    """GLM, Qwen, vLLM: each has its own switch."""
    body = exchange.body
    kwargs = as_object(body.get("chat_template_kwargs"))
    is_off = as_object(body.get("thinking")).get("type") == "disabled" or body.get("reasoning_effort") == "none"
    return not (is_off or body.get("enable_thinking") is False or kwargs.get("enable_thinking") is False)


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
    # A client without quota for a Gemini 3 model is assumed to have no access to it.
    (
        r"/v1internal:retrieveUserQuota$",
        {"buckets": [{"modelId": name, "remainingFraction": 1} for name in _CODE_ASSIST_MODELS]},
    ),
    (r"/v1internal:fetchAvailableModels$", {"models": {name: {} for name in _CODE_ASSIST_MODELS}}),
    (r"/v1internal:\w+$", {}),
)
"""Other requests of Gemini CLI and Antigravity: with a tier and a project they skip their setup."""

_CONVERSE_API = Api(
    r"/model/[^/]+/converse(?:-stream)?$",
    converse_wire(bedrock.STYLE),
    bedrock.RULES,
    model_of=model_in_path,
    is_streaming=lambda body, path: path.endswith("-stream"),
)
_INVOKE_API = Api(
    r"/model/[^/]+/invoke(?:-with-response-stream)?$",
    invoke_wire(bedrock.INVOKE_STYLE),
    bedrock.INVOKE_RULES,
    model_of=model_in_path,
    is_streaming=lambda body, path: path.endswith("-stream"),
    is_thinking=claude_settings.is_thinking,
)
_COMMAND_CODE_API = Api(
    r"/alpha/generate$",
    COMMAND_CODE,
    command_code.RULES,
    model_of=lambda body, path: string(as_object(body.get("params")).get("model")),
    is_streaming=lambda body, path: True,
    is_thinking=lambda exchange: True,
    inside="params",
)
_OLLAMA_API = Api(
    r"/api/chat$",
    OLLAMA,
    (forbidden.ollama_can_think,),
    is_streaming=lambda body, path: body.get("stream") is not False,
    reject=refusals.plain_error,
    is_thinking=forbidden.ollama_thinks,
)
_DEEPSEEK_CHAT = (deepseek.model_known, deepseek.effort_known, deepseek.effort_with_thinking)
_KIMI_CHAT = (presence.kimi_thinking_is_object, presence.kimi_one_switch, presence.kimi_text_not_empty)
_DEEPSEEK_TOOLS = (presence.deepseek_tool_kinds, presence.deepseek_tool_choice)
_GEMINI_SETTINGS = (tool_schemas.gemini_tools, gemini_settings.thinking_fits, asking.gemini_tools_together)
_GEMINI_RULES = (*_GEMINI_SETTINGS, gemini.generate_is_signed, gemini.results_follow_code)
_CLAUDE_RULES = (
    asking.claude_tool_kinds,
    tool_schemas.claude_tools,
    claude_settings.sampling_fits,
    asking.claude_results,
)
_OPENAI_RESPONSES = responses_api(
    responses_wires.OPENAI, tool_schemas.openai_responses_tools, *responses.OPENAI_RULES, has_websocket=True
)
_META_RULES = (switches.meta_always_thinks, switches.meta_forces_no_tool)
_KIMI_RULES = (kimi.thinking_can_be_off, kimi.sampling_fixed, kimi.forced_tool)


def _published(publisher: str, api: Api) -> Api:
    """An API under Vertex's URLs: with a project and a location, or with neither in express mode."""
    place = r"^/v1(?:beta1)?(?:/projects/[^/]+/locations/[a-z0-9-]+)?/publishers/"
    return api._replace(path=place + publisher + api.path)


def _raw_predict() -> tuple[Api, Api]:
    """Claude on Vertex: the URL has the model, the body the version and whether to stream."""
    wire = messages_wire(anthropic.STYLE._replace(reply_id=lambda digits: f"msg_vrtx_01{digits[:22]}"))
    api = Api(
        r"/models/[^/:]+:(?:r|streamR)awPredict$",
        wire,
        (anthropic.vertex_members, *_CLAUDE_RULES, *anthropic.RULES),
        model_of=model_in_path,
        reject=refusals.anthropic_error,
        is_thinking=claude_settings.is_thinking,
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
        apis=(chat_api(chat_styles.DEEPSEEK, presence.deepseek_r1_forbids),),
        is_thinking=lambda exchange: True,
    ),
    Simulator(
        "deepseek-v3.2",
        "DeepSeek V3.2: reasoning of the current tool loop must come back",
        ("deepseek-reasoner", "deepseek-chat"),
        reject=refusals.deepseek_error,
        apis=(chat_api(chat_styles.DEEPSEEK, *_DEEPSEEK_TOOLS, presence.deepseek_v3_2_requires),),
        is_thinking=presence.deepseek_is_thinking,
    ),
    Simulator(
        "deepseek",
        "DeepSeek V4: with tools in the request, all reasoning must come back; chat, Anthropic and Responses APIs",
        ("deepseek-v4-pro", "deepseek-flash"),
        reject=refusals.deepseek_error,
        apis=(
            chat_api(chat_styles.DEEPSEEK, *_DEEPSEEK_CHAT, *_DEEPSEEK_TOOLS, presence.deepseek_chat_requires),
            *messages_api(
                messages.PLAIN,
                deepseek.effort_with_thinking,
                presence.deepseek_tool_choice,
                presence.deepseek_requires(presence.has_block, "content[].thinking"),
            ),
            responses_api(
                responses_wires.DEEPSEEK,
                deepseek.model_known,
                *_DEEPSEEK_TOOLS,
                presence.deepseek_calls_before_outputs,
                presence.deepseek_requires(presence.has_item, "reasoning_text"),
            )._replace(is_thinking=deepseek.responses_think),
        ),
        is_thinking=presence.deepseek_is_thinking,
        profiles=("tools", "toolcalls", "nonblank", "reseller"),
    ),
    Simulator(
        "kimi",
        "Moonshot Kimi: reasoning of every tool call must come back; call ids collide; chat and Anthropic APIs",
        ("kimi-k2.6", "kimi-k3", "kimi-k2.7-code", "kimi-k2-thinking"),
        reject=refusals.typed_error,
        apis=(
            chat_api(
                chat_styles.KIMI,
                *_KIMI_CHAT,
                *_KIMI_RULES,
                presence.calls_require(presence.has_field, presence.kimi_missing),
            ),
            *messages_api(
                messages.KIMI, *_KIMI_RULES, presence.calls_require(presence.has_block, presence.kimi_missing)
            ),
        ),
        is_thinking=kimi.kimi_is_thinking,
    ),
    Simulator(
        "mimo",
        "Xiaomi MiMo: like Kimi, with its sentence hidden in `param`; chat and Anthropic APIs",
        ("mimo-v2.5-pro", "mimo-v2-flash"),
        reject=refusals.mimo_error,
        apis=(
            chat_api(chat_styles.MIMO, presence.calls_require(presence.has_field, presence.mimo_missing)),
            *messages_api(messages.PLAIN, presence.calls_require(presence.has_block, presence.mimo_missing)),
        ),
        is_thinking=presence.mimo_is_thinking,
    ),
    Simulator(
        "glm",
        "Zhipu GLM: takes any reasoning and none; clears earlier turns unless asked not to, or on the Coding Plan",
        ("glm-5", "glm-5.3", "glm-4.7"),
        apis=(chat_api(chat_styles.GLM, switches.glm_can_be_off, switches.glm_efforts, switches.glm_clears_thinking),),
        is_thinking=_unless_disabled,
    ),
    Simulator(
        "minimax",
        "MiniMax: `<think>` in the text, or `reasoning_split`; M3 thinks unasked on chat alone; three APIs",
        ("MiniMax-M3", "MiniMax-M3.1", "MiniMax-M2"),
        apis=(
            chat_api(chat_styles.MINIMAX, switches.minimax_can_be_off),
            *messages_api(messages.PLAIN, switches.minimax_can_be_off, reject=refusals.anthropic_error),
            responses_api(responses_wires.DEEPSEEK, switches.minimax_can_be_off),
        ),
        is_thinking=switches.minimax_thinks,
    ),
    Simulator(
        "qwen",
        "Qwen on DashScope: takes any reasoning and none; reads earlier turns with `preserve_thinking`",
        ("qwen3.7-max", "qwen3.8-max"),
        apis=(
            chat_api(
                chat_styles.QWEN, switches.qwen_streams_thinking, switches.qwen_one_limit, switches.qwen_preserves
            ),
        ),
        is_thinking=_unless_disabled,
    ),
    Simulator(
        "anthropic",
        "Anthropic Messages: signed thinking, by the model's name; profiles for the kinds of account",
        ("claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-2"),
        reject=refusals.anthropic_error,
        apis=messages_api(
            anthropic.STYLE,
            anthropic.thread_known,
            *_CLAUDE_RULES,
            *anthropic.RULES,
        ),
        is_thinking=claude_settings.is_thinking,
        profiles=("bound", "older", "oauth", "classic", "adaptive"),
    ),
    Simulator(
        "bedrock",
        "Bedrock: Converse, and InvokeModel for Claude, signed or not; Nova and DeepSeek-R1, which want none back",
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-2-lite-v1:0", "openai.gpt-oss-120b-1:0"),
        reject=refusals.bedrock_error,
        apis=(_CONVERSE_API, _INVOKE_API),
        is_thinking=bedrock.is_thinking,
        profiles=("bound", "older", "first-binding", "classic", "adaptive"),
    ),
    Simulator(
        "gemini",
        "Gemini 3: signed function calls; generateContent in both framings, Interactions, the OpenAI-compatible API",
        ("gemini-3-pro-preview", "gemini-3.7-flash"),
        reject=refusals.gemini_error,
        apis=(
            *generate_api(*_GEMINI_RULES),
            chat_api(chat_styles.GOOGLE, gemini.chat_is_signed, reject=refusals.gemini_chat_error),
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
        apis=code_assist_api(
            *(gemini.for_gemini(rule) for rule in _GEMINI_SETTINGS),
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
            *(_published("google", api) for api in generate_api(*_GEMINI_RULES)),
            *(_published("anthropic", api) for api in _raw_predict()),
        ),
        profiles=("bound", "older", "oauth", "classic", "adaptive"),
    ),
    Simulator(
        "gemini-2.5",
        "Gemini 2.5: unchecked signatures; what came back is in /_stats",
        ("gemini-2.5-pro", "gemini-2.5-flash"),
        reject=refusals.gemini_error,
        apis=(
            *generate_api(*_GEMINI_SETTINGS),
            chat_api(chat_styles.GOOGLE, reject=refusals.gemini_chat_error),
        ),
    ),
    Simulator(
        "openai",
        "OpenAI: Responses, stored or not, with pairs and ciphertext; chat, where reasoning has no place",
        ("gpt-5", "gpt-5.1", "gpt-5.6-sol", "gpt-6-astra", "gpt-6.1-sol", "o4-mini"),
        apis=(
            _OPENAI_RESPONSES,
            chat_api(chat_styles.OPENAI, tool_schemas.openai_chat_tools, *responses.CHAT_RULES),
        ),
        is_thinking=openai_models.thinks,
        profiles=("default", "unchecked", "unverified"),
    ),
    Simulator(
        "azure",
        "Azure OpenAI: like OpenAI; ciphertext of another resource is refused",
        ("gpt-5-mini",),
        apis=(
            _OPENAI_RESPONSES,
            chat_api(chat_styles.OPENAI, tool_schemas.openai_chat_tools, *responses.CHAT_RULES),
        ),
    ),
    Simulator(
        "xai",
        "xAI: Responses with ciphertext, which must be xAI's own; chat, which from Grok 4 on has no field for it",
        ("grok-4.7", "grok-3-mini"),
        reject=refusals.xai_error,
        apis=(
            responses_api(
                responses_wires.XAI,
                asking.xai_tool_kinds,
                switches.xai_parameters,
                responses.xai_summary_given,
                responses.xai_ciphertext_opens,
                has_websocket=True,
            ),
            chat_api(chat_styles.XAI, switches.xai_parameters),
        ),
        is_thinking=switches.xai_thinks,
    ),
    Simulator(
        "openrouter",
        "OpenRouter: `reasoning_details`; the rules of the model's own provider, errors wrapped",
        ("anthropic/claude-sonnet-4.5", "google/gemini-3-pro-preview", "openai/gpt-5", "deepseek/deepseek-v4-pro"),
        apis=(chat_api(openrouter.STYLE, openrouter.upstream_agrees),),
        is_thinking=openrouter.is_thinking,
    ),
    Simulator(
        "mistral",
        "Mistral: thinking chunks in content; any unknown member is a 422",
        ("magistral-medium-latest", "mistral-small-latest"),
        reject=refusals.mistral_error,
        apis=(chat_api(chat_styles.MISTRAL, forbidden.mistral_extra_keys, switches.mistral_effort),),
        is_thinking=switches.mistral_thinks,
    ),
    Simulator(
        "groq",
        "Groq: `reasoning`; refuses unknown members of a message",
        ("openai/gpt-oss-120b",),
        reject=refusals.typed_error,
        apis=(chat_api(chat_styles.GROQ, forbidden.groq_properties, switches.groq_effort),),
    ),
    Simulator(
        "cerebras",
        "Cerebras: `reasoning`; refuses unknown members of a message, with a flat error body",
        ("gpt-oss-120b", "zai-glm-4.7"),
        reject=refusals.cerebras_error,
        apis=(chat_api(chat_styles.CEREBRAS, forbidden.cerebras_properties),),
    ),
    Simulator(
        "ollama",
        "Ollama: its own chat with `thinking`, and the OpenAI-compatible API with `reasoning`",
        ("qwen3:14b", "llama3.2"),
        apis=(_OLLAMA_API, chat_api(chat_styles.OLLAMA, forbidden.ollama_effort_known)),
        profiles=("default", "0.17"),
        others=((r"/api/show$", templates.ollama_show(forbidden.ollama_model_thinks)),),
    ),
    Simulator(
        "vllm",
        "vLLM: `reasoning` out, either name in; the model's template reads it or not, and raises as a 500",
        ("Qwen/Qwen3-32B", "Qwen/Qwen3.8-35B", "openai/gpt-oss-120b"),
        apis=(chat_api(chat_styles.VLLM, templates.vllm_renders),),
        is_thinking=_unless_disabled,
        others=((r"/tokenize$", templates.vllm_tokenize),),
    ),
    Simulator(
        "llamacpp",
        "llama.cpp: `reasoning_content`; the profile is the template that is loaded, which `/props` shows",
        ("local",),
        apis=(chat_api(chat_styles.LLAMACPP, templates.llama_renders),),
        is_thinking=_unless_disabled,
        profiles=templates.LOADED,
        others=((r"/props$", templates.llama_props), (r"/apply-template$", templates.llama_apply_template)),
    ),
    Simulator(
        "copilot",
        "GitHub Copilot: `reasoning_text` with `reasoning_opaque`; Responses without store",
        ("claude-sonnet-4.5", "gpt-5.3-codex"),
        reject=refusals.copilot_error,
        apis=(
            chat_api(
                chat_styles.COPILOT,
                switches.copilot_serves("/chat/completions"),
                switches.copilot_effort,
                forbidden.copilot_opaque_opens,
            ),
            responses_api(
                responses_wires.COPILOT,
                switches.copilot_serves("/responses"),
                switches.copilot_input_types,
                *responses.OPENAI_RULES,
            ),
            *messages_api(
                anthropic.STYLE,
                switches.copilot_serves("/v1/messages"),
                switches.copilot_effort,
                *_CLAUDE_RULES,
                *anthropic.RULES,
            ),
        ),
        profiles=("default", "no-items"),
    ),
    Simulator(
        "command-code",
        "Command Code: the AI SDK's stream parts as lines of JSON; reasoning is taken back and never asked for",
        ("deepseek/deepseek-v4-pro", "claude-sonnet-5"),
        reject=refusals.command_code_error,
        apis=(_COMMAND_CODE_API,),
    ),
    Simulator(
        "meta",
        "Meta: Muse Spark always reasons; ciphertext on Responses, redacted blocks on Messages, nothing on chat",
        ("muse-spark",),
        apis=(
            responses_api(responses_wires.OPENAI, *_META_RULES, responses.ciphertext_opens),
            chat_api(chat_styles.OPENAI, *_META_RULES),
            *messages_api(messages.META, *_META_RULES, reject=refusals.anthropic_error),
        ),
        is_thinking=lambda exchange: True,
    ),
)
SIMULATORS: dict[str, Simulator] = {row.name: row for row in _ROWS}
