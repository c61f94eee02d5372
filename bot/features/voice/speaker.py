"""Speech from a server with OpenAI's speech API: a text becomes a sound that Telegram takes.

OpenAI, speaches, Kokoro-FastAPI and Groq speak it. Some send another format than the one that they
are asked for, so the sound itself says what it is.
"""

from collections.abc import Sequence

from bot.model.call import Usage
from bot.model.call_report import ModelObserver, ObservedCall
from bot.model.model_errors import NotAModel, time_limit
from bot.model.openai_client import Posts
from memory.behaviors.tool_output import is_opus

SPEECH_TIMEOUT_S = 10.0
MAX_SPOKEN_CHARS = 2_000
"""OpenAI takes 4,096; of so much text the server needs longer than people want to wait."""
_MAX_BYTES = 5 * 2**20
_PATH = "/audio/speech"


class Speaker:
    """One voice of a speech model."""

    def __init__(
        self,
        client: Posts,
        model: str,
        voice: str,
        observers: Sequence[ModelObserver] = (),
    ) -> None:
        self._client = client
        self._model = model
        self._voice = voice
        self._observers = observers

    async def sound(self, text: str) -> bytes:
        """Return a text spoken, as OGG with Opus, within `SPEECH_TIMEOUT_S`; raise `ModelError`."""
        body = {"model": self._model, "voice": self._voice, "input": text}
        with ObservedCall("speech", self._model, self._client.which, self._observers) as call:
            call.unanswered_usage = Usage(spoken_chars=len(text))
            async with time_limit(SPEECH_TIMEOUT_S):
                sound = await self._client.post_whole(
                    _PATH, body | {"response_format": "opus"}, _MAX_BYTES
                )
            if not is_opus(sound):
                raise NotAModel("no OGG with Opus")
            call.usage += call.unanswered_usage
            return sound
