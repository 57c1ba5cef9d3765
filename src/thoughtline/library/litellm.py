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
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

import msgspec
from litellm.integrations.custom_logger import CustomLogger

from thoughtline.destinations.catalogue import listed
from thoughtline.destinations.credentials import account_of, tenant_of
from thoughtline.destinations.request_url import AskedAddress, server_of
from thoughtline.engine.capture import log_problem
from thoughtline.formats import USUAL
from thoughtline.library.decoded import json_of
from thoughtline.library.door import ReplayLine as Line
from thoughtline.library.exchange import AsyncExchange, SyncExchange
from thoughtline.providers import canonical_name
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.records import digest, digest_of

Json = dict[str, Any]

MAX_UNDER_WAY = 10_000
"""Calls whose answer has not come. Those that failed leave nothing behind but this."""

LOGGER_SECONDS = 5.0
"""How long a call whose history lacks a thought waits for a stream before it. LiteLLM gives the whole of a stream only
to its loggers: of a call without a loop behind an event loop of its own for each chunk, in a pool of threads."""

_PASSED_ON = ("tools", "thinking", "reasoning_effort", "enable_thinking", "extra_body", "user", "safety_identifier")
"""Members that say whether a model thinks, and for which end user: contracts and the rule of identity ask for them."""


class _ChatRequest(NamedTuple):
    """A call, as a request of chat completions."""

    destination: Destination
    identity: Identity
    body: bytes
    opening: bytes
    """What its user said first: the calls of one conversation begin alike."""

    @property
    def conversation(self) -> tuple[str, bytes]:
        return self.identity.tenant, self.opening


class _CallName(NamedTuple):
    """A call by its id, which a client may choose, and by the virtual key that it was made with, which it can't."""

    id: str
    virtual_key: str


class _Call(NamedTuple):
    """A call under way. `messages` is a digest of what is visible of them. `over` is done when its answer is
    remembered, or is not waited for any longer."""

    exchange: AsyncExchange | SyncExchange
    conversation: tuple[str, bytes]
    messages: bytes
    is_stream: bool
    over: Future[None]


class _UnderWay:
    """The calls whose answers have not come, oldest first. One name may stand for several: clients repeat ids."""

    def __init__(self) -> None:
        self._calls: OrderedDict[_CallName, list[_Call]] = OrderedDict()

    def __iter__(self) -> Iterator[_Call]:
        for calls in list(self._calls.values()):
            yield from list(calls)

    def add(self, kwargs: Json, call: _Call) -> None:
        self._calls.setdefault(_name_of(kwargs), []).append(call)
        while len(self._calls) > MAX_UNDER_WAY:
            self._calls.popitem(last=False)

    def get(self, kwargs: Json) -> _Call | None:
        """The call of an answer, by its id, virtual key and messages; None where that may be several."""
        calls = self._calls.get(_name_of(kwargs), [])
        messages = _digest_of_messages(kwargs)
        own = [call for call in calls if messages == call.messages] if messages else calls
        is_one = len({(call.conversation, call.messages) for call in own}) == 1
        return own[-1] if is_one else None

    def take(self, kwargs: Json) -> _Call | None:
        """The same, which is under way no longer. Of a call that was tried again, all tries."""
        found, name = self.get(kwargs), _name_of(kwargs)
        if found is not None:
            left = [one for one in self._calls[name] if one.messages != found.messages]
            if left:
                self._calls[name] = left
            else:
                del self._calls[name]
        return found


