# Everything below sets itself up: Python 3.11, Rust 1.88, Node 20, gcc and make are all a machine needs.
#   make demo    build, run the quickstart experiment, end in its table and the path of its page
#   make lab     TCP, RepFlow and RepSYN in the simulator and over real kernels, two minutes of real time, and their pages
#   make lab-accept   on an idle machine: whether it carries the lab's runs, some minutes of real time, into benches/lab-accept.md
#   make lab-table    on an idle machine: nine experiments, five seeds, kernels against the simulator, half an hour, into the same page
#   make lab-bpf      the lab's BPF programs, which only root can load: flowlets, TinyFlow and DCTCP over kernels (needs clang and libbpf-dev)
#   make first-minutes   how long the demo takes from a fresh clone, part by part
#   make build   the extension as it is developed and tested: optimised, with assertions
#   make release the extension as it is installed, for `make demo`, `make lab` and `make bench`
#   make check   what one runs before a commit: formatters, linters, types and the quick tests
#   make test    build and run every test
#   make soak    the long forms of tests, with other random cases each time
#   make explore property tests of Rust and Python, 100 random experiments and 750 random flows of repnet, others each time: a minute, a part of make test
#   make fuzz    2,000 random experiments, others each time
#   make claims  the papers' claims as stated, at the papers' scale: what is missing of them, one to two hours on two cores
#   make today   the eight questions of docs/guide/today.md: what is missing of their runs, some 610 of a second or two each, and the page
#   make today-kernels   the same where the kernel lab carries them: some 75 runs of eight seconds each, on an idle machine, and the page
#   make bench   speed and memory, never part of the tests
#   make dist    what people install, in dist/: a wheel, the source distribution and the npm tarball
#   make lint    formatters, linters and type checkers
#   make format  let the formatters have their way
#   make docs    the documentation as HTML
#   make playground   the simulator in one page of the browser: docs/playground/index.html (needs a compiler for WebAssembly)
#   make lock    resolve the Python packages again

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := demo
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PYO3_PYTHON := $(abspath $(BIN)/python)
export VIRTUAL_ENV := $(abspath $(VENV))
export PATH := $(abspath $(BIN)):$(PATH)

# Compiled Python is kept, whatever the environment says: otherwise each of the processes that tests start compiles its packages
# again, and takes twice as long to begin (`tailcut list`: 1.05 s, not 0.59).
unexport PYTHONDONTWRITEBYTECODE

# Property tests draw the same cases in every run, so that a change is to blame for what it breaks. `make explore` and `make soak` draw others.
export TAILCUT_TEST_SEED ?= 1
export PROPTEST_RNG_SEED ?= $(TAILCUT_TEST_SEED)

.PHONY: demo
demo: release
	$(BIN)/tailcut run experiments/quickstart.toml
	$(BIN)/tailcut report results/quickstart

.PHONY: lab
lab: release setup-lab
	$(BIN)/tailcut lab
	for name in one-congested-path repnet; do \
	    $(BIN)/tailcut run experiments/lab/$$name.toml; \
	    $(BIN)/tailcut run experiments/lab/$$name.toml --on lab || test $$? = 3; \
	    $(BIN)/tailcut report results/lab/$$name; \
	done

# What switches of kernels that remember flows take, and DCTCP. Nothing else needs clang.
BPF := crates/tailcut-lab/bpf

