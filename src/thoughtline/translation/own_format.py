"""Adapts a request for a server that speaks the client's own format but lacks some of its tools.

Nothing is translated: whatever the server accepts is forwarded unchanged. A namespace is flattened, a free-text tool
becomes a function, and a tool that the provider would run is left out, with everything in the history that refers to
it. The gateway maps the calls back to the client's tools.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode_list,
    elements,
    encode,
    is_given,
    members,
    object_of,
    set_members,
)
from thoughtline.formats.openai_responses.elements import AGENT_MESSAGE, agent_words, encode_message
from thoughtline.formats.openai_responses.options import TOOL_ITEMS, TOOL_SEARCH, decode_tools, kind_of
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.translation.searches import CALL, OUTPUT, searched
from thoughtline.translation.tools import (
    NO_NAMES,
    ToolNames,
    free_text_function,
    left_out,
    names_for,
    wrapped_text,
)
from thoughtline.values.errors import DecodeError
from thoughtline.values.items import Text
from thoughtline.values.options import BuiltInTool, CustomTool, FunctionTool, MissingTools, ToolRange
from thoughtline.values.turns import FormatName

_CALL_ITEMS = ("function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
_OF_A_TOOL = ("_call_output", "_call", "_output")


class Adapted(Struct, frozen=True, gc=False):
    """A body that the server accepts, what was lost, and the names of its tools."""

    body: bytes
    findings: tuple[Finding, ...] = ()
    names: ToolNames = NO_NAMES


def adapt(body: bytes, format: FormatName, contract: Contract, missing: MissingTools) -> Adapted:
    """The request as this server accepts it; the client's own bytes if it needs no change or can't be read."""
    shapes = FORMATS[format].tool_shapes
    if shapes == "functions" or missing == "pass_on" or _takes_all(contract.tools):
        return Adapted(body)
    change = _typed if shapes == "typed" else _namespaces
    try:
        return change(body, contract.tools, missing)
    except (DecodeError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Adapted(body)


def _takes_all(tools: ToolRange) -> bool:
    return tools.has == ("*",) and not tools.lacks


# --- Messages ---------------------------------------------------------------------------------------------------------


def _typed(body: bytes, takes: ToolRange, missing: MissingTools) -> Adapted:
    known = members(body)
    tools = _list(known.get("tools", NULL))
    lost = [
        at for at, tool in enumerate(tools) if (kind := _type(tool)) not in ("", "custom") and not takes.takes(kind)
    ]
    if not lost:
        return Adapted(body)
    findings = tuple(left_out(_type(tools[at]), f"/tools/{at}", missing) for at in lost)
    kept = [tool for at, tool in enumerate(tools) if at not in lost]
    changes: list[tuple[str, bytes | None]] = [("tools", array(kept) if kept else None)]
    choice = known.get("tool_choice", NULL)
    if is_given(choice) and (not kept or _name(choice) in {_name(tools[at]) for at in lost}):
        changes.append(("tool_choice", None))
    return Adapted(set_members(body, changes), findings)


# --- Responses --------------------------------------------------------------------------------------------------------


def _namespaces(body: bytes, takes: ToolRange, missing: MissingTools) -> Adapted:
    known = members(body)
    raws = _list(known.get("tools", NULL))
    conversation = known.get("input", NULL)
    elements_in = elements(conversation) if bytes(conversation)[:1] == b"[" else []
    offers = [(f"/tools/{at}", raw) for at, raw in enumerate(raws)]
    for at, element in enumerate(elements_in):
        if kind_of(element) in TOOL_ITEMS and not takes.takes("tool_search"):
            inner = _list(members(element).get("tools", NULL))
            offers += [(f"/input/{at}/tools/{number}", one) for number, one in enumerate(inner)]
    work = _Responses(takes, missing, offers)
    tools = [one for place, raw in offers for one in work.tool(place, raw)]
    items = [work.element(at, raw) for at, raw in enumerate(elements_in)]
    changes: list[tuple[str, bytes | None]] = []
    if [bytes(one) for one in tools] != [bytes(one) for one in raws]:
        changes.append(("tools", array(dict.fromkeys(map(bytes, tools))) if tools else None))
    if any(item is not raw for item, raw in zip(items, elements_in, strict=True)):
        changes.append(("input", array(item for item in items if item is not None)))
    choice = known.get("tool_choice", NULL)
    if (chosen := work.choice(choice, tools)) is not choice:
        changes.append(("tool_choice", chosen and bytes(chosen)))
    return Adapted(set_members(body, changes) if changes else body, tuple(work.findings), work.names)


class _Responses:
    """The state while a Responses request is adapted."""

    def __init__(self, takes: ToolRange, missing: MissingTools, offers: list[tuple[str, Raw]]) -> None:
        self._takes = takes
        self._missing = missing
        tools = decode_tools((), tuple(offers))
        if takes.takes("namespace"):
            tools = tuple(tool for tool in tools if isinstance(tool, BuiltInTool) or tool.namespace is None)
        if takes.takes(TOOL_SEARCH):
            tools = tuple(tool for tool in tools if not (isinstance(tool, FunctionTool) and tool.is_search))
        self._named = [tool for tool in tools if isinstance(tool, (FunctionTool, CustomTool))]
        self.names = names_for(tools, opens_custom=not takes.takes("custom"))
        self.findings: list[Finding] = []

    def tool(self, place: str, raw: Raw, namespace: str | None = None) -> list[Raw]:
        """One tool of the client as the server accepts it."""
        kind = _type(raw)
        if kind == "function":
            return [self._renamed(raw, namespace)]
        if not kind or self._takes.takes(kind):
            return [raw]
        if kind == "namespace" and namespace is None:
            inner = enumerate(_list(members(raw).get("tools", NULL)))
            return [one for at, tool in inner for one in self.tool(f"{place}/tools/{at}", tool, _name(raw))]
        if kind == "custom":
            return [Raw(self._function(raw, namespace))]
        if kind == TOOL_SEARCH and self.names.search is not None:
            changes = [("type", b'"function"'), ("execution", None), ("name", encode(self.names.search))]
            return [Raw(set_members(raw, changes))]
        self.findings.append(left_out(kind, place, self._missing))
        return []

    def _renamed(self, raw: Raw, namespace: str | None) -> Raw:
        if namespace is None:
            return raw
        return Raw(set_members(raw, [("name", encode(self.names.of_call(_name(raw), namespace)))]))

    def _function(self, raw: Raw, namespace: str | None) -> bytes:
        known = members(raw)
        description = msgspec.json.decode(known.get("description", NULL), type=str | None)
        grammar = known.get("format", NULL)
        name = self.names.of_call(_name(raw), namespace)
        tool = free_text_function(name, description, grammar if is_given(grammar) else None)
        return object_of(
            [
                ("type", b'"function"'),
                ("name", encode(tool.name)),
                ("description", encode(tool.description)),
                ("parameters", tool.parameters),
                ("strict", b"false"),
            ]
        )

    def element(self, at: int, raw: Raw) -> Raw | None:
        """One element of the conversation; None if the server has no kind for it."""
        kind = kind_of(raw)
        if kind in _CALL_ITEMS:
            return self._call(kind, raw)
        if kind in (CALL, *TOOL_ITEMS) and not self._takes.takes("tool_search"):
            return self._search(kind, raw)
        if kind == AGENT_MESSAGE and not self._takes.takes(kind):
            return self._agent_message(at, raw)
        tool = next((kind.removesuffix(end) for end in _OF_A_TOOL if kind.endswith(end)), "")
        if not tool or self._takes.takes(tool):
            return raw
        self.findings.append(
            Finding("untranslatable", f"/input/{at}", f"the upstream knows no {kind}: it is left out", "")
        )
        return None

    def _search(self, kind: str, raw: Raw) -> Raw | None:
        """A tool search becomes a call of the function that replaces it; the tools it found are offered."""
        found = searched(raw, self.names) if kind in (CALL, OUTPUT) else None
        if found is None:
            return None
        called = [("type", b'"function_call"'), ("call_id", encode(found.call.id)), ("name", encode(found.call.name))]
        if kind == CALL:
            return Raw(object_of([*called, ("arguments", encode(found.call.arguments))]))
        return Raw(object_of([("type", b'"function_call_output"'), called[1], ("output", found.result.content)]))

    def _agent_message(self, at: int, raw: Raw) -> Raw | None:
        words, is_whole = agent_words(raw)
        if not is_whole:
            problem = "what is sealed in an agent's message is not sent: only its maker can read it"
            self.findings.append(Finding("untranslatable", f"/input/{at}", problem, ""))
        return Raw(encode_message("user", (Text(words),), None)) if words else None

    def _call(self, kind: str, raw: Raw) -> Raw:
        known = members(raw)
        changes: list[tuple[str, bytes | None]] = []
        if is_given(known.get("namespace", NULL)) and not self._takes.takes("namespace"):
            changes.append(("namespace", None))
            if not kind.endswith("_output"):
                namespace = msgspec.json.decode(known["namespace"], type=str)
                changes.append(("name", encode(self.names.of_call(_name(raw), namespace))))
        if kind.startswith("custom_tool_call") and not self._takes.takes("custom"):
            changes.append(("type", encode(kind.replace("custom_tool_call", "function_call"))))
            if kind == "custom_tool_call":
                text = msgspec.json.decode(known.get("input", NULL), type=str | None) or ""
                changes += [("input", None), ("arguments", encode(wrapped_text(text)))]
        return Raw(set_members(raw, changes)) if changes else raw

    def choice(self, raw: Raw, tools: list[Raw]) -> Raw | None:
        """`tool_choice` with the server's names; none if the tool is not offered."""
        if not is_given(raw):
            return raw
        if not tools:
            return None
        if bytes(raw)[:1] != b"{" or not (self.findings or self.names.client):
            return raw
        known, offered = members(raw), {_name(tool) for tool in tools}
        if _type(raw) == "allowed_tools":
            inner = [self._chosen(one) for one in _list(known.get("tools", NULL))]
            allowed = [
                one for one in inner if _name(one) in offered or (not _name(one) and self._takes.takes(_type(one)))
            ]
            return Raw(set_members(raw, [("tools", array(allowed))])) if allowed else Raw(b'"none"')
        chosen = self._chosen(raw)
        is_there = _name(chosen) in offered if _name(chosen) else self._takes.takes(_type(chosen))
        if is_there:
            return chosen
        self.findings.append(
            Finding(
                "untranslatable", "/tool_choice", "the tool that is to be called is not offered: the model chooses", ""
            )
        )
        return None

    def _chosen(self, raw: Raw) -> Raw:
        """The choice of one tool."""
        name = _name(raw)
        chosen = next((tool for tool in self._named if tool.name == name), None)
        if chosen is None:
            return raw
        upstream = self.names.of_call(name, chosen.namespace)
        if upstream not in self.names.client:
            return raw
        changes = [("type", b'"function"'), ("name", encode(upstream)), ("namespace", None)]
        return Raw(set_members(raw, changes))


def _list(raw: Raw) -> list[Raw]:
    return decode_list(raw) if bytes(raw)[:1] == b"[" else []


def _type(raw: Raw) -> str:
    return kind_of(raw)


class _Named(msgspec.Struct, gc=False):
    name: str = ""


_name_decoder = msgspec.json.Decoder(_Named)


def _name(raw: Raw) -> str:
    try:
        return _name_decoder.decode(raw).name
    except msgspec.ValidationError:
        return ""
