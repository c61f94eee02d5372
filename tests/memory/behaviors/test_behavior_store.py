"""The example of docs/behaviors.md stores texts, which are erased like all else."""

from dataclasses import replace

import orjson
import pytest

from bot.assistant import behaviors_of
from bot.operator_classes import UnusableClass
from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager
from memory.behaviors.behavior_store import BehaviorStore, CannotStore
from memory.behaviors.context import CallContext
from memory.behaviors.tool import Arguments, Tool
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.history import ChatHistory
from memory.scopes.writes import ToolWrite, to_json
from tests.bot.features.services import services_of
from tests.conftest import Documented
from tests.memory.behaviors.batches import call_context
from tests.memory.learning.scripted import talk
from tests.memory.turns import HERE
from tests.memory.words_embedder import WordsEmbedder
from tests.settings import Settings


class AlsoList(AIContextBehavior):
    name = "shopping_list"


class Nameless(AIContextBehavior):
    def __init__(self, store: BehaviorStore) -> None:
        self.store = store


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


@pytest.fixture
def paths(documented: Documented) -> str:
    """Return the import path of the class of the page."""
    return f"{documented('behaviors.md', 'class ShoppingList').__name__}:ShoppingList"


def made(memory: Memory, *paths: str) -> AIContextBehaviorManager:
    settings = Settings(_env_file=None, learn="off", documents="off", behaviors=",".join(paths))
    return behaviors_of(services_of(memory, settings))


class Chat:
    """Turns that use the example."""

    def __init__(self, memory: Memory, behaviors: AIContextBehaviorManager) -> None:
        self.memory = memory
        self.behaviors = behaviors

    @staticmethod
    def now(writes: list[ToolWrite] | None = None) -> CallContext:
        return replace(call_context(HERE), writes=writes)

    async def put(self, name: str) -> str:
        """Run a turn that puts something on the list; return what the model sees in it."""
        (tool,) = [each for each in self.behaviors.functions if each.name == "put_on_list"]
        writes: list[ToolWrite] = []
        here = self.now(writes)

        class Context:
            call_context = here

        await tool.run(tool.arguments(name=name), Context())  # type: ignore[arg-type]
        text = await self.behaviors.on_model_invoke(here, [])
        closing = Closing(writes=to_json(writes))
        await talk(self.memory, f"Buy {name}", closing=closing)
        await self.memory.learn(HERE)
        return text

    async def shown(self) -> str:
        await self.memory.scopes.read(HERE)
        return await self.behaviors.on_model_invoke(self.now(), [])


async def test_stored_texts_are_shown_later_and_exported(memory: Memory, paths: str) -> None:
    chat = Chat(memory, made(memory, paths))
    assert await chat.shown() == "Shopping list: empty"
    assert await chat.put("oat milk") == "Shopping list: oat milk"
    await chat.put("bread")
    assert await chat.shown() == "Shopping list: oat milk, bread"
    exported = orjson.loads((await memory.exporter.export(HERE)).content)
    kept = {"oat milk": "oat milk", "bread": "bread"}
    assert exported["kept_by_behaviors"] == {"shopping_list": kept}


async def test_a_stored_text_is_erased_with_its_message_or_all(memory: Memory, paths: str) -> None:
    chat = Chat(memory, made(memory, paths))
    await chat.put("oat milk")
    await chat.put("bread")
    await memory.forgetting.erase_messages(HERE, {1}, "receipt")
    assert await chat.shown() == "Shopping list: bread"
    history = await ChatHistory.read(memory.histories, HERE)
    await history.clear()
    assert await chat.shown() == "Shopping list: empty"


async def test_behaviors_do_not_see_each_others_texts(memory: Memory, paths: str) -> None:
    chat = Chat(memory, made(memory, paths))
    await chat.put("oat milk")
    assert await BehaviorStore(memory.scopes, "shopping").read(chat.now()) == {}
    assert len(made(memory, paths, paths).behaviors) == 1
    with pytest.raises(UnusableClass, match=r"BEHAVIORS.*: two behaviors have the name"):
        made(memory, paths, f"{__name__}:AlsoList")
    with pytest.raises(UnusableClass, match="needs a `name` of its own"):
        made(memory, f"{__name__}:Nameless")


class Unsigned(AIContextBehavior, dict[str, str]):  # Python knows no signature of `dict`
    name = "unsigned"


class Unbuilt(AIContextBehavior):
    name = "unbuilt"

    def __init__(self) -> None:
        raise KeyError("a word of the operator")


async def _nothing(_arguments: Arguments, _context: object) -> str:
    return ""


class Spaced(AIContextBehavior):
    name = "spaced"
    functions = (Tool("put on list", "", Arguments, _nothing),)


class NoTool(AIContextBehavior):
    name = "no_tool"
    functions = (_nothing,)  # type: ignore[assignment]  # a mistake that the guide invites


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Unsigned", r"^BEHAVIORS: Unsigned cannot be built \(ValueError at inspect.py:\d+\)$"),
        ("Chat", "^BEHAVIORS: .*:Chat is not an AIContextBehavior$"),
        ("Unbuilt", r"Unbuilt cannot be built \(KeyError at test_behavior_store.py:\d+\)$"),
        ("Spaced", "each of its `functions` must be a `Tool` with a name of"),
        ("NoTool", "each of its `functions` must be a `Tool` with a name of"),
    ],
)
def test_an_unusable_behavior_is_refused_at_the_start(memory: Memory, name: str, why: str) -> None:
    with pytest.raises(UnusableClass, match=why):
        made(memory, f"{__name__}:{name}")


async def test_nothing_is_stored_after_the_answer_or_beyond_the_limits(memory: Memory) -> None:
    store = BehaviorStore(memory.scopes, "list")
    with pytest.raises(CannotStore):
        await store.keep(Chat.now(), "a", "b")
    with pytest.raises(CannotStore):
        await store.keep(Chat.now([]), "a", "b" * 1_001)
