"""docs/models.md has a recipe for every server that `check` knows, made of valid settings."""

import re
from pathlib import Path

import pytest

from bot.model.trouble import KNOWN
from config.loading import load_settings
from tests.bot.features.check.test_known_servers import WRONG, Wrong
from tests.settings import Settings

_GUIDE = (Path(__file__).parents[4] / "docs" / "models.md").read_text()
_SECTIONS = {part.partition("\n")[0]: part for part in _GUIDE.split("\n## ")[1:]}


def test_every_known_server_has_a_section_in_the_guide() -> None:
    assert set(_SECTIONS) == {server.name for server in KNOWN}


@pytest.mark.parametrize("name", _SECTIONS)
def test_a_recipe_holds_only_valid_settings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(field.upper(), raising=False)
    [recipe] = re.findall(r"```ini\n(.*?)```", _SECTIONS[name], re.DOTALL)
    env_file = tmp_path / ".env"
    env_file.write_text(recipe)
    settings = load_settings(str(env_file))
    given = dict(line.split("=", 1) for line in recipe.splitlines())
    assert {variable.lower() for variable in given} <= Settings.model_fields.keys()
    assert settings.openai_base_url == given.get("OPENAI_BASE_URL", "https://api.openai.com/v1")


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.dialect.server}-{wrong.row}")
def test_the_guide_shows_the_row_of_each_typical_mistake(wrong: Wrong) -> None:
    section = _SECTIONS[wrong.dialect.server]
    assert re.search(rf"\| {wrong.row}: .* → {re.escape(wrong.advice)}", section)
