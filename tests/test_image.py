"""The image, the compose file, the pods and the systemd unit, run by their own lines.

There is no container engine here: the COPY and RUN lines of the Dockerfile are carried out in an empty folder that
stands for `/`, and what is built there is started by the commands and variables of each file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.stores.servers import Valkey, free_port
from tests.test_deploy import COMPOSE, DEPLOY, DOCKERFILE, KUBERNETES, POD, ROOT, SYSTEMD, lines

SECRET = "a-secret-of-this-test"
NO_INDEX = re.compile(r"NewConnectionError|Name or service not known|Temporary failure in name resolution")
PLACES = ("/src", "/opt/thoughtline", "/data", "/config")


class Image(NamedTuple):
    """A folder that stands for `/` in the image."""

    root: Path

    def at(self, text: str) -> str:
        """A line of the Dockerfile with its places moved below the folder."""
        return re.sub(rf"(?<![\w/.])({'|'.join(PLACES)})(?![\w])", lambda found: f"{self.root}{found[1]}", text)

    @property
    def environment(self) -> dict[str, str]:
        pairs = (pair.partition("=")[::2] for pair in shlex.split(lines("ENV")[0]))
        variables = {name: self.at(value) for name, value in pairs}
        return variables | {"PATH": variables["PATH"].replace("$PATH", os.environ["PATH"]), "HOME": str(self.root)}


def context(folder: Path) -> None:
    """What the builder is sent: all of the repository but what `.dockerignore` leaves out."""
    rules = [one for one in (ROOT / ".dockerignore").read_text().splitlines() if one and not one.startswith("#")]
    assert rules[0] == "*"
    for name in (rule[1:] for rule in rules if rule.startswith("!")):
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)


def interpreter() -> str:
    """The image's Python, where it is installed; otherwise this one."""
    version = re.findall(r"(?m)^FROM python:(\d\.\d+)", DOCKERFILE)[0]
    found = shutil.which(f"python{version}")
    if found is None:
        return sys.executable
    asks = [found, "-c", "import venv, ssl, sys; print(sys.executable)"]  # a shim of pyenv may have no such version
    done = subprocess.run(asks, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else sys.executable


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The build stage, line by line."""
    built, sent = Image(tmp_path_factory.mktemp("image")), tmp_path_factory.mktemp("context")
    context(sent)
    programs = built.root / "usr/bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(interpreter())
    stage = DOCKERFILE.split("\nFROM ")[1]
    workdir = Path(built.at(re.findall(r"(?m)^WORKDIR +(.*)$", stage)[0]))
    workdir.mkdir(parents=True)
    for word, rest in re.findall(r"(?m)^(COPY|RUN) +(.*)$", stage):
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                assert (sent / source).exists(), f"{source} is not in the build context"
                if (sent / source).is_dir():
                    shutil.copytree(sent / source, workdir / target)
                else:
                    shutil.copy(sent / source, workdir / target)
            continue
        environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", built.at(rest)], cwd=workdir, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode and NO_INDEX.search(done.stderr):
            pytest.skip("no package index can be reached, so nothing can be installed")
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(workdir)  # only /opt/thoughtline goes into the second stage
    for place in ("data", "config"):
        (built.root / place).mkdir()
    return built


@contextmanager
def up(image: Image, words: list[str], variables: dict[str, str], data: Path) -> Iterator[str]:
    """The program, started with these words and variables, and its address."""
    port = free_port()
    environment = image.environment | {"XDG_DATA_HOME": str(data), "THOUGHTLINE_PORT": str(port)} | variables
    program = shutil.which(words[0], path=environment["PATH"])
    assert program is not None, words[0]
    assert Path(program).is_relative_to(image.root)
    log = data / "log"
    with log.open("w") as out, subprocess.Popen([program, *words[1:]], env=environment, cwd="/", stderr=out) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=8), trust_env=False) as client:
                answer = client.get(f"{url}/healthz", timeout=30)
            assert answer.status_code == 200, log.read_text()
            yield url
        except httpx.ConnectError as error:
            raise AssertionError(log.read_text()) from error
        finally:
            process.terminate()
            process.wait()
    assert process.returncode in (0, -signal.SIGTERM), log.read_text()
    assert "goodbye" in log.read_text()


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


ENTRYPOINT = json.loads(lines("ENTRYPOINT")[0])


def test_the_image_serves_and_is_healthy(image: Image, tmp_path: Path) -> None:
    """By its ENTRYPOINT and CMD, and its HEALTHCHECK says so; after SIGTERM it says goodbye."""
    command = re.findall(r"CMD (\[\"python\".*\])", DOCKERFILE)[0]
    with up(image, [*ENTRYPOINT, *json.loads(lines("CMD")[-1])], {}, folder(tmp_path / "data")) as url:
        check = [word.replace("http://127.0.0.1:8642", url) for word in json.loads(command)]
        assert any(url in word for word in check)
        program = str(image.root / "opt/thoughtline/bin" / check[0])
        subprocess.run([program, *check[1:]], check=True, env=image.environment)
    assert (tmp_path / "data/thoughtline/thoughtline.db").is_file()


def test_nothing_that_is_not_needed_is_sent_to_the_builder(tmp_path: Path) -> None:
    """No history, no environment, no tests; and all that the Dockerfile copies."""
    context(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    copied = {name for line in lines("COPY") if "--from" not in line for name in line.split()[:-1]}
    assert names == copied
    assert not any(fnmatch(name, ".*") for name in names)


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    server = Valkey()
    yield server
    server.remove()


def filled(value: str, valkey: Valkey) -> str:
    """As `docker compose` fills in a variable: the default behind `:-`, or what `:?` asks for."""
    value = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
    value = re.sub(r"\$\{\w+:\?[^}]*\}", SECRET, value)
    return value.replace("redis://redis:6379", valkey.url)


def test_the_services_of_the_compose_file_share_a_store(image: Image, valkey: Valkey, tmp_path: Path) -> None:
    """Each starts by the image's command with its variables, and the second knows a client key made at the first."""
    commands = [*ENTRYPOINT, *json.loads(lines("CMD")[-1])]
    services = [COMPOSE["services"][name] for name in ("gateway-1", "gateway-2")]
    variables = [{name: filled(text, valkey) for name, text in one["environment"].items()} for one in services]
    assert all("command" not in one and "entrypoint" not in one for one in services)
    admin = {"authorization": f"Bearer {SECRET}"}
    with (
        up(image, commands, variables[0], folder(tmp_path / "1")) as first,
        httpx.Client(trust_env=False, timeout=30) as client,
    ):
        made = client.post(f"{first}/api/keys", headers=admin, json={"name": "alice"})
        assert made.status_code == 200, made.text
        with up(image, commands, variables[1], folder(tmp_path / "2")) as second:
            listed = client.get(f"{second}/api/keys", headers=admin)
            assert "alice" in listed.text


def test_a_pod_starts_answers_its_probes_and_pauses(image: Image, valkey: Valkey, tmp_path: Path) -> None:
    """With the secret as its environment, the container's arguments and its preStop command."""
    container, data = POD["containers"][0], KUBERNETES["Secret"]["stringData"]
    secret = {name: SECRET if value.startswith("change-me") else filled(value, valkey) for name, value in data.items()}
    with (
        up(image, [*ENTRYPOINT, *container["args"]], secret, folder(tmp_path / "data")) as url,
        httpx.Client(trust_env=False, timeout=30) as client,
    ):
        for probe in ("readinessProbe", "livenessProbe"):
            answer = client.get(url + container[probe]["httpGet"]["path"])
            assert answer.status_code == 200, answer.text
        words = container["lifecycle"]["preStop"]["exec"]["command"]
        pause = [re.sub(r"sleep\(\d+\)", "sleep(0)", word) for word in words]
        program = shutil.which(pause[0], path=image.environment["PATH"])
        subprocess.run([str(program), *pause[1:]], check=True, env=image.environment)


def test_the_line_of_the_systemd_unit_serves(image: Image, tmp_path: Path) -> None:
    """With the unit's own variables; the folders that systemd makes are made here."""
    words = [image.at(word) for word in shlex.split(SYSTEMD["Service"]["ExecStart"])]
    pairs = dict(pair.partition("=")[::2] for pair in shlex.split(SYSTEMD["Service"]["Environment"]))
    assert set(pairs) == {"XDG_DATA_HOME", "XDG_CONFIG_HOME"}
    (tmp_path / "etc/thoughtline").mkdir(parents=True)
    (tmp_path / "etc/thoughtline/thoughtline.toml").write_text('[server]\nadmin_token = "sixteen-characters"\n')
    state = tmp_path / "var/lib"
    folder(state / SYSTEMD["Service"]["StateDirectory"])
    places = {name: f"{tmp_path}{value}" for name, value in pairs.items()}
    with up(image, words, places, state) as url, httpx.Client(trust_env=False) as client:
        answer = client.get(f"{url}/api/settings", headers={"authorization": "Bearer sixteen-characters"})
        assert answer.status_code == 200, answer.text
    assert (state / "thoughtline/thoughtline.db").is_file()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_loads_the_unit(image: Image, tmp_path: Path) -> None:
    unit = tmp_path / "thoughtline.service"
    unit.write_text(image.at((DEPLOY / "thoughtline.service").read_text()))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_renders_what_the_manifest_says() -> None:
    """`kubectl apply -k deploy` applies the four resources, with the image that the kustomization names."""
    done = subprocess.run(["kubectl", "kustomize", str(DEPLOY)], capture_output=True, text=True, check=True)
    assert sorted(re.findall(r"(?m)^kind: (\w+)", done.stdout)) == sorted(KUBERNETES)
    assert "image: thoughtline:latest" in done.stdout
