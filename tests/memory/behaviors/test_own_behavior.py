"""The first example of docs/behaviors.md works, and the package README names its files."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import memory.behaviors
from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager
from tests.memory.behaviors.batches import DAY, NOW, call_context, said

PACKAGE = Path(memory.behaviors.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "behaviors.md"  # NOW is a Friday


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AIContextBehavior]:
    """Import the class of the page from a file."""
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 30
    (tmp_path / "opening_hours_example.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = import_module("opening_hours_example").OpeningHours()
    assert isinstance(made, AIContextBehavior)
    yield made
    del sys.modules["opening_hours_example"]


@pytest.mark.parametrize(("days", "expected"), [(0, ""), (3, "Today is Monday; we are closed.")])
async def test_the_example_shows_what_matters_today(
    example: AIContextBehavior, days: int, expected: str
) -> None:
    today = replace(call_context(), now=NOW + days * DAY)
    behaviors = AIContextBehaviorManager([example], time_limit_s=5)
    assert await behaviors.on_model_invoke(today, [said(0, "A table?")]) == expected


async def test_the_function_of_the_example_answers(example: AIContextBehavior) -> None:
    behaviors = AIContextBehaviorManager([example], time_limit_s=5)
    (function,) = behaviors.functions
    day = function.arguments.model_validate_json('{"date": "2025-11-24"}')
    assert await function.run(day, None) == "closed"  # type: ignore[arg-type]
    assert "`is_open`" in behaviors.instructions


def test_the_readme_names_every_file() -> None:
    files = {path.name for path in PACKAGE.glob("[a-z]*.py")}
    assert files <= set(re.findall(r"`(\w+\.py)`", (PACKAGE / "README.md").read_text()))
