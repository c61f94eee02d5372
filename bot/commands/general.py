"""`/start`, `/help`, `/new` and `/ask`: answered from the catalogue alone."""

from collections.abc import Sequence

from bot.commands.access import Operators
from bot.commands.bot_command import Answer, Audience, BotCommand
from bot.commands.sentences import Sentences
from bot.reply.render import render
from bot.telegram.bot_account import BotIdentity
from bot.telegram.updates import IncomingMessage
from memory.queue.off_record import OffRecordSessions
from memory.store.keys import Scope

LISTED: dict[str, tuple[Audience, ...]] = {
    "private": ("everyone", "private"),
    "group": ("everyone", "groups"),
}
"""Which commands menus and /help list in a private chat and in a group."""


class GeneralCommands:
    """Answers what needs no memory."""

    def __init__(self, me: BotIdentity, sessions: OffRecordSessions, sentences: Sentences) -> None:
        self._me = me
        self._sessions = sessions
        self._sentences = sentences

    async def start(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what the bot does, what it keeps, and how to erase it.

        `asked.text` is the payload of the link that the person followed; an unknown one is ignored.
        """
        if asked.is_group:
            return self._say(asked, "start.group", username=self._me.username)
        return self._say(asked, "start.private", name=asked.sender.first_name, bot=self._me.name)

    async def ask(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Explain `/ask`; with a question behind it, it never comes here."""
        return self._say(asked, "ask.empty")

    async def new(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """End the session: earlier messages leave the window, memory stays.

        Off the record only the words of that session go.
        """
        is_off = await self._sessions.is_open(conversation)
        parts = self._sentences.say(asked.sender.language, "off.new" if is_off else "new.done")
        return Answer(parts, ends_session=True)

    def _say(self, asked: IncomingMessage, key: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, key, **values))


class HelpCommand:
    """`/help`: lists the commands of this place, and for operators theirs in private."""

    def __init__(
        self,
        others: Sequence[BotCommand],
        me: BotIdentity,
        operators: Operators,
        sentences: Sentences,
    ) -> None:
        self.command = BotCommand("help", self.answer)
        self._listed = (*others, self.command)
        self._me = me
        self._operators = operators
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """List the commands."""
        place = "group" if asked.is_group else "private"
        language, text = asked.sender.language, self._sentences.text
        texts = [
            text(language, f"help.{place}", username=self._me.username),
            self._lines(language, LISTED[place]),
            text(language, "help.asks_first"),
        ]
        if not asked.is_group and asked.sender in self._operators:
            texts += [text(language, "help.operators"), self._lines(language, ("operators",))]
        return Answer(render("\n\n".join(texts)))

    def _lines(self, language: str, audiences: Sequence[Audience]) -> str:
        return "\n".join(
            self._sentences.text(
                language,
                "help.line",
                command=command.name,
                does=self._sentences.text(language, f"commands.{command.name}"),
            )
            for command in self._listed
            if command.audience in audiences
        )
