"""The settings of voice messages and spoken answers."""

from config import values
from config.settings import Settings, own_address, own_key


class VoiceSettings(Settings):
    """Hearing and speaking, beside the settings of the core."""

    transcription_model: values.ModelOrOff = values.setting(
        "gpt-transcribe", "Model that writes down voice messages; `off`: the bot does not listen"
    )
    transcription_base_url: values.WebAddress = own_address("the transcription model")
    transcription_api_key: values.Secret | None = own_key(
        "the transcription model", "transcription_base_url"
    )
    speech_model: values.ModelOrOff = values.setting(
        None, "Model that speaks answers to voice messages; not set: text only"
    )
    speech_voice: values.Text = values.setting("alloy", "Voice of the speech model")
    speech_base_url: values.WebAddress = own_address("the speech model")
    speech_api_key: values.Secret | None = own_key("the speech model", "speech_base_url")

    def models_in_use(self) -> dict[str, tuple[str, ...]]:
        """Return also what hears and what speaks."""
        units = {self.speech_model: ("kchar", "Mchar"), self.transcription_model: ("", "min")}
        own = {name: each for name, each in units.items() if name}
        return {**super().models_in_use(), **own}


SETTINGS = VoiceSettings
