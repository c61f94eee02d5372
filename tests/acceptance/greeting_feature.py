"""A feature as an operator writes one: a command, a behavior with a tool, and its sentences."""

from collections.abc import Sequence

from pydantic import Field

from bot.commands.bot_command import Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.reply.parts import Part
from bot.telegram.updates import IncomingMessage
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import CallContext
from memory.behaviors.tool import Arguments, Tool
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope


class Bow(Arguments):
    to: str = Field(description="Who is greeted")


async def bow(bow_: Bow, _: object) -> str:
    return f"bowed to {bow_.to}"


class Greetings(AIContextBehavior):
    name = "greetings"
    functions = (Tool("bow", "Bow to somebody.", Bow, bow, is_untrusted=False),)

    async def on_model_invoke(self, _: CallContext, new_messages: Sequence[Message]) -> str:
        return f"They wrote {len(new_messages)} message." if new_messages else ""


class HelloCommand:
    def __init__(self, sentences: Sentences) -> None:
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        name = asked.sender.first_name
        return Answer(self._sentences.say(asked.sender.language, "hello.said", name=name))


async def say_hours(request: Request, _: ChatHistory) -> Outbox | None:
    is_asked = "opening hours" in request.message.text
    return Outbox(request.to, (Part("Open at nine."),)) if is_asked else None


def feature(services: Services) -> Feature:
    return Feature(
        name="greeting",
        steps=[say_hours],
        commands=[BotCommand("hello", HelloCommand(services.sentences).answer)],
        behaviors=[Greetings()],
        sentences={
            "en": {"commands.hello": "greets you", "hello.said": "**Hello**, {name}!"},
            "de": {"commands.hello": "grüßt dich", "hello.said": "**Hallo**, {name}!"},
        },
    )


def taken(services: Services) -> Feature:
    """Have a command that the bot has already."""
    hello = feature(services).commands[0]
    return Feature(name="taken", commands=[BotCommand("export", hello.handler, "unlisted")])


def silent(services: Services) -> Feature:
    """Lack the sentence that the menu shows."""
    return Feature(name="silent", commands=feature(services).commands)


def looking(_: Services) -> Feature:
    """Name a kind of file that no message has."""
    return Feature(name="looking", file_steps={"video": say_hours})  # type: ignore[dict-item]


def broken(_: Services) -> Feature:
    raise RuntimeError("secret words")
