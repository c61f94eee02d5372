"""No default is a model whose end is announced; the SDK's docstrings name these models."""

import inspect
import re
from types import ModuleType

import pytest
from openai.types import embedding_model
from openai.types.shared import chat_model

from tests.settings import Settings

_QUOTED = re.compile(r'"([^"\s]+)"')


def ending(module: ModuleType) -> frozenset[str]:
    """Return the models that a module of the SDK names in the docstrings of its types."""
    texts = re.findall(r'"""(.*?)"""', inspect.getsource(module), re.DOTALL)
    return frozenset(name for text in texts for name in _QUOTED.findall(text))


def default_of(setting: str) -> str:
    return str(Settings.model_fields[setting].default)


def test_the_sdks_docstrings_name_models_that_end() -> None:
    assert {"gpt-4.1-mini", "gpt-5-mini", "gpt-3.5-turbo"} <= ending(chat_model)


@pytest.mark.parametrize(
    ("setting", "module"),
    [("openai_model", chat_model), ("openai_embedding_model", embedding_model)],
)
def test_a_default_model_is_known_to_the_sdk_and_its_end_is_not_announced(
    setting: str, module: ModuleType
) -> None:
    default = default_of(setting)
    assert f'"{default}"' in inspect.getsource(module)
    assert default not in ending(module)
