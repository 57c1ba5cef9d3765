"""What users read: links lead somewhere, names are those of the code, decisions are complete."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

from thoughtline.clients import CLIENTS
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.replay.rules import RULES
from thoughtline_sim.simulators import SIMULATORS
from tools.docs import STORIES

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*"))

every_page = pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])

SPOKEN = {
    "Chat Completions": "openai_chat",
    "Responses": "openai_responses",
    "Messages": "anthropic_messages",
    "Gemini": "gemini_generate",
}

MACHINE = re.compile(r"(?<![\w.])/(work|root|home/\w+)/|artifactory|\bnexus\b|index-url")
"""Paths and registries of a page's author, which no reader has."""


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`|^ {4}[^\n]*$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What can stand behind `#`: headings as GitHub spells them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_there(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    place = (page.parent / path).resolve() if path else page
    return place.exists() and (not anchor or anchor in anchors(place))


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page is a file or folder of this repository, and its anchor a heading there."""
    links = re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text()))
    assert [link for link in links if "://" not in link and not is_there(page, link)] == []


@every_page
def test_no_page_speaks_of_the_machine_it_was_written_on(page: Path) -> None:
    """Neither paths nor registries."""
    assert MACHINE.search(page.read_text()) is None


@every_page
def test_no_page_has_marks_of_a_merge(page: Path) -> None:
    """Two versions of a passage are not a page."""
    assert re.findall(r"^(?:<{7}|>{7}|={7}$).*", page.read_text(), re.MULTILINE) == []


@pytest.mark.parametrize(("spoken", "format"), SPOKEN.items())
def test_the_readme_names_every_client(spoken: str, format: str) -> None:
    """By the formats that each can be set to."""
    (row,) = re.findall(rf"^\| {spoken} \| (.*) \|$", README, re.MULTILINE)
    assert row.split(", ") == [client.title for client in CLIENTS if format in client.formats]


def test_the_readme_names_every_provider() -> None:
    """In the order of the catalogue, as the first word of an address."""
    listed = README.partition("first word of the address:")[2].partition("or one of your own")[0]
    assert re.findall(r"`/([\w-]+)`", listed) == list(PROVIDERS)


def test_the_readme_counts_right() -> None:
    """Rules and simulators."""
    assert len(RULES) == 14
    assert "Fourteen [rules]" in README
    assert f"{len(SIMULATORS)} simulators" in README


def test_every_page_can_be_found_from_the_readme() -> None:
    """Directly, or from a page that it links to."""
    pages = {page for page in PAGES if page.parent == ROOT / "docs"}
    seen: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        seen.add(page)
        links = re.findall(r"\]\(([^)\s#]+\.md)", page.read_text())
        ahead += [found for link in links if (found := (page.parent / link).resolve()) in pages - seen]
    assert pages - seen == set()


def test_every_error_of_the_gateway_is_listed() -> None:
    """By its code; `address_in_use` is reported at the start, on the terminal."""
    sources = (path.read_text() for path in (ROOT / "src" / "thoughtline" / "gateway").glob("*.py"))
    codes = {code for text in sources for code in re.findall(r'Declined\(\s*\d{3},\s*"(\w+)"', text)}
    told = (ROOT / "docs" / "gateway.md").read_text()
    assert {code for code in codes if f"`{code}`" not in told} == {"address_in_use"}


def test_decisions_are_numbered_and_dated() -> None:
    """Without gaps and duplicates; name, title and number agree; the status says whether the decision is in force."""
    assert [path.name[:4] for path in DECISIONS] == [f"{number:04}" for number in range(1, len(DECISIONS) + 1)]
    for number, path in enumerate(DECISIONS, start=1):
        title, blank, date, *_ = path.read_text().splitlines()
        assert title.startswith(f"# {number}. ")
        assert blank == ""
        status = r"\*\*Status\*\*: (in force\b.*|replaced by \[\d+\]\(.*\))\."
        assert re.fullmatch(rf"\*\*Decided\*\* \d{{4}}-\d\d-\d\d\. {status}", date), path.name


def test_the_index_lists_every_decision_once() -> None:
    """By module, under its own title."""
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    listed = sorted(re.findall(r"^- \[(.*)\]\((.*)\)$", index, re.MULTILINE), key=lambda entry: entry[1])
    assert listed == [(path.read_text().splitlines()[0].removeprefix("# "), path.name) for path in DECISIONS]


def test_every_dependency_has_its_reason() -> None:
    """Somewhere in the decisions, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    groups = [[one for one in group if isinstance(one, str)] for group in project["dependency-groups"].values()]
    lists = (project["project"]["dependencies"], *groups, *extras.values())
    names = {re.split(r"[\[<>=; ]", requirement)[0] for wanted in lists for requirement in wanted} - {"thoughtline"}
    told = " ".join(path.read_text() for path in DECISIONS)
    assert {name for name in names if not re.search(rf"\b{re.escape(name)}\b", told, re.IGNORECASE)} == set()


def test_lines_of_the_changelog_are_readable() -> None:
    """At most 120 characters, as in the code."""
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > 120] == []


QUESTIONS = (
    "Claude Code with GLM",
    "What is stored, how long",
    "rotate keys",
    "three replicas",
    "LangGraph",
    "off for one request",
    "see the reasoning",
    "delete a person's data",
    "provider keys inside",
    "`blank=1`",
    "streaming",
    "my own vLLM",
    "behind a proxy",
    "upgrade",
    "run the tests",
    "phone home",
    "back up or move",
    "still get a 400",
    "Docker, Kubernetes",
    "LiteLLM",
    "Windows and macOS",
    "uninstall",
)
"""What people ask first."""


def test_every_question_has_an_answer_with_a_link_that_exists() -> None:
    """In the index: one row has the question, and leads to a heading or a page that is there."""
    index = ROOT / "docs" / "README.md"
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", index.read_text(), re.MULTILINE)
    assert len(QUESTIONS) == 22
    for question in QUESTIONS:
        found = [answer for asked, answer in rows if question.lower() in asked.lower()]
        assert len(found) == 1, question
        links = re.findall(r"\]\(([^)\s]+)\)", found[0])
        assert links, question
        assert all(is_there(index, link) for link in links), question


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"({name}" not in index} == set()


def test_the_answers_are_not_empty() -> None:
    """Each heading of the page of questions has at least a sentence below it."""
    parts = re.split(r"^## .+$", (ROOT / "docs" / "questions.md").read_text(), flags=re.MULTILINE)[1:]
    assert len(parts) >= 15
    assert all(len(part.split()) >= 10 for part in parts)


STORY_LINES = 20
"""A story may move so far before its line is written again: each change of a file would change the page otherwise."""


def test_the_stories_of_the_architecture_are_where_it_says() -> None:
    """Ten of them, each a function at its place."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| .+ \| `([\w.]+)` \| `([\w/]+\.py):(\d+)` \|$", page, re.MULTILINE)
    assert len(rows) == len(STORIES) == 10
    for (name, path, line), (_, told) in zip(rows, STORIES, strict=True):
        assert name == told.__qualname__
        assert (inspect.getsourcefile(told) or "").endswith(f"/thoughtline/{path}")
        assert abs(inspect.getsourcelines(told)[1] - int(line)) <= STORY_LINES
