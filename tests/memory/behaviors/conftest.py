"""The scopes of a memory on a real, empty Valkey."""

import pytest

from memory.memory import Memory
from memory.scopes.scopes import Scopes


@pytest.fixture
def scopes(memory: Memory) -> Scopes:
    return memory.scopes
