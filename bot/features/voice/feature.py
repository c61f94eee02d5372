"""What voice adds to the bot."""

from bot.feature import Feature, Services
from bot.features.voice.servers import SPEECH_TIMEOUT_S, Speaker, Transcriber
from bot.features.voice.settings import VoiceSettings
from bot.features.voice.speaking import SpokenAnswers, VoiceStep
from bot.model.models import Models, secret_of


def feature(services: Services) -> Feature:
    """Return the feature; without a transcriber it says that the bot does not listen."""
    settings, models = services.own(VoiceSettings), services.models
    transcriber = _transcriber(settings, models)
    hearing = VoiceStep(transcriber, services.chat, services.memory.tokens, services.sentences)
    finishes = []
    if settings.speech_model:
        key = secret_of(settings.speech_api_key)
        server = models.client.to(settings.speech_base_url, key, SPEECH_TIMEOUT_S)
        voice, observers = settings.speech_voice, models.observers
        speaker = Speaker(server, settings.speech_model, voice, observers)
        finishes.append(SpokenAnswers(speaker, services.chat).spoken)
    return Feature(
        name="voice",
        steps=[hearing.answer],
        finishes=finishes,
        ways=["way_voice"] if transcriber else [],
    )


def _transcriber(settings: VoiceSettings, models: Models) -> Transcriber | None:
    model, limit_s = settings.transcription_model, settings.model_timeout_s
    if model is None:
        return None
    key = secret_of(settings.transcription_api_key)
    server = models.client.to(settings.transcription_base_url, key, limit_s)
    return Transcriber(server, model, limit_s, models.observers)
