"""Services from which a test builds a feature: real memory, a quiet chat, our sentences."""

from bot.commands.sentences import Sentences
from bot.feature import Services
from bot.language.catalogue import Catalogue
from bot.model.call import ChatModel
from bot.model.models import Models
from bot.playground.offline_memory import OfflineServer
from bot.playground.offline_model import OfflineChatModel
from bot.telegram.chat import Chat
from memory.memory import Memory
from memory.text.internal_model import InternalModel
from tests.lab.scripted_models import ScriptedInternalModel, Tape
from tests.quiet_chat import QuietChat
from tests.settings import Settings

SENTENCES = Sentences(Catalogue())


def services_of(
    memory: Memory,
    settings: Settings | None = None,
    chat: Chat | None = None,
    internal: InternalModel | None = None,
    models: Models | None = None,
) -> Services:
    """Return services with the given parts; without a model, one that says nothing."""
    return Services.of(
        settings or Settings(),
        memory,
        chat or QuietChat(),
        SENTENCES,
        models or models_of(internal or ScriptedInternalModel(Tape(lambda: 0), 0)),
    )


def models_of(internal: InternalModel, *chats: ChatModel) -> Models:
    """Return models with these; no sound is understood."""
    return Models(chats or (OfflineChatModel(),), internal, None, (), OfflineServer())
