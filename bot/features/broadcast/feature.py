"""What broadcast adds to the bot."""

from collections.abc import Mapping
from functools import partial

from bot.commands.bot_command import ShownOnTop
from bot.commands.mute import mutes, set_mute
from bot.feature import Feature, Services
from bot.features.broadcast.announcements import NEWS, Announcements
from bot.features.broadcast.commands import MUTE, BroadcastCommand, BroadcastStatus
from bot.features.broadcast.sending import Announcing, HalfRate
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences, admission = services.memory, services.sentences, services.admission
    announcements = Announcements(memory.store)
    broadcast = BroadcastCommand(
        announcements,
        memory.questions,
        BroadcastStatus(services.chat, sentences),
        sentences,
        admission.serves_person,
    )
    permits = HalfRate(services.chat, services.settings.sends_per_second)
    announcing = Announcing(announcements, services.chat, permits, admission, sentences)
    news = memory.scopes.noted[NEWS]

    async def mute(pressed: ButtonPress, _: Scope, __: str) -> tuple[Part, ...]:
        if not pressed.is_group:
            await set_mute(memory.scopes, pressed.sender.id, pressed.update_id, is_muted=True)
        raise ShownOnTop("mute.only_private" if pressed.is_group else "mute.on")

    async def exported(_: Scope, facts: ScopeMemory) -> Mapping[str, object]:
        return {"announcements_muted": mutes(facts)}

    return Feature(
        name="broadcast",
        commands=(broadcast.command,),
        buttons={MUTE: mute},
        says_unasked=bool(services.settings.admin_user_ids),
        tasks=(partial(announcing.run, news),) if services.works else (),
        forgets=(announcements.forget,),
        exports=(exported,),
    )
