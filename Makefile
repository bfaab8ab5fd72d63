# make demo and make test do all the set-up themselves; PYTHON chooses the interpreter.
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,\
            $(if $(shell $(name) -c 'import sys, venv, ensurepip; print(sys.version_info >= (3, 11) or "")' 2>/dev/null),$(name))))
# newer Pythons that the tests also run on, the newest first; found by name, or where pyenv keeps them
NEWER := 3.13 3.12
found = $(firstword $(foreach name,python$(1) $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python),\
          $(if $(shell $(name) -c 'import venv, ensurepip; print(1)' 2>/dev/null),$(name))))
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# RecTools needs numpy 1.26, so it has an environment of its own
RECTOOLS ?= .venv-rectools
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# PART=2/6 runs the second of six parts of a tier, by file
PYTEST := $(BIN)/python -m pytest -n auto -q $(if $(PART),--part $(PART))

.PHONY: scale demo test test-engines test-browser test-faults test-realdata test-lightfm test-slow test-research test-all \
  test-newest test-rectools check bench-setup bench format clean pictures report-pictures docs release-check

# the library alone is all the demo needs
$(VENV)/.library: pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or newer with venv is needed; set PYTHON=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

# what the fast tests and the checks need: wheels alone; pip knows dependency groups from 25.1 on
$(READY): $(VENV)/.library
	$(PIP) 'pip>=25.1'
	$(PIP) --editable '.[pandas,models,report]' --group test --group check
	touch $@

$(VENV)/.engines: $(READY)
	$(PIP) --editable '.[dask,spark]' --group engines
	touch $@

$(VENV)/.docs: $(READY)
	$(PIP) --group docs
	touch $@

$(VENV)/.browser: $(VENV)/.docs
	$(PIP) --group browser
	touch $@

$(VENV)/.lightfm: $(READY)
	$(PIP) --editable '.[lightfm]'
	touch $@

$(VENV)/.research: $(READY) research/pyproject.toml
	$(PIP) --editable research
	touch $@

demo: $(VENV)/.library  ## a small world with known truth: one question, one picture
	$(BIN)/truerank demo --force

test: $(READY)  ## the fast tests; they end with the names of the tiers that were not run
	$(PYTEST)

test-engines: $(VENV)/.engines  ## Dask, Spark (which needs Java) and object stores: the same numbers, and what gets lost on the way
	$(PYTEST) -m "engines and not slow" tests/engines

test-browser: $(VENV)/.browser  ## reports and the site in chromium
	$(PYTEST) -m "browser and not slow" tests/browser

test-faults: $(READY)  ## processes that are killed, starved or started in odd surroundings; files that are damaged
	$(PYTEST) -m "faults and not slow" tests/faults tests/io tests/reliability

test-realdata: $(READY)  ## public data sets, in the folder that TRUERANK_DATA names
	$(PYTEST) -m "realdata and not slow" tests

test-lightfm: $(VENV)/.lightfm  ## LightFM, which is built from source on Python 3.11
	$(PYTEST) -m "lightfm and not slow" tests/models tests/cli src/truerank/models

test-slow: $(VENV)/.engines $(VENV)/.browser $(VENV)/.lightfm  ## whole products of cases, and what takes minutes
	$(PYTEST) -m slow

test-research: $(VENV)/.research  ## every reproduction and validation study in its quick size, and the pages of their results
	$(PYTEST) research

$(RECTOOLS)/.ready: pyproject.toml constraints-rectools.txt
	$(PYTHON) -m venv $(RECTOOLS)
	$(RECTOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-rectools.txt \
	  --only-binary :all: --editable . rectools pytest pytest-xdist hypothesis pyarrow
	touch $@

test-rectools: $(RECTOOLS)/.ready  ## RecTools itself, and a fast part of the tests on numpy 1.26
	$(RECTOOLS)/bin/python -m pytest -n auto -q tests/newcomers tests/evaluation/test_presets.py tests/evaluation/test_holdout.py \
	  tests/ranking tests/io/test_formats.py tests/io/test_recognised.py tests/golden/test_golden.py \
	  src/truerank/core src/truerank/io src/truerank/ranking src/truerank/metrics src/truerank/estimators src/truerank/evaluation

test-all: test-rectools test-research $(VENV)/.engines $(VENV)/.browser $(VENV)/.lightfm  ## every test, and the fast ones on newer Pythons where they are found
	$(PYTEST) -m ""
	@for version in $(NEWER); do $(MAKE) --no-print-directory test-$$version || exit 1; done

test-newest: test-$(firstword $(foreach version,$(NEWER),$(if $(call found,$(version)),$(version))) $(NEWER))  ## the fast tests on the newest Python found

test-3.%:  ## the fast tests on another Python, in an environment of its own: make test-3.13
	@$(if $(call found,3.$*),$(MAKE) --no-print-directory test PYTHON=$(call found,3.$*) VENV=.venv-3.$*,echo "Python 3.$* not found: skipped")

check: $(READY)  ## style and types
	$(BIN)/ruff format --check src research tests benchmarks docs/making
	$(BIN)/ruff check src research tests benchmarks docs/making
	$(BIN)/mypy


pictures: $(READY)  ## the pictures of the README, of guides and of the tutorials, into docs/figures
	$(BIN)/python -m docs.making first planning beyond_accuracy verdicts watch tutorials

report-pictures: $(VENV)/.browser  ## one report of each kind in Debian's chromium, into docs/figures/report; the reports in build/reports
	$(BIN)/python -m docs.making report

docs: $(VENV)/.docs  ## the documentation as a site that opens from files, into build/site
	@# with --quiet warnings are not counted, and --strict says nothing
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench-setup:  ## one environment per peer of the benchmarks, in .bench
	@for peer in ranx rectools pytrec_eval; do \
	  [ -x .bench/$$peer/bin/python ] || { python3.11 -m venv .bench/$$peer && \
	  .bench/$$peer/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
	    --requirement benchmarks/requirements/$$peer.txt; } || exit 1; \
	done

scale: $(VENV)/.engines  ## time and memory by size and engine, into benchmarks/scale.json; at most 5 GB of disk
	$(BIN)/python -m benchmarks scale --json --keep
	$(BIN)/python -m docs.making scale

bench: $(READY) bench-setup  ## the benchmarks, into docs/performance.md
	$(BIN)/python -m benchmarks page

release-check:  ## an sdist and a wheel, checked, installed afresh and tried; left in dist/, published by nobody
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or newer with venv is needed; set PYTHON=..."; exit 2; }
	$(PYTHON) tests/support/release_check.py --out dist

format: $(READY)
	$(BIN)/ruff check --fix src research tests benchmarks docs/making
	$(BIN)/ruff format src research tests benchmarks docs/making

clean:
	rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis truerank-demo
