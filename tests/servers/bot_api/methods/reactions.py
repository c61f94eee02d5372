"""The bot's reactions to messages."""

from telegram.constants import ReactionEmoji

from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.methods.messages import message_in
from tests.servers.bot_api.parameters import Fields, Parameters, fields_of
from tests.servers.bot_api.world import World

_EMOJI = frozenset(emoji.value for emoji in ReactionEmoji)


async def set_message_reaction(world: World, given: Parameters) -> object:
    """Set the bot's reaction to a message in place of its former one; none takes it away."""
    chat = world.open_chat(given.text("chat_id"))
    message = message_in(chat, given, "message to react")
    values = given.array("reaction", "ReactionType") or []
    emoji = tuple(_emoji(fields_of(value, "expected an Object")) for value in values)
    if len(emoji) > 1:
        raise BadRequestError("REACTIONS_TOO_MANY")
    allowed = _EMOJI if chat.available_reactions is None else set(chat.available_reactions)
    if message.service or not set(emoji) <= allowed & _EMOJI:
        raise BadRequestError("REACTION_INVALID")
    chat.react(message, world.account.bot, emoji)
    await world.account.changes.tell()
    return True


def _emoji(fields: Fields) -> str:
    if fields.required_text("type") != "emoji":  # bots may send no others without Premium
        raise BadRequestError("REACTION_INVALID")
    return fields.required_text("emoji")
