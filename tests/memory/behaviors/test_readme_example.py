"""The example of an operator's own behavior does what the page says."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import memory.behaviors
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.manager import AIContextBehaviorManager
from tests.memory.behaviors.batches import DAY, NOW, call_context, said

PAGE = Path(memory.behaviors.__file__).with_name("README.md")  # NOW is a Friday


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AIContextBehavior]:
    """Give the class of the page, imported from a file of its own."""
    code, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) <= 30
    (tmp_path / "opening_hours_example.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = import_module("opening_hours_example").OpeningHours()
    assert isinstance(made, AIContextBehavior)
    yield made
    del sys.modules["opening_hours_example"]


@pytest.mark.parametrize(("days", "told"), [(0, ""), (3, "Today is Monday; we are closed.")])
async def test_it_tells_what_matters_today(
    example: AIContextBehavior, days: int, told: str
) -> None:
    today = replace(call_context(), now=NOW + days * DAY)
    behaviors = AIContextBehaviorManager([example], time_limit_s=5)
    assert await behaviors.on_model_invoke(today, [said(0, "A table?")]) == told


async def test_its_function_is_offered_and_answers(example: AIContextBehavior) -> None:
    behaviors = AIContextBehaviorManager([example], time_limit_s=5)
    (function,) = behaviors.functions
    day = function.arguments.model_validate_json('{"date": "2025-11-24"}')
    assert await function.run(day, None) == "closed"  # type: ignore[arg-type]
    assert "`is_open`" in behaviors.instructions


def test_every_room_is_on_the_page() -> None:
    rooms = {path.name for path in PAGE.parent.glob("[a-z]*.py")}
    assert rooms <= set(re.findall(r"`(\w+\.py)`", PAGE.read_text()))
