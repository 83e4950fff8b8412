# `make compare` and `make test` do everything from a fresh clone; `make help` lists the rest.
#
# PYTHON   interpreter that creates the virtual environment (3.10 or newer)
# VENV     where it is created
# ARGS     more arguments for the program that a target runs, e.g. make test ARGS="-k snapshot"
# WORKERS  number of parallel test processes
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
WORKERS ?= 2

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt
# Both name the inputs of the installation, so that a second run is quick.
INSTALLED := $(VENV)/.installed
INSTALLED_TEST := $(VENV)/.installed-test

.DEFAULT_GOAL := help
.PHONY: help install compare full test test-slow lint format speed clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "This needs Python 3.10 or newer, but '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>&1 || echo missing)." \
	    "Name another one: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot create virtual environments. On Debian or Ubuntu:" \
	    "apt-get install python3-venv" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the packages (the first time takes a few minutes)"
	@$(PIP_INSTALL) -e .
	@touch $@

$(INSTALLED_TEST): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the packages with what the tests need (the first time takes a few minutes)"
	@$(PIP_INSTALL) -e '.[interop,llm,research,test]'
	@touch $(INSTALLED) $@

install: $(INSTALLED)  ## create the virtual environment and install the packages

compare: $(INSTALLED)  ## train and compare all methods in a few minutes
	$(BIN)/mpt compare crafting/iron-pickaxe-v0 --quick $(ARGS)

full: $(INSTALLED)  ## the comparison of the committed results (17 minutes)
	$(BIN)/mpt compare crafting/iron-pickaxe-v0 $(ARGS)

test: $(INSTALLED_TEST)  ## run the test suite
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

test-slow: $(INSTALLED_TEST)  ## run the tests that take minutes
	$(BIN)/python -m pytest -n $(WORKERS) -m slow $(ARGS)

lint: $(INSTALLED_TEST)  ## style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED_TEST)  ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

speed: $(INSTALLED_TEST)  ## measure the speed of environments and training, beside other libraries
	$(BIN)/python -m benchmarks.speed $(ARGS)

clean:  ## remove caches and compiled kernels (not the virtual environment)
	rm -rf build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache *.egg-info
	find wrappers mpt_envs mpt_train benchmarks tests -name __pycache__ -prune -exec rm -rf {} +
