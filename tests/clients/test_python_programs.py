"""Programs from PyPI, each as `thoughtline run` or `connect` sets it; `make clients` gives each an environment.

`make test-clients` runs this, `make test-clients-all` also what takes long. Seen of the versions on 2026-11-19.
"""

from __future__ import annotations

import json

import pytest

from tests.clients.agents import shell_calls
from tests.clients.programs import CLIENTS, KEY, Place, environment_of, finished
from tests.clients.test_further_programs import Further, assert_whole, begun, calls_of
from tests.clients.upstreams import reach, start
from thoughtline.clients import DEFAULT_URL, address_of, find, lines_of
from thoughtline.clients.launching import shell_lines
from tools.install_clients import PYTHON, python_of_programs

pytestmark = [
    pytest.mark.programs,
    pytest.mark.skipif(python_of_programs() is None, reason=f"these programs need Python {PYTHON}"),
]

VIBE = Further(
    "mistral-vibe",
    "python/mistral-vibe/bin/vibe",
    calls_of("bash"),
    ("--auto-approve", "--trust", "--prompt"),
    ("--continue", "--auto-approve", "--trust", "--prompt"),
    {},
)
_OPENHANDS = ("--headless", "--exit-without-confirmation", "--task")
OPENHANDS = Further(
    "openhands",
    "python/openhands/bin/openhands",
    calls_of("terminal", security_risk="LOW", summary="the task"),
    _OPENHANDS,
    ("--resume", "--last", *_OPENHANDS),
    {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
)
MINI = Further(
    "mini-swe-agent",
    "python/mini-swe-agent/bin/mini",
    calls_of("bash"),
    ("--yolo", "--exit-immediately", "--task"),
    (),
    {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
)
LLM = CLIENTS / "python" / "llm" / "bin" / "llm"
all_programs = pytest.mark.all_programs


ROWS = (
    (VIBE, "mistral"),
    (OPENHANDS, "deepseek"),
    pytest.param(VIBE, "deepseek", marks=all_programs),
    pytest.param(OPENHANDS, "kimi", marks=all_programs),
)


@pytest.mark.parametrize(("program", "provider"), ROWS)
def test_a_task_by_run(program: Further, provider: str, place: Place) -> None:
    """Tools run, also in a session that is resumed; nothing is refused, and every part of a turn that is sent again has
    the reasoning of that turn."""
    upstream = start(provider, None, program.script(), by_request=True)
    gateway = reach(upstream).rpartition("/")[0]
    for words in ([*program.begin, "Write a note and look at it."], [*program.resume, "Now a copy."]):
        outcome = begun(program, provider, gateway, place, words)
        assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert (place.work / "copy.txt").read_text() == "kept"
    if program is OPENHANDS:  # writes parallel calls as messages of their own
        assert_whole(upstream, program.script(), requests=5)
    else:
        assert upstream.verdicts() == [["whole"] * before for before in range(5)]


@pytest.mark.parametrize("provider", ["deepseek", pytest.param("gemini", marks=all_programs)])
def test_mini_swe_agent(provider: str, place: Place) -> None:
    """It ends by a command, and takes no answer without one."""
    calls = MINI.calls
    end = json.dumps({"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat note.txt"})
    script = (
        f"think: First the note.|say: Writing it.|call: {calls.write}|---|think: Two ways at once.|call: {calls.read}"
    )
    script += f"|call: {calls.measure}|---|think: It says what I wrote.|say: Done.|call: bash {end}"
    upstream = start(provider, None, script)
    outcome = begun(MINI, provider, reach(upstream).rpartition("/")[0], place, [*MINI.begin, "Write a note."])
    assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert (place.work / "note.txt").read_text() == "kept"
    assert upstream.verdicts() == [["whole"] * before for before in range(3)]


FUNCTION = """
def shell(command: str) -> str:
    "Run a command line."
    import subprocess
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout
"""


@pytest.mark.parametrize("provider", ["mistral", pytest.param("deepseek", marks=all_programs)])
def test_llm(provider: str, place: Place) -> None:
    """As `connect` prints it: with plain text from Mistral, whose lists it can't read; what it drops comes back."""
    client = find("llm")
    assert client is not None
    calls = shell_calls("shell")(place.work)
    turns = (
        f"think: First the note.|call: {calls.write}",
        f"think: Two ways at once.|call: {calls.read}|call: {calls.measure}",
        "think: It says what I wrote.|say: The note says kept.",
        f"think: A second one.|call: {calls.copy}",
        "think: Both are there.|say: The copy is there.",
    )
    upstream = start(provider, None, "|---|".join(turns))
    address = address_of(client, DEFAULT_URL, provider)._replace(base=reach(upstream))
    models, commands = client.steps
    folder = place.home / "llm"
    folder.mkdir()
    (folder / "extra-openai-models.yaml").write_text(lines_of(client, models, address))
    environment = environment_of(place) | {"LLM_USER_PATH": str(folder)}
    for _, *words in shell_lines(lines_of(client, commands, address, key=KEY)).commands:
        assert finished([str(LLM), *words], place, environment).status == 0
    tool = ("--functions", FUNCTION)
    for words, answer in (
        ([*tool, "Write a note and look at it."], "The note says kept."),
        (["--continue", *tool, "Now a copy."], "The copy is there."),
    ):
        outcome = finished([str(LLM), *words], place, environment)
        assert (outcome.status, outcome.answer, upstream.refusals()) == (0, answer, []), outcome.remarks
    assert (place.work / "copy.txt").read_text() == "kept"
    assert upstream.verdicts() == [["whole"] * before for before in range(5)]
