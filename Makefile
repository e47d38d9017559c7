# Everything from a fresh clone: `make demo`, `make test`, `make docs`. Needs python3 >= 3.11 with venv, and a package registry.
PYTHON ?= python3
BIN := .venv/bin
LOWEST := .venv-lowest/bin
PIP := -m pip install --quiet --quiet --disable-pip-version-check
TESTED := PYTHONWARNINGS=default
# What rests on no library but torch is not run again with the lowest versions.
NOT_CORE := studio inference distributions subsets baselines networks coding training models test_house.py test_imputation_scores.py test_results.py \
	test_readme.py test_scikit_learn.py io/test_datasets.py modalities/test_drawing.py modalities/images/test_images.py \
	modalities/tables/test_acquisition_face.py modalities/tables/test_strange_tables.py archives/test_settings.py archives/test_pyramid.py \
	archives/test_tables.py
CORE := tests $(addprefix --ignore=tests/,$(NOT_CORE))

.PHONY: demo test test-slow test-all lint docs coverage report campaign bench clean

demo: .venv/installed
	@$(BIN)/python examples/01_table.py
	@$(BIN)/python examples/06_pictures.py
	@$(BIN)/python examples/08_text.py

test: lint
	@$(TESTED) $(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: .venv/installed
	@$(TESTED) $(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# The core of the tests with the newest and the lowest versions of all that is needed, and archives of each read by the other.
test-all: test-slow .venv-lowest/installed
	@echo "with the versions of constraints.txt:"
	@$(TESTED) $(BIN)/python -m pytest -n 2 --dist worksteal $(CORE)
	@echo "with those of constraints-lowest.txt:"
	@$(TESTED) $(LOWEST)/python -m pytest -n 2 --dist worksteal $(CORE)
	@rm -rf out/across && mkdir -p out/across/newest out/across/lowest
	@$(BIN)/python tests/across.py make out/across/newest && $(LOWEST)/python tests/across.py read out/across/newest
	@$(LOWEST)/python tests/across.py make out/across/lowest && $(BIN)/python tests/across.py read out/across/lowest

# Every attack of tests/campaign again and again with new seeds: make campaign MINUTES=10
MINUTES ?= 60
campaign: .venv/installed
	@PYTHONPATH=src:tests nice $(BIN)/python -m campaign $(MINUTES)

lint: .venv/installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# The site in out/site; a warning or a broken link ends it.
docs: .venv/docs
	@$(BIN)/python bench/report.py --check
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "out/site/index.html"

# How much of src the tests of `make test` run, line by line.
coverage: .venv/installed
	@$(TESTED) $(BIN)/python -m pytest -n 2 --dist worksteal --cov=anyorder --cov-report=term:skip-covered --cov-report=html:out/coverage

# The pages of docs/benchmarks and the README's table, from bench/results.
report: .venv/installed
	@$(BIN)/python bench/report.py

bench: .venv/installed
	@$(BIN)/python bench/mac_table7.py --out out/bench/mac_table7.json
	@$(BIN)/python bench/edges.py --out out/bench/edges.json
	@$(BIN)/python bench/scoring.py --out out/bench/scoring.json

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "anyorder needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name another one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
		|| { echo "anyorder needs Python's venv module; install it (on Debian: apt-get install python3-venv)."; exit 1; }
	@echo "setting up .venv (once; a few minutes, mostly PyTorch) ..."
	@test -x $(BIN)/python || PYTHONWARNINGS=ignore $(PYTHON) -m venv .venv
	@PYTHONWARNINGS=ignore $(BIN)/python $(PIP) -c constraints.txt -e ".[dev]" \
		|| { echo "the installation failed: see pip's message above; the package registry must be reachable."; exit 1; }
	@touch $@

.venv/docs: .venv/installed
	@PYTHONWARNINGS=ignore $(BIN)/python $(PIP) -c constraints.txt -e ".[docs]"
	@touch $@

.venv-lowest/installed: pyproject.toml constraints-lowest.txt
	@echo "setting up .venv-lowest (once; a few minutes, mostly PyTorch) ..."
	@test -x $(LOWEST)/python || PYTHONWARNINGS=ignore $(PYTHON) -m venv .venv-lowest
	@PYTHONWARNINGS=ignore $(LOWEST)/python $(PIP) -c constraints-lowest.txt -e ".[test]" \
		|| { echo "the installation failed: see pip's message above. The lowest versions are those for Python 3.11: make PYTHON=python3.11 ..."; exit 1; }
	@touch $@

clean:
	rm -rf .venv .venv-lowest out .pytest_cache .mypy_cache .ruff_cache
