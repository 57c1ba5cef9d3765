"""APIs as most providers have them, for the rows of the table."""

from __future__ import annotations

import re

from thoughtline_sim.exchange import Api, Reject, Rule, SimExchange
from thoughtline_sim.reading import JsonObject
from thoughtline_sim.rules import asking
from thoughtline_sim.wires.chat import ChatStyle, chat_wire
from thoughtline_sim.wires.generate import CODE_ASSIST, GENERATE, code_assist_thinks, either, thinking_config
from thoughtline_sim.wires.messages import MessagesStyle, messages_wire
from thoughtline_sim.wires.responses import ResponsesStyle, responses_wire

_MODEL = re.compile(r"/models/([^/:]+):\w+$|/model/([^/]+)/[\w-]+$")


def chat_api(style: ChatStyle, *rules: Rule, reject: Reject | None = None) -> Api:
    return Api(r"/chat/completions$", chat_wire(style), (asking.chat_results, *rules), reject=reject)


def messages_api(style: MessagesStyle, *rules: Rule, reject: Reject | None = None) -> tuple[Api, Api]:
    """The API and its token counter, which applies the same rules."""
    api = Api(r"/messages$", messages_wire(style), rules, reject=reject)
    return api, api._replace(path=r"/messages/count_tokens$", counts=lambda tokens: {"input_tokens": tokens})


def responses_api(style: ResponsesStyle, *rules: Rule, has_websocket: bool = False) -> Api:
    return Api(r"/responses$", responses_wire(style), rules, has_websocket=has_websocket)


def model_in_path(body: JsonObject, path: str) -> str:
    found = _MODEL.search(path)
    return (found.group(1) or found.group(2)) if found else ""


def google_api(models: str, api: Api) -> tuple[Api, Api]:
    """An API of Google's methods, whole and streamed, and its token counter."""
    api = api._replace(
        path=models + r":(?:g|streamG)enerateContent$", is_streaming=lambda body, path: ":stream" in path
    )
    return api, api._replace(path=models + r":countTokens$", counts=lambda tokens: {"totalTokens": tokens})


def generate_api(*rules: Rule) -> tuple[Api, Api]:
    def is_thinking(exchange: SimExchange) -> bool:
        return either(thinking_config(exchange), "thinkingBudget", "thinking_budget") != 0

    return google_api(r"/models/[^/:]+", Api("", GENERATE, rules, model_of=model_in_path, is_thinking=is_thinking))


def code_assist_api(*rules: Rule) -> tuple[Api, Api]:
    return google_api(r"/v1internal", Api("", CODE_ASSIST, rules, is_thinking=code_assist_thinks, inside="request"))
