"""A callback for LiteLLM, proxy and SDK: `callbacks: ["thoughtline.litellm.callback"]`.

    before the call        the history as the deployment's model wants it, once LiteLLM has chosen it
    whole answers          remembered before the caller gets them
    streams of the proxy   read chunk by chunk, their end held until the turn is saved
    streams of the SDK     remembered when LiteLLM gives them to its loggers; the next call waits for that

A callback can't send again, so nothing is healed. What LiteLLM translates (Anthropic, Gemini) it carries by itself.
Tenants are the proxy's virtual keys.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

import msgspec
from litellm.integrations.custom_logger import CustomLogger

from thoughtline.catalogue import PROVIDERS
from thoughtline.credentials import account_of, tenant_of
from thoughtline.formats import USUAL
from thoughtline.line import AsyncExchange, Line, SyncExchange
from thoughtline.line.decoded import json_of
from thoughtline.outgoing import AskedAddress, server_of
from thoughtline.providers import canonical_name
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.records import digest
from thoughtline.watching import log_problem

Json = dict[str, Any]

MOST_UNDER_WAY = 10_000
"""Calls whose answer has not come. Those that failed leave nothing behind but this."""

LOGGER_SECONDS = 5.0
"""How long a call whose history lacks a thought waits for a stream before it. LiteLLM gives the whole of a stream only
to its loggers: of a call without a loop behind an event loop of its own for each chunk, in a pool of threads."""

_PASSED_ON = ("tools", "thinking", "reasoning_effort", "enable_thinking", "extra_body")
"""Members that say whether a model thinks: contracts ask for them."""


class _ChatRequest(NamedTuple):
    """A call, as a request of chat completions."""

    destination: Destination
    identity: Identity
    body: bytes
    opening: bytes
    """What its user said first: the calls of one conversation begin alike."""


class _Call(NamedTuple):
    """A call under way. `over` is done when its answer is remembered, or is not waited for any longer."""

    exchange: AsyncExchange | SyncExchange
    conversation: tuple[str, bytes]
    """The tenant and the opening."""
    is_stream: bool
    over: Future[None]


class Callback(CustomLogger):  # type: ignore[misc]  # LiteLLM is no dependency of ours
    """Over the store that is the gateway's own, or over a line."""

    def __init__(self, line: Line | None = None) -> None:
        super().__init__()
        self._line = line
        self._under_way: OrderedDict[str, _Call] = OrderedDict()

    @property
    def line(self) -> Line:
        if self._line is None:
            self._line = Line()
        return self._line

    # --- before the call ----------------------------------------------------------------------------------------------

    async def async_pre_call_deployment_hook(self, kwargs: Json, call_type: object) -> Json | None:
        request = _request_of(kwargs)
        if request is None:
            return None
        streams = self._streams(request)
        exchange = await self.line.begin_for(request.destination, request.identity, request.body)
        if streams and _lacks(exchange):
            await asyncio.wait(map(asyncio.wrap_future, streams), timeout=LOGGER_SECONDS)
            _give_up(streams)
            exchange = await self.line.begin_for(request.destination, request.identity, request.body)
        self._keep(kwargs, request, exchange)
        return None if exchange.body == request.body else {**kwargs, "messages": _messages(exchange)}

    def log_pre_api_call(self, model: str, messages: object, kwargs: Json) -> None:
        """Of a call without a loop, which has no other hook: the request is changed where it stands."""
        sent = (kwargs.get("additional_args") or {}).get("complete_input_dict")
        if kwargs.get("litellm_call_id") in self._under_way or not isinstance(sent, dict):
            return
        request = _request_of({**kwargs, **(kwargs.get("litellm_params") or {}), "messages": sent.get("messages")})
        if request is None:
            return
        streams = self._streams(request)
        exchange = self.line.begin_for_sync(request.destination, request.identity, request.body)
        if streams and _lacks(exchange):
            wait(streams, timeout=LOGGER_SECONDS)
            _give_up(streams)
            exchange = self.line.begin_for_sync(request.destination, request.identity, request.body)
        self._keep(kwargs, request, exchange)
        if exchange.body != request.body:
            sent["messages"] = _messages(exchange)

    def _streams(self, request: _ChatRequest) -> list[Future[None]]:
        """What a request lacks may be in a stream that LiteLLM's loggers are about to get: those of its conversation
        are waited for. They are named before the store is asked, or one that ends meanwhile is missed by both."""
        whose = request.identity.tenant, request.opening
        calls = [call for call in list(self._under_way.values()) if call.is_stream and call.conversation == whose]
        return [call.over for call in calls if not call.over.done()]

    def _keep(self, kwargs: Json, request: _ChatRequest, exchange: AsyncExchange | SyncExchange) -> None:
        whose = request.identity.tenant, request.opening
        call = _Call(exchange, whose, bool(kwargs.get("stream")), Future())
        self._under_way[str(kwargs.get("litellm_call_id"))] = call
        while len(self._under_way) > MOST_UNDER_WAY:
            self._under_way.popitem(last=False)

    # --- after it -----------------------------------------------------------------------------------------------------

    async def async_post_call_success_deployment_hook(
        self, request_data: Json, response: Any, call_type: object
    ) -> None:
        await self._remember(request_data, _whole(response))

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: object, response: Any, request_data: Json
    ) -> AsyncIterator[Any]:
        call = self._under_way.pop(str(request_data.get("litellm_call_id")), None)
        exchange = call.exchange if call is not None else None
        try:
            async for chunk in response:
                if isinstance(exchange, AsyncExchange) and exchange.hear(chunk):
                    await exchange.save()
                yield chunk
            if isinstance(exchange, AsyncExchange):
                await exchange.end()
        finally:
            if exchange is not None:
                exchange.cut()

    async def async_log_success_event(
        self, kwargs: Json, response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """The whole of a stream."""
        await self._remember(kwargs, _whole(response_obj))

    def log_post_api_call(self, kwargs: Json, response_obj: object, start_time: object, end_time: object) -> None:
        """What came of a call without a loop; of a stream nothing yet."""
        answer = kwargs.get("original_response")
        if isinstance(answer, str) and answer.startswith("{"):
            self._remember_sync(kwargs, answer.encode())

    def log_success_event(self, kwargs: Json, response_obj: Any, start_time: object, end_time: object) -> None:
        """The whole of a stream without a loop, in a thread of LiteLLM's."""
        self._remember_sync(kwargs, _whole(response_obj))

    async def _remember(self, kwargs: Json, body: bytes) -> None:
        call = self._under_way.get(str(kwargs.get("litellm_call_id")))
        if call is not None and isinstance(call.exchange, AsyncExchange) and body:
            call.exchange.read(body)
            await call.exchange.end()
            self._settle(kwargs)

    def _remember_sync(self, kwargs: Json, body: bytes) -> None:
        call = self._under_way.get(str(kwargs.get("litellm_call_id")))
        if call is not None and isinstance(call.exchange, SyncExchange) and body:
            call.exchange.read(body)
            call.exchange.end()
            self._settle(kwargs)

    def _settle(self, kwargs: Json) -> None:
        call = self._under_way.pop(str(kwargs.get("litellm_call_id")), None)
        if call is not None and call.over.set_running_or_notify_cancel():
            call.over.set_result(None)


def _give_up(streams: list[Future[None]]) -> None:
    """Somebody has left a stream before its end: it is waited for once."""
    for over in streams:
        over.cancel()


def _lacks(exchange: AsyncExchange | SyncExchange) -> bool:
    return bool(exchange.outcome.missing or exchange.outcome.blank)


def _request_of(kwargs: Json) -> _ChatRequest | None:
    """What goes to a server of chat completions; nothing else is ours."""
    try:
        messages, model = kwargs.get("messages"), str(kwargs.get("model") or "")
        prefix, _, rest = model.partition("/")
        name = canonical_name(str(kwargs.get("custom_llm_provider") or (prefix if rest else "")))
        row = PROVIDERS.get(name)
        if not messages or name in _TRANSLATED:
            return None
        model = rest if rest and canonical_name(prefix) == name else model
        base = str(kwargs.get("api_base") or kwargs.get("base_url") or (row.base_url if row is not None else ""))
        server = server_of(AskedAddress(USUAL.name, base.rstrip("/").removesuffix("/chat/completions")))
        key = str(kwargs.get("api_key") or "")
        destination = Destination(server.provider, server.endpoint, model, USUAL.name, account_of(key))
        members = {member: kwargs[member] for member in _PASSED_ON if kwargs.get(member) is not None}
        body = json_of({"model": model, "messages": messages, **members})
        return _ChatRequest(destination, Identity(_tenant(kwargs, key), _session(kwargs)), body, _opening(body))
    except Exception as problem:
        log_problem("a call of LiteLLM could not be read", problem)
        return None


def _opening(body: bytes) -> bytes:
    messages = msgspec.json.decode(body, type=_Asking).messages
    return digest(next((bytes(one.content) for one in messages if one.role == "user"), b""))


class _Saying(msgspec.Struct, gc=False):
    role: str = ""
    content: msgspec.Raw = msgspec.Raw(b"")


class _Asking(msgspec.Struct, gc=False):
    messages: list[_Saying]


_TRANSLATED = frozenset(
    {
        *("anthropic", "bedrock", "bedrock_converse", "cohere", "cohere_chat", "gemini", "ollama", "ollama_chat"),
        *("huggingface", "replicate", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta", "watsonx"),
    }
)
"""Names of LiteLLM for providers that it asks in another format: read from its code, 2026-11."""


def _metadata(kwargs: Json) -> Json:
    return {**(kwargs.get("metadata") or {}), **(kwargs.get("litellm_metadata") or {})}


def _tenant(kwargs: Json, key: str) -> str:
    """The virtual key, of which the proxy tells the hash; without one the key that goes up."""
    metadata = _metadata(kwargs)
    virtual = metadata.get("user_api_key_hash") or metadata.get("user_api_key")
    return tenant_of(f"litellm {virtual}") if virtual else tenant_of(key)


def _session(kwargs: Json) -> str | None:
    metadata = _metadata(kwargs)
    found = kwargs.get("litellm_session_id") or metadata.get("litellm_session_id") or metadata.get("session_id")
    return str(found) if found else None


def _messages(exchange: AsyncExchange | SyncExchange) -> list[Any]:
    messages: list[Any] = msgspec.json.decode(exchange.body)["messages"]
    return messages


def _whole(response: Any) -> bytes:
    """A whole answer; empty if it is something else, such as a stream."""
    if type(response).__name__ != "ModelResponse":
        return b""
    try:
        return json_of(response.model_dump(mode="json", exclude_none=True))
    except (TypeError, ValueError, msgspec.MsgspecError) as problem:
        log_problem("an answer of LiteLLM could not be read", problem)
        return b""


callback = Callback()
