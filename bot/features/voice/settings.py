"""The settings of voice messages and spoken answers."""

from pydantic import Field

from config import values
from config.settings import Settings, key_for, same_as


class VoiceSettings(Settings):
    """Hearing and speaking, beside the settings of the core."""

    transcription_model: values.ModelOrOff = Field(
        default="gpt-transcribe",
        description="Model that writes down voice messages; `off`: the bot does not listen",
    )
    transcription_base_url: values.WebAddress = Field(
        default_factory=same_as("openai_base_url"),
        description="Server of the transcription model; not set: `OPENAI_BASE_URL`",
    )
    transcription_api_key: values.Secret | None = Field(
        default_factory=key_for("transcription_base_url"),
        description="API key of the transcription model; not set: `OPENAI_API_KEY` if the server "
        "is the same",
    )
    speech_model: values.ModelOrOff = Field(
        default=None, description="Model that speaks answers to voice messages; not set: text only"
    )
    speech_voice: values.Text = Field(default="alloy", description="Voice of the speech model")
    speech_base_url: values.WebAddress = Field(
        default_factory=same_as("openai_base_url"),
        description="Server of the speech model; not set: `OPENAI_BASE_URL`",
    )
    speech_api_key: values.Secret | None = Field(
        default_factory=key_for("speech_base_url"),
        description="API key of the speech model; not set: `OPENAI_API_KEY` if the server is the "
        "same",
    )

    def models_in_use(self) -> dict[str, tuple[str, ...]]:
        """Return also what hears and what speaks."""
        units = {self.speech_model: ("kchar", "Mchar"), self.transcription_model: ("", "min")}
        own = {name: each for name, each in units.items() if name}
        return {**super().models_in_use(), **own}


SETTINGS = VoiceSettings