class Callback(CustomLogger):  # type: ignore[misc]  # LiteLLM is no dependency of ours
    """Over the store that is the gateway's own, or over a line."""

    def __init__(self, line: Line | None = None) -> None:
        super().__init__()
        self._line = line
        self._under_way = _UnderWay()

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
        if self._under_way.get(kwargs) is not None or not isinstance(sent, dict):
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
        calls = [call for call in self._under_way if call.is_stream and call.conversation == request.conversation]
        return [call.over for call in calls if not call.over.done()]

    def _keep(self, kwargs: Json, request: _ChatRequest, exchange: AsyncExchange | SyncExchange) -> None:
        messages = _digest_of_body(request.body)
        is_stream = bool(kwargs.get("stream"))
        self._under_way.add(kwargs, _Call(exchange, request.conversation, messages, is_stream, Future()))

    # --- after it -----------------------------------------------------------------------------------------------------

    async def async_post_call_success_deployment_hook(
        self, request_data: Json, response: Any, call_type: object
    ) -> None:
        await self._remember(request_data, _whole(response))

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: object, response: Any, request_data: Json
    ) -> AsyncIterator[Any]:
        call = self._under_way.take(request_data)
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
        call = self._under_way.get(kwargs)
        if call is not None and isinstance(call.exchange, AsyncExchange) and body:
            call.exchange.read(body)
            await call.exchange.end()
            self._settle(kwargs)

    def _remember_sync(self, kwargs: Json, body: bytes) -> None:
        call = self._under_way.get(kwargs)
        if call is not None and isinstance(call.exchange, SyncExchange) and body:
            call.exchange.read(body)
            call.exchange.end()
            self._settle(kwargs)

    def _settle(self, kwargs: Json) -> None:
        call = self._under_way.take(kwargs)
        if call is not None and call.over.set_running_or_notify_cancel():
            call.over.set_result(None)


def _give_up(streams: list[Future[None]]) -> None:
    """A caller has left a stream before its end: wait for such a stream only once."""
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
        row = listed().get(name)
        if not messages or name in _TRANSLATED:
            return None
        model = rest if rest and canonical_name(prefix) == name else model
        base = str(kwargs.get("api_base") or kwargs.get("base_url") or (row.base_url if row is not None else ""))
        server = server_of(AskedAddress(USUAL.name, base.rstrip("/").removesuffix("/chat/completions")))
        key = str(kwargs.get("api_key") or "")
        destination = Destination(server.provider, server.endpoint, model, USUAL.name, account_of(key))
        members = {member: kwargs[member] for member in _PASSED_ON if kwargs.get(member) is not None}
        metadata = _metadata(kwargs)
        if end_user := metadata.get("user_api_key_end_user_id"):
            members.setdefault("user", str(end_user))
        if user_id := metadata.get("user_id"):
            members["metadata"] = {"user_id": str(user_id)}
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
    calls: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="tool_calls")


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
    """What the proxy says of a call; after it, loggers get that inside of `litellm_params`."""
    inner = kwargs.get("litellm_params") or {}
    given = (
        inner.get("metadata"),
        inner.get("litellm_metadata"),
        kwargs.get("metadata"),
        kwargs.get("litellm_metadata"),
    )
    return {name: value for one in given if isinstance(one, dict) for name, value in one.items()}


def _virtual_key(kwargs: Json) -> str:
    """The hash of the proxy's key that a call was made with; empty without a proxy."""
    metadata = _metadata(kwargs)
    return str(metadata.get("user_api_key_hash") or metadata.get("user_api_key") or "")


def _tenant(kwargs: Json, key: str) -> str:
    """The virtual key; without one the key that goes up."""
    virtual = _virtual_key(kwargs)
    return tenant_of(f"litellm {virtual}") if virtual else tenant_of(key)


def _name_of(kwargs: Json) -> _CallName:
    return _CallName(str(kwargs.get("litellm_call_id")), _virtual_key(kwargs))


def _digest_of_messages(kwargs: Json) -> bytes:
    """Of a call as a hook gets it; empty where it has no messages that can be read."""
    try:
        return _digest_of_body(json_of({"messages": kwargs["messages"]})) if kwargs.get("messages") else b""
    except (TypeError, ValueError, msgspec.MsgspecError):
        return b""


def _digest_of_body(body: bytes) -> bytes:
    """Of what is visible of the messages: LiteLLM adds members that hold nothing, and we put reasoning back."""
    messages = msgspec.json.decode(body, type=_Asking).messages
    return digest_of(
        *(part for one in messages for part in (one.role.encode(), *map(_given, (one.content, one.calls))))
    )


def _given(raw: msgspec.Raw) -> bytes:
    return b"" if bytes(raw) == b"null" else bytes(raw)


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
