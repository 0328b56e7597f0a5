# make demo and make test need only Python ≥ 3.11, git and make: everything else is set up in .venv, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all check format bench docs model clean

demo: $(READY)
	$(BIN)/idiograph demo -o demo

test: check
	$(BIN)/python -m pytest -n 2

test-all: check
	$(BIN)/python -m pytest -n 2 -m "slow or not slow"

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(READY)
	$(BIN)/python scripts/cli_docs.py

# idiograph-small anew, where there is a GPU: make model CORPORA=folder GRANITE=folder
model: $(READY)
	IDIOGRAPH=$(abspath $(BIN)/idiograph) recipes/idiograph-small/data.sh $(CORPORA) models/work
	IDIOGRAPH=$(abspath $(BIN)/idiograph) recipes/idiograph-small/train.sh models/work $(GRANITE)
	$(BIN)/python recipes/idiograph-small/runs.py models/work models/work/models/idiograph-small

# torch comes first and by its exact version: a range would pull the newest build with gigabytes of GPU libraries.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .ruff_cache .hypothesis
