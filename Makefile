# make demo and make test do all the set-up themselves; PYTHON chooses the interpreter.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all check coverage published-bias format clean

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is needed; set PYTHON=python3.x (3.11 or newer)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)  ## a small world with known truth, end to end
	$(BIN)/truerank demo

test: $(READY)  ## the fast tests
	$(BIN)/python -m pytest -n auto -q

test-all: $(READY)  ## every test, also on newer Pythons where they are found
	$(BIN)/python -m pytest -n auto -q -m ""
	@for version in 3.12 3.13; do \
	  if python$$version -c '' 2>/dev/null; then \
	    $(MAKE) test PYTHON=python$$version VENV=.venv-$$version || exit 1; \
	  else echo "python$$version not found: skipped"; fi; \
	done

check: $(READY)  ## style and types
	$(BIN)/ruff format --check src tests scripts
	$(BIN)/ruff check src tests scripts
	$(BIN)/mypy

coverage: $(READY)  ## coverage of intervals on KuaiRec, 2,000 draws, into docs/results/coverage.md
	PYTHONPATH=scripts $(BIN)/python scripts/interval_coverage.py

published-bias: $(READY)  ## what the published mean converges to on KuaiRec, into docs/results/published-bias.md
	PYTHONPATH=scripts $(BIN)/python scripts/published_bias.py

format: $(READY)
	$(BIN)/ruff check --fix src tests scripts
	$(BIN)/ruff format src tests scripts

clean:
	rm -rf $(VENV) .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis truerank-demo
