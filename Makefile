# Everything a newcomer needs: `make run` and `make test`. Both set up .venv by themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: run test check lock clean

run: .venv/.run  ## the bot; without TELEGRAM_BOT_TOKEN the playground in your browser
	$(BIN)/python -m bot

test: .venv/.dev  ## the whole suite
	$(BIN)/python -m pytest

check: .venv/.dev  ## style, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: .venv/.dev  ## pins again after a change of pyproject.toml
	$(PIP) install uv
	$(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --upgrade pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --custom-compile-command "make lock" --constraints requirements.txt \
	  pyproject.toml --group dev -o requirements-dev.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.run: .venv/bin/python requirements.txt
	$(PIP) install --require-hashes -r requirements.txt
	touch $@

.venv/.dev: .venv/bin/python requirements-dev.txt
	$(PIP) install --require-hashes -r requirements-dev.txt
	touch $@ .venv/.run