.PHONY: lab-bpf
lab-bpf: $(patsubst $(BPF)/%.c,target/bpf/%.o,$(wildcard $(BPF)/*.c))

target/bpf/%.o: $(BPF)/%.c $(wildcard $(BPF)/*.h)
	@command -v clang > /dev/null || { echo 'there is no clang: install the packages clang and libbpf-dev' >&2; exit 1; }
	@mkdir -p target/bpf
	clang -O2 -g -Wall -Werror -target bpf -mcpu=v3 -idirafter /usr/include/$$(uname -m)-linux-gnu -c $< -o $@

# Nothing else may run meanwhile.
.PHONY: lab-accept
lab-accept: release setup-lab
	$(BIN)/python benches/lab_accept.py

# As much of it as --minutes allows; the same again goes on.
.PHONY: lab-table
lab-table: release setup-lab
	$(BIN)/python benches/lab_table.py $(LAB_TABLE)
	$(BIN)/python tests/support/kernel_claims.py

# --- set-up ---------------------------------------------------------------------------------------------------------

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tailcut needs Python 3.11 or later; name one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.uv: requirements-installer.lock | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-installer.lock
	touch $@

$(VENV)/.running: requirements.lock $(VENV)/.uv
	.ci/install requirements.lock
	touch $@

# What running needs.
.PHONY: packages
packages: $(VENV)/.running

# What tests, documentation and linters need besides.
$(VENV)/.locked: requirements-dev.lock $(VENV)/.running
	.ci/install requirements.lock requirements-dev.lock
	touch $@

.PHONY: setup
setup: $(VENV)/.locked

.PHONY: rust-version
rust-version:
	@cargo --version | awk '{ split($$2, v, "."); exit !(v[1] > 1 || v[2] >= 88) }' \
	    || { echo 'Tailcut needs Rust 1.88 or later, as rustup installs it' >&2; exit 1; }

# Of the crates that `cargo test` compiles, and where, so that each is compiled once.
.PHONY: build
build: packages rust-version
	$(BIN)/maturin develop --uv --locked --quiet

# Compiled as the wheel of `make dist` is, and where, so that this does it no second time.
.PHONY: release
release: packages rust-version
	.ci/wheel $(CURDIR) $(CURDIR)/target/dist $(abspath $(BIN))/maturin develop --uv --release --locked --quiet

# The README's first picture: a flow that goes round a hot link, from the page of a real run. Needs chromium.
.PHONY: picture
picture: release setup
	$(BIN)/tailcut run docs/images/fabric.toml --quiet --out target/picture
	$(BIN)/tailcut report target/picture
	$(BIN)/python docs/images/draw.py target/picture/report.html docs/images/fabric.png

# How long a newcomer waits for the demo, part by part.
.PHONY: first-minutes
first-minutes:
	.ci/first-minutes

.PHONY: system-packages
system-packages:
	.ci/system-packages

COMPILE = $(BIN)/uv pip compile --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
    --custom-compile-command "make lock"

.PHONY: lock
lock: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	echo uv | $(COMPILE) --no-annotate --output-file requirements-installer.lock -
	$(COMPILE) pyproject.toml --group build --output-file requirements.lock
	$(COMPILE) pyproject.toml --extra cluster --group test --group docs --group lint --constraints requirements.lock \
	    --output-file requirements-dev.lock

# --- tests ----------------------------------------------------------------------------------------------------------

# So many Python tests run at a time. Beside other work more have a larger share of the processors: make test WORKERS=6.
WORKERS ?= 2

.PHONY: test
test:
	.ci/tests

CARGO_TEST := cargo test --locked

# All that the tests of Rust and Python run.
.PHONY: compile
compile: packages rust-version
	$(CARGO_TEST) --workspace --no-run
	$(MAKE) build

.PHONY: test-rust
test-rust: $(BIN)/python
	$(CARGO_TEST) --workspace

# A few cases that nobody has seen, in every `make test`: what has changed need not be to blame for what they find.
.PHONY: explore
explore: build setup
	.ci/explore

# Other random experiments than the tests draw; a failure names the seed that repeats it.
.PHONY: fuzz
fuzz: $(BIN)/python
	TAILCUT_FUZZ_SEED=$${TAILCUT_FUZZ_SEED:-$$RANDOM} TAILCUT_FUZZ_EXPERIMENTS=$${TAILCUT_FUZZ_EXPERIMENTS:-2000} \
	    $(CARGO_TEST) --workspace --test integration -- fuzz::random

.PHONY: test-python
test-python: build setup setup-lab
	$(BIN)/pytest -n $(WORKERS) --dist worksteal

packages/node_modules/.locked: packages/package-lock.json
	cd packages && npm ci --no-audit --no-fund
	touch $@

.PHONY: setup-repnet
setup-repnet: packages/node_modules/.locked

# What carries replicated flows in the lab.
REPNET_SOURCES := $(wildcard packages/repnet/src/*.ts packages/repnet/src/*/*.ts packages/repnet-cli/src/*.ts packages/repnet-bench/src/*.ts)

packages/repnet-bench/dist/main.js: $(REPNET_SOURCES) | packages/node_modules/.locked
	cd packages && npm run build --silent --workspace repnet --workspace repnet-cli --workspace repnet-bench

.PHONY: setup-lab
setup-lab: packages/repnet-bench/dist/main.js

.PHONY: test-repnet
test-repnet: setup-repnet
	cd packages && npm test

# What came out goes into experiments/papers/scorecard.json, which the next build takes along.
.PHONY: claims
claims: release
	$(BIN)/tailcut claims run --on model
	$(BIN)/tailcut claims run $(CLAIMS)
	$(BIN)/tailcut claims page results/claims.html

# Goes on after an interruption. The page's words are people's, its numbers the scorecard's; it is refused where they disagree.
.PHONY: today
today: release
	$(BIN)/tailcut claims run today --all-readings $(TODAY)
	$(BIN)/python docs/today.py

# Nothing else may run meanwhile: a run that is not in time does not count.
.PHONY: today-kernels
today-kernels: release setup-lab
	$(BIN)/tailcut claims run today --on lab --all-readings $(TODAY)
	$(BIN)/python docs/today.py

.PHONY: bench
bench: release setup
	cargo bench --locked -p tailcut-net --bench fabric -- --check
	$(BIN)/python benches/threads.py
	cargo bench --locked -p tailcut-engine --bench parallel
	$(BIN)/python benches/sweeps.py
	$(BIN)/python benches/playground.py
	$(BIN)/python benches/lab.py

# What one runs before a commit. Left out: what takes long (tests/conftest.py has the list for Python), the browser, and repnet's
# tests, which wait most of their time. The compiler of Rust works beside all else.
.PHONY: check check-rust check-python
check:
	$(MAKE) -j2 --output-sync=target check-rust check-python

QUICK := errors:: fabric:: plan:: properties:: schema:: smoke:: tcp::

check-rust: build lint-rust
	$(CARGO_TEST) --workspace --lib
	$(CARGO_TEST) --workspace --doc
	$(CARGO_TEST) --workspace --test integration -- $(QUICK)

check-python: lint-packages lint-python
	$(MAKE) setup-lab
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q -m "not slow and not soak"

# What the tests' short forms leave out. A failure prints the seed that draws its cases again.
.PHONY: soak
soak: build setup setup-repnet
	.ci/soak

# What people install: a wheel, the source distribution and the npm tarball, in dist/; and the wheel tried without Rust.
.PHONY: dist
dist: packages setup-repnet build
	$(BIN)/tailcut claims --current
	.ci/dist
	.ci/check-dist

# --- what people read and what reviewers skip -----------------------------------------------------------------------

# One for each language, which may run beside each other once all is set up: make -j2 lint.
.PHONY: lint-code lint-python lint-rust lint-packages
lint-code: lint-rust lint-python lint-packages

lint-python: build setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/mypy

lint-rust: $(BIN)/python
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

lint-packages: setup-repnet
	cd packages && npm run lint && npm run typecheck

.PHONY: lint check-stubs check-packages
lint: lint-code check-stubs check-packages

check-stubs: build setup
	MYPYPATH=python $(BIN)/stubtest tailcut._core

check-packages: lint-packages
	cd packages && npm run build && npm run check-package

.PHONY: format
format: setup setup-repnet
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cargo fmt --all
	cd packages && npm run format

.PHONY: docs
docs: build setup setup-repnet
	cd packages && npm run --silent docs
	$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build/html
	$(BIN)/tailcut claims page docs/_build/html/claims.html
	@echo "docs/_build/html/index.html"

# --- the playground -------------------------------------------------------------------------------------------------

# A build of its own, that nothing else waits for; tests of what it makes are skipped until it is made.
.PHONY: playground
playground: setup-repnet
	.ci/playground-module
	cd packages && npm run --silent build --workspace tailcut-playground
	node packages/playground/build.mjs target/playground/tailcut.wasm docs/playground/index.html
