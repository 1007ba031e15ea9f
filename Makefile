# make demo: a trained, browsable run.  make test: every check.  Both install what they need into .venv, once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help demo test lint clean system

# Any Python from 3.11 on; TORCH goes to pip as it stands, so it may carry an --index-url too.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
PRESET ?=
PORT ?=
EXIT ?=

BIN := .venv/bin
# What is installed follows from these alone; a stamp with another key means that they changed.
KEY := $(shell { cat pyproject.toml; echo '$(TORCH)'; } | sha256sum | cut -c1-16)
UP := $(if $(PRESET),--preset $(PRESET)) $(if $(PORT),--port $(PORT)) $(if $(filter-out 0,$(EXIT)),--exit)

# OpenMP threads that spin while they wait make everything else on a small machine crawl.
export OMP_WAIT_POLICY := PASSIVE

help:
	@echo 'make demo   install, start everything, train the demo model, serve the dashboard until Ctrl-C'
	@echo '            EXIT=1 ends with the run and one JSON line; PRESET=name; PORT=number'
	@echo 'make test   install the test tools, run linters, type checker and all tests'
	@echo 'make lint   linters and type checker alone'
	@echo 'make clean  remove .venv and caches (runs in .data stay)'

demo: .venv/train-$(KEY)
	@exec $(BIN)/vlmscope up --demo $(UP)

test: lint system
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow'
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

lint: .venv/dev-$(KEY)
	@$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

clean:
	rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache build dist *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

# One installation at a time: the second of two calls waits, finds the stamp and does nothing.  torch goes first and
# exactly: left to the resolver, a newer build with gigabytes of CUDA libraries may come in its place.
.venv/train-$(KEY) .venv/dev-$(KEY):
	@exec 9<Makefile
	flock 9
	if [ -e $@ ]; then exit 0; fi
	exec 1>&2
	if $(BIN)/python -m pip --version >/dev/null 2>&1; then
	    : # made before; only what is in it has changed
	elif ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	    echo "expected Python 3.11 or newer as '$(PYTHON)'; name one: make PYTHON=/path/to/python3"
	    exit 1
	elif $(PYTHON) -c 'import ensurepip' 2>/dev/null; then
	    $(PYTHON) -m venv --clear .venv
	elif $(PYTHON) -m pip --version >/dev/null 2>&1; then # Debian without python3-venv: pip fills a bare environment
	    $(PYTHON) -m venv --clear --without-pip .venv
	    $(PYTHON) -m pip --python $(BIN)/python install pip
	else
	    echo "'$(PYTHON)' has neither venv nor pip; as root: apt-get install python3-venv"
	    exit 1
	fi
	$(BIN)/python -m pip install $(TORCH)
	$(BIN)/python -m pip install --editable '.[$(patsubst .venv/%-$(KEY),%,$@)]'
	rm -f .venv/train-* .venv/dev-*
	touch .venv/train-$(KEY) $@

# What tests need beside Python: a browser, a Redis and a PostgreSQL server.  Without them their tests are skipped.
system:
	@missing=()
	command -v chromium >/dev/null || missing+=(chromium)
	command -v redis-server >/dev/null || missing+=(redis-server)
	command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
	if [ $${#missing[@]} = 0 ]; then exit 0; fi
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	    export DEBIAN_FRONTEND=noninteractive
	    apt-get update && apt-get install -y --no-install-recommends "$${missing[@]}"
	else
	    echo "Missing: $${missing[*]}. Their tests are skipped; as root: apt-get install $${missing[*]}"
	fi
