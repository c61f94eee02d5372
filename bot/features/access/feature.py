"""What access adds to the bot."""

from collections.abc import Mapping
from functools import partial

from bot.commands.bot_command import ANYTHING, BotCommand
from bot.feature import Feature, Services
from bot.features.access.commands import InviteCommand, PeopleList
from bot.features.access.strangers import Strangers
from bot.runtime.maintenance import repeat
from bot.telegram.updates import ChatMigration, Stranger
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

_TELL_EVERY_S = 2.0


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences, admission = services.memory, services.sentences, services.admission
    strangers = Strangers(memory.store, admission, services.chat, sentences, services.notices)
    people = PeopleList(memory, strangers, sentences)
    invite = InviteCommand(strangers.invitations, services.me, admission.settings.access, sentences)

    async def exported(conversation: Scope, _: ScopeMemory) -> Mapping[str, object]:
        person = conversation.chat_id if conversation.is_private else 0
        return {"access": await strangers.access.stored_of(person) if person else None}

    return Feature(
        name="access",
        commands=(
            BotCommand(
                "people",
                people.show,
                "operators",
                {"let_in": people.let_in, "refuse": people.refuse, people.verb: people.press},
            ),
            BotCommand(
                "invite",
                invite.answer,
                "operators",
                {invite.verb: invite.list.press},
                takes=ANYTHING,
            ),
        ),
        arrivals={Stranger: strangers.meet, ChatMigration: strangers.follow},
        tasks=(strangers.run, partial(repeat, strangers.tell_admins, "requests", _TELL_EVERY_S))
        if services.takes_in
        else (),
        forgets=(strangers.access.forget,),
        exports=(exported,),
    )
