"""`/mute`: whether a person gets what they did not ask for."""

from bot.commands.bot_command import Answer, BotCommand
from bot.commands.notices import mutes, set_mute
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.reply.parts import Button, Parts, with_buttons
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

_SET = "set_mute"


def feature(services: Services) -> Feature:
    """Return the feature; the command is of use if some feature sends what nobody asked for."""
    mute = MuteCommand(services.memory.scopes, services.sentences)

    async def is_useful(_: IncomingMessage, __: Scope) -> bool:
        return any(each.says_unasked for each in services.features)

    command = BotCommand(
        "mute", mute.answer, "private", {_SET: mute.press}, words=("on", "off"), is_useful=is_useful
    )
    return Feature(name="mute", commands=(command,))


class MuteCommand:
    """Tells a person what they get, and turns it off and on."""

    def __init__(self, scopes: Scopes, sentences: Sentences) -> None:
        self._scopes = scopes
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Mute with "on", unmute with "off", else say how it is."""
        language, person = asked.sender.language, asked.sender.id
        if asked.is_group:
            return Answer(self._sentences.say(language, "mute.only_private"))
        if not asked.text:
            is_muted = mutes(await self._scopes.read(Scope.of_person(person)))
            return Answer(self._state(language, is_muted=is_muted))
        await set_mute(self._scopes, person, asked.update_id, is_muted=asked.text == "on")
        return Answer(self._sentences.say(language, f"mute.{asked.text}"))

    async def press(self, pressed: ButtonPress, _: Scope, wanted: str) -> Parts:
        """Act on the button below the state, and show the new one."""
        is_muted = wanted == "on"
        await set_mute(self._scopes, pressed.sender.id, pressed.update_id, is_muted=is_muted)
        return self._state(pressed.sender.language, is_muted=is_muted)

    def _state(self, language: str, *, is_muted: bool) -> Parts:
        label, wanted = ("unmute", "off") if is_muted else ("mute", "on")
        button = Button(self._sentences.text(language, f"buttons.{label}"), f"{_SET}:{wanted}")
        state = "mute.is_on" if is_muted else "mute.is_off"
        return with_buttons(self._sentences.say(language, state), button)
