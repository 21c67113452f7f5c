# Everything below sets itself up: Python 3.11, Rust, Node 20, gcc and make are all a machine needs.
#   make demo    build, run the quickstart experiment, end in its table and the path of its page
#   make test    build and run every test
#   make bench   speed and memory, never part of the tests
#   make lint    formatters, linters and type checkers
#   make format  let the formatters have their way
#   make docs    the documentation as HTML
#   make lock    resolve the Python packages again

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := demo

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYO3_PYTHON := $(abspath $(BIN)/python)
export VIRTUAL_ENV := $(abspath $(VENV))
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: demo
demo: build
	$(BIN)/tailcut run experiments/quickstart.toml
	$(BIN)/tailcut report results/quickstart

# --- set-up ---------------------------------------------------------------------------------------------------------

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tailcut needs Python 3.11 or later; name one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.locked: requirements.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

.PHONY: setup
setup: $(VENV)/.locked

.PHONY: build
build: setup
	PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet

.PHONY: system-packages
system-packages:
	.ci/system-packages

.PHONY: lock
lock: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --group dev --generate-hashes --universal --python-version 3.11 \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --output-file requirements.lock

# --- tests ----------------------------------------------------------------------------------------------------------

.PHONY: test
test: system-packages test-rust test-python test-repnet

# `checked` is the release build with assertions and overflow checks on.
.PHONY: test-rust
test-rust: setup
	cargo test --workspace --locked --profile checked

.PHONY: test-python
test-python: build
	$(BIN)/pytest -n 2

packages/repnet/node_modules/.locked: packages/repnet/package-lock.json
	cd packages/repnet && npm ci --no-audit --no-fund
	touch $@

.PHONY: setup-repnet
setup-repnet: packages/repnet/node_modules/.locked

.PHONY: test-repnet
test-repnet: setup-repnet
	cd packages/repnet && npm test

.PHONY: bench
bench: setup
	cargo bench --locked -p tailcut-net --bench fabric -- --check

# --- what people read and what reviewers skip -----------------------------------------------------------------------

.PHONY: lint
lint: build setup-repnet
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/stubtest tailcut._core
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd packages/repnet && npm run lint && npm run typecheck && npm run build && npm run check-package

.PHONY: format
format: setup setup-repnet
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cargo fmt --all
	cd packages/repnet && npm run format

.PHONY: docs
docs: build
	$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build/html
	@echo "docs/_build/html/index.html"
