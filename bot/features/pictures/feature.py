"""What pictures add to the bot."""

from bot.agent.agent import RunAgent
from bot.feature import Feature, Services
from bot.features.pictures.describing import SEND_PHOTO_AGAIN, DescribingAgent
from bot.features.pictures.seeing import PictureNote, PictureStep
from bot.features.pictures.settings import PictureSettings


def feature(services: Services) -> Feature:
    """Return the feature; with `IMAGE_DETAIL=off` it says that the bot sees no pictures."""
    settings, sentences = services.own(PictureSettings), services.sentences
    detail = None if settings.image_detail == "off" else settings.image_detail
    step = PictureStep(services.chat, detail, services.memory.tokens, sentences)

    def describing(run: RunAgent) -> RunAgent:
        return DescribingAgent(run, services.models.chats).run

    return Feature(
        name="pictures",
        steps=[step.answer],
        around=[describing],
        notes=[PictureNote(sentences).below],
        tools=[SEND_PHOTO_AGAIN] if detail else [],
        ways=["way_photo"] if detail else [],
    )
