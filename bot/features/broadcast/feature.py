"""`/broadcast`: an operator sends a message to all private chats."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from bot.commands.bot_command import Answer, BotCommand, ShownOnTop
from bot.commands.notices import mutes, set_mute
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.broadcast.announcements import (
    ACTIVE_DAYS,
    NEWS,
    Announcement,
    AnnouncementProgress,
    Announcements,
)
from bot.features.broadcast.sending import MUTE, STOP, Announcing, BroadcastStatus, HalfRate
from bot.reply.parts import Parts
from bot.runtime.maintenance import repeat
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.questions import Question, Questions
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

_LOOK_EVERY_S = 15.0
_SEND, _DONT_SEND = "broadcast", "dont_broadcast"


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences, admission = services.memory, services.sentences, services.admission
    announcements = Announcements(memory.store)
    status = BroadcastStatus(services.chat, sentences)
    broadcast = BroadcastCommand(
        announcements, memory.questions, status, sentences, admission.serves_person
    )
    asking = {_SEND: broadcast.send, _DONT_SEND: broadcast.refuse, STOP: broadcast.stop}
    permits = HalfRate(services.chat, services.settings.sends_per_second)
    announcing = Announcing(announcements, services.chat, permits, admission, sentences)
    news = memory.scopes.noted[NEWS]
    looking = partial(repeat, announcing.check, "announcement", _LOOK_EVERY_S, news)

    async def mute(pressed: ButtonPress, _: Scope, __: str) -> Parts:
        if not pressed.is_group:
            await set_mute(memory.scopes, pressed.sender.id, pressed.update_id, is_muted=True)
        raise ShownOnTop("mute.only_private" if pressed.is_group else "mute.on")

    async def exported(_: Scope, facts: ScopeMemory) -> Mapping[str, object]:
        return {"announcements_muted": mutes(facts)}

    return Feature(
        name="broadcast",
        commands=[BotCommand("broadcast", broadcast.answer, "operators", asking)],
        buttons={MUTE: mute},
        says_unasked=bool(services.settings.admin_user_ids),
        tasks=(looking,) if services.works else (),
        forgets=(announcements.forget,),
        exports=(exported,),
    )


@dataclass(frozen=True, slots=True, eq=False)
class BroadcastCommand:
    """Asks first; a worker sends the message when the question is confirmed."""

    announcements: Announcements
    questions: Questions
    status: BroadcastStatus
    sentences: Sentences
    is_member: Callable[[int], bool]  # who may use the bot now; nobody else gets it

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say to how many chats the replied message would go, and ask."""
        language = asked.sender.language
        if not asked.replied_to:
            return self._say(language, "usage")
        if await self.announcements.is_open():
            return self._say(language, "busy")
        chats = await self.announcements.count(self.is_member, besides=asked.chat_id)
        if not chats:
            return self._say(language, "nobody", days=ACTIVE_DAYS)
        said = self._say(language, "ask", chats=chats, days=ACTIVE_DAYS)
        question = Question("broadcast", asked.sender.id, str(asked.replied_to))
        return Answer(self.sentences.ask(language, said.parts, question, _SEND, _DONT_SEND))

    async def send(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Store the announcement for the workers, who show its progress here."""
        if await self.announcements.knows(nonce):
            # A process that died right after it stored the announcement left this question.
            # Otherwise a press after the next announcement would send this one again.
            await self.questions.withdraw(here, nonce, pressed.sender.id)
            return ()
        language = pressed.sender.language
        about = await self.questions.check(here, nonce, "broadcast", pressed.sender.id)
        new = Announcement(nonce, pressed.chat_id, int(about), pressed.message_id, language)
        if await self.announcements.is_open():
            return self._say(language, "busy").parts
        # Shown before it is stored: later it could overwrite what a worker shows.
        await self.status.show(AnnouncementProgress(new, None, {}))
        if not await self.announcements.start(new):
            return self._say(language, "busy").parts
        await self.questions.withdraw(here, nonce, pressed.sender.id)
        return ()

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Forget the question."""
        await self.questions.withdraw(here, nonce, pressed.sender.id)
        return self._say(pressed.sender.language, "refused").parts

    async def stop(self, _: ButtonPress, __: Scope, nonce: str) -> Parts:
        """Send to no further chat; the worker shows the receipt."""
        await self.announcements.stop(nonce)
        return ()

    def _say(self, language: str, key: str, **values: object) -> Answer:
        return Answer(self.sentences.say(language, f"broadcast.{key}", **values))
