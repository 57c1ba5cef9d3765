"""`thoughtline audit`: whatever it is given, findings name the line of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.managed_gateways import TOKEN, Managed, managed
from thoughtline.cli import main
from thoughtline.settings import DebugSettings, Settings

Json = dict[str, Any]
CALL: Json = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
SHELL: Json = {"type": "function", "function": {"name": "shell", "parameters": {"type": "object"}}}
ID = "0123456789abcdef"


def chat(reasoning: str | None) -> Json:
    turn: Json = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    if reasoning is not None:
        turn["reasoning_content"] = reasoning
    messages = [{"role": "user", "content": "hi"}, turn, {"role": "tool", "tool_call_id": "c1", "content": "x"}]
    return {"model": "deepseek-v4-pro", "tools": [SHELL], "messages": messages}


class Audited:
    """What the command says of a file."""

    def __init__(self, folder: Path, output: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "given.jsonl"
        self._output = output

    def run(self, text: str, *more: str) -> tuple[int, list[Json]]:
        self.file.write_text(text)
        status = main(["audit", str(self.file), "--json", *more])
        printed = self._output.readouterr()
        self.errors = printed.err
        return status, json.loads(printed.out)["findings"] if printed.out else []


@pytest.fixture
def audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audited:
    return Audited(tmp_path, capsys)


def lines(*values: Json) -> str:
    """As clients write them: without blanks."""
    return "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)


def test_a_request(audited: Audited) -> None:
    """With line and column of the turn."""
    text = json.dumps(chat(None), indent=1)
    status, findings = audited.run(text)
    assert (status, [finding["rule"] for finding in findings]) == (1, ["missing"])
    line = text.splitlines()[findings[0]["line"] - 1]
    assert line[findings[0]["column"] - 1] == "{"
    assert text.splitlines()[findings[0]["line"]].strip() == '"role": "assistant",'


def test_a_clean_request(audited: Audited) -> None:
    """Nothing to say, and status 0."""
    assert audited.run(json.dumps(chat("thought"))) == (0, [])


def test_json_lines(audited: Audited) -> None:
    """Each line is a request; blank ones are none."""
    status, findings = audited.run(lines(chat("a")) + "\n" + lines(chat(None), chat("b"), chat(None)))
    assert status == 1
    assert [finding["line"] for finding in findings] == [3, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("[]", "it is not a JSON object"),
        ("{}\nnot json\n", "line 2 is not a JSON object"),
        ('{"messages": []}\n{"messages": 5}\n', "line 2"),
        ('{"sessionId":"s","projectHash":"h"}\n{"id":"1"}\n', "Gemini CLI"),
        ('{"type":"user","message":{}}\n{"subtype":"attribution_snapshot"}\n', "Qwen Code"),
    ],
)
def test_what_can_not_be_read(audited: Audited, text: str, message: str) -> None:
    """Status 2, and why; clients whose files say too little are named."""
    assert audited.run(text)[0] == 2
    assert message in audited.errors


# Codex


def codex(*payloads: Json) -> str:
    head = {"type": "session_meta", "payload": {"id": "s"}}, {"type": "turn_context", "payload": {"model": "gpt-5.3"}}
    return lines(*head, *({"type": "response_item", "payload": payload} for payload in payloads))


def item(role: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


THOUGHT: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAA" + "Ab3_" * 40}
CALLED: Json = {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": "{}", "call_id": "c1"}
RESULT: Json = {"type": "function_call_output", "call_id": "c1", "output": "x"}


def test_a_session_of_codex(audited: Audited) -> None:
    """What a provider that wants reasoning would say, at the line of the call that lacks it."""
    whole = codex(item("user", "hi"), THOUGHT, CALLED, RESULT, item("assistant", "done"))
    assert audited.run(whole) == (0, [])
    status, findings = audited.run(codex(item("user", "hi"), CALLED, RESULT), "--provider", "deepseek")
    assert (status, [finding["line"] for finding in findings]) == (1, [4])


def test_a_prompt_later_the_line_is_reported_once(audited: Audited) -> None:
    """Each prompt's last request is audited; what both have in them is one finding."""
    text = codex(item("user", "hi"), CALLED, RESULT, item("assistant", "a"), item("user", "more"))
    _, findings = audited.run(text, "--provider", "deepseek")
    assert [finding["line"] for finding in findings].count(4) == 1


def test_a_compacted_session_of_codex(audited: Audited) -> None:
    """Only what was put in its place is sent from then on."""
    before = codex(item("user", "hi"), CALLED, RESULT, item("assistant", "a"))
    after = {"type": "compacted", "payload": {"message": "", "replacement_history": [item("user", "summary")]}}
    question = {"type": "response_item", "payload": item("user", "go on")}
    assert audited.run(before + lines(after, question), "--provider", "deepseek") == (0, [])


# Claude Code


