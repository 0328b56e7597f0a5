# make demo and make test need only Python ≥ 3.11, git and make: everything else is set up in .venv, once. The demo sets up
# what `pip install idiograph` does, without torch; the tests add the extras and the tools to it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all check format bench docs install-check model clean

demo: $(CORE)
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

# The wheel in empty environments: make install-check PYTHONS="python3.11 python3.12 python3.13"
PYTHONS ?= $(PYTHON)
install-check: $(READY)
	$(BIN)/python scripts/check_install.py $(PYTHONS)

# idiograph-small anew, where there is a GPU: make model CORPORA=folder GRANITE=folder
model: $(READY)
	IDIOGRAPH=$(abspath $(BIN)/idiograph) recipes/idiograph-small/data.sh $(CORPORA) models/work
	IDIOGRAPH=$(abspath $(BIN)/idiograph) recipes/idiograph-small/train.sh models/work $(GRANITE)
	$(BIN)/python recipes/idiograph-small/runs.py models/work models/work/models/idiograph-small

$(CORE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --constraint constraints.txt --editable .
	touch $@

# pip 25.1 is the first that reads [dependency-groups]. torch comes before the rest and by its exact version: a range would
# pull the newest build with gigabytes of GPU libraries.
$(READY): $(CORE)
	$(INSTALL) "pip>=25.1"
	$(INSTALL) "torch==2.13.0"
	$(INSTALL) --constraint constraints.txt --editable ".[all]" --group dev
	touch $@

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .ruff_cache .hypothesis
