# Everything from a fresh clone: `make demo`, `make test`. Needs python3 >= 3.11 with venv, and a package registry.
PYTHON ?= python3
BIN := .venv/bin
export PYTHONWARNINGS ?= default

.PHONY: demo test lint bench clean

demo: .venv/installed
	@$(BIN)/python examples/01_table.py
	@$(BIN)/python examples/06_pictures.py

test: lint
	@$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: .venv/installed
	@$(BIN)/python bench/mac_table7.py
	@$(BIN)/python bench/edges.py
	@$(BIN)/python bench/scoring.py

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "anyorder needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "anyorder needs Python's venv module; install it (on Debian: apt-get install python3-venv)."; exit 1; }
	@echo "setting up .venv (once; a few minutes, mostly PyTorch) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]" \
		|| { echo "the installation failed: see pip's message above; the package registry must be reachable."; exit 1; }
	@touch $@

clean:
	rm -rf .venv out .pytest_cache .mypy_cache .ruff_cache