def claude(*messages: tuple[str, str | None, Json], more: Json | None = None) -> str:
    """Lines of a session: the name of each, that of its parent, and its message."""
    return lines(
        *(
            {"parentUuid": parent, "isSidechain": False, "type": message["role"], "message": message}
            | {"uuid": name, "sessionId": "s"}
            | (more or {})
            for name, parent, message in messages
        )
    )


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def result(id: str) -> Json:
    return user([{"type": "tool_result", "tool_use_id": id, "content": "x"}])


def block(id: str, **members: Any) -> Json:
    return {"role": "assistant", "id": id, "model": "claude-sonnet-4-5", "content": [members]}


def thinking(id: str) -> Json:
    return block(id, type="thinking", thinking="hm", signature="Erc8" * 40)


def call(id: str, name: str) -> Json:
    return {**block(id), "content": [{"type": "tool_use", "id": name, "name": "Bash", "input": {}}]}


def test_a_session_of_claude_code(audited: Audited) -> None:
    """Blocks of one turn are on separate lines."""
    text = claude(
        ("1", None, user("hi")),
        ("2", "1", thinking("m1")),
        ("3", "2", call("m1", "t1")),
        ("4", "3", call("m1", "t2")),
        ("5", "3", result("t1")),
        ("6", "4", result("t2")),
    )
    text = text.replace('"uuid":"5"', '"uuid":"5","sourceToolAssistantUUID":"3"')
    assert audited.run(text) == (0, [])
    status, findings = audited.run(text, "--provider", "deepseek", "--model", "deepseek-v4-pro")
    assert status == 0, findings


def test_a_turn_of_claude_code_without_thinking(audited: Audited) -> None:
    """The finding names the line of the call."""
    text = claude(
        ("1", None, user("hi")),
        ("2", "1", call("m1", "t1")),
        ("3", "2", result("t1")),
        ("4", "3", thinking("m2")),
        ("5", "4", call("m2", "t2")),
        ("6", "5", result("t2")),
    )
    status, findings = audited.run(text)
    assert (status, [finding["line"] for finding in findings]) == (1, [2])


def test_what_was_left_behind_is_not_audited(audited: Audited) -> None:
    """Another branch, a sub-agent, an error that Claude Code wrote itself."""
    left = claude(("2", "1", call("m1", "t1")), ("3", "2", result("t1")))
    agent = claude(("8", "1", call("m8", "t8")), more={"isSidechain": True})
    error = claude(("9", "1", block("m9", type="text", text="API Error")), more={"isApiErrorMessage": True})
    kept = claude(("4", "1", thinking("m2")), ("5", "4", call("m2", "t2")), ("6", "5", result("t2")))
    assert audited.run(claude(("1", None, user("hi"))) + left + agent + error + kept) == (0, [])


def test_a_session_that_is_not_as_known(audited: Audited) -> None:
    """Said by line, not guessed at."""
    text = claude(("1", None, user("hi")), ("2", "1", {"role": "user", "content": 7}))
    assert audited.run(text)[0] == 2
    assert "line 2 is not as this client's sessions are known" in audited.errors


# a request of a gateway


def by_id(id: str, url: str, capsys: pytest.CaptureFixture[str], token: str = TOKEN) -> tuple[int, str]:
    status = main(["audit", id, "--json", "--url", url, "--token", token])
    printed = capsys.readouterr()
    return status, printed.out or printed.err


def sent(gateway: Managed, text: str = "hi") -> str:
    """The id of a request whose turn has no reasoning."""
    history = [{"role": "user", "content": text}, *chat(None)["messages"][1:]]
    return gateway.send(history).headers["x-thoughtline-request"]


KEEPS = Settings(debug=DebugSettings(keep_bodies=True))


def test_a_request_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    """As the client sent it, for the provider that it went to: what the gateway has filled in is missing there."""
    with managed(KEEPS) as gateway:
        status, output = by_id(sent(gateway), gateway.url, capsys)
    (finding,) = json.loads(output)["findings"]
    assert (status, finding["rule"], finding["place"]) == (1, "missing", "/messages/1")


def test_without_bodies_it_says_how_to_keep_them(capsys: pytest.CaptureFixture[str]) -> None:
    """They are not kept unless asked for."""
    with managed() as gateway:
        status, output = by_id(sent(gateway), gateway.url, capsys)
    assert status == 2
    assert "[debug] keep_bodies" in output


def test_what_a_gateway_can_not_give(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown request, one that is too long, a wrong token."""
    with managed(KEEPS) as gateway:
        long = sent(gateway, "x" * 600_000)
        for name, token, words in [
            (ID, TOKEN, f"No request {ID} is remembered"),
            (long, TOKEN, "The kept body is cut short"),
            (long, "other", "--token"),
        ]:
            status, output = by_id(name, gateway.url, capsys, token)
            assert status == 2
            assert words in output


def test_no_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    """No server answers."""
    assert "No gateway answers" in by_id(ID, "http://127.0.0.1:1", capsys)[1]
