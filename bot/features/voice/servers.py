"""Words of a sound, and speech, from servers with OpenAI's transcription and speech APIs.

OpenAI, Groq, speaches and the server of whisper.cpp hear; OpenAI, speaches, Kokoro-FastAPI and Groq
speak. They judge a sound by the name of its file: Telegram's `.oga` is refused, the same bytes as
`.ogg` are not. Some send another format than the one that they are asked for, so the sound itself
says what it is.
"""

from dataclasses import dataclass
from math import ceil

from bot.http_client import MAX_VALUES, read_json
from bot.model.call import ObservedCall, Post, Posts, Usage, time_limit
from bot.model.model_errors import AnswerIncomplete, NotAModel
from bot.model.wire import object_of, usage_of
from bot.reply.parts import well_formed
from memory.behaviors.tool_output import is_opus

_MAX_BYTES = 512 * 1024
MAX_CHARS = 20_000  # the text of a sound is cut at this length; 20 minutes of talk are shorter
_MAX_S = 24 * 3600
_OPUS_PER_S = 48_000
_MAX_PAGE_BYTES = 65_307  # of an OGG; so the last page of a whole one begins in its last bytes
_MIN_BYTES_PER_S = 750  # no codec of speech takes less, so no sound can be made to look longer
_USUAL_BYTES_PER_S = 16_000  # of a sound whose length nobody states: 128 kbit/s
_MAX_BYTES_PER_S = 192_000  # of a WAV with 16 bits; FLAC and round videos may take 125,000
_PATH = "/audio/transcriptions"
_TYPES = {
    "ogg": ("audio/ogg", "audio/opus", "application/ogg"),
    "mp3": ("audio/mpeg", "audio/mp3"),
    "m4a": ("audio/mp4", "audio/m4a", "audio/x-m4a", "audio/aac"),
    "mp4": ("video/mp4",),
    "wav": ("audio/wav", "audio/x-wav"),
    "flac": ("audio/flac", "audio/x-flac"),
    "webm": ("audio/webm", "video/webm"),
}
"""The endings that servers know, and the types of such sounds; we send the first type."""


def ending_of(name: str, mime_type: str) -> str:
    """Return the ending under which servers take a sound, "" if none of them would.

    A sound without a type is a voice message of Telegram, unless its name says something else.
    """
    type_ = mime_type.lower().partition(";")[0].strip()
    if known := next((ending for ending, types in _TYPES.items() if type_ in types), ""):
        return known
    ending = name.lower().rpartition(".")[2] if "." in name else ""
    ending = {"oga": "ogg", "opus": "ogg", "mpga": "mp3", "mpeg": "mp3"}.get(ending, ending)
    if ending in _TYPES:
        return ending
    return "" if name or mime_type else "ogg"


@dataclass(frozen=True, slots=True, eq=False)
class Transcriber:
    """One transcription model of one server."""

    client: Posts
    model: str
    timeout_s: float

    async def words(self, sound: bytes, ending: str, seconds: int = 0) -> str:
        """Return what is said, "" for silence; raise `ModelError`.

        `ending` is one that `ending_of` returns. `seconds` is how long the sound is said to be.
        """
        length = Usage(heard_s=length_s(sound, seconds))
        fields = {"model": self.model, "response_format": "json"}
        file = (f"voice.{ending}", sound, _TYPES[ending][0])
        with ObservedCall("transcription", self.model, self.client, length) as call:
            async with time_limit(self.timeout_s):
                body = await self.client.post_whole(Post(_PATH, fields, file=file), _MAX_BYTES)
            try:
                answer = object_of(read_json(body, MAX_VALUES))
                if not isinstance(text := answer["text"], str):
                    raise NotAModel("no text")
                used = object_of(answer.get("usage") or {})
                call.usage += usage_of(used, "input", "output")
                billed_s = used.get("seconds")
                if isinstance(billed_s, int | float) and 0 <= billed_s <= _MAX_S:
                    length = Usage(heard_s=ceil(billed_s))
                call.usage += length
                return well_formed(text).strip()[:MAX_CHARS]
            except (ValueError, KeyError, TypeError, AttributeError, AnswerIncomplete) as error:
                raise NotAModel(type(error).__name__) from error


def length_s(sound: bytes, stated_s: int) -> int:
    """Return about how many seconds a server bills, at least 1.

    A person's app states the length; of a sound that comes as a file it states none (0). OGG counts
    its samples on the last page, and the head of a WAV has its rate. All of these may be forged, so
    they make no sound shorter than its bytes allow.
    """
    is_wav = sound.startswith(b"RIFF")
    rate = _MAX_BYTES_PER_S if stated_s or is_wav else _USUAL_BYTES_PER_S
    if is_wav and sound[12:16] == b"fmt ":  # recorders may write another chunk before this one
        rate = max(1, min(int.from_bytes(sound[28:32], "little"), _MAX_BYTES_PER_S))
    shortest_s = len(sound) // rate
    page = sound.rfind(b"OggS", -_MAX_PAGE_BYTES)
    samples = int.from_bytes(sound[page + 6 : page + 14], "little") if page >= 0 else 0
    known_s = max(stated_s, ceil(samples / _OPUS_PER_S), shortest_s)
    return max(1, min(known_s, len(sound) // _MIN_BYTES_PER_S))


SPEECH_TIMEOUT_S = 10.0
MAX_SPOKEN_CHARS = 2_000  # OpenAI takes 4,096, but a server needs longer for them than people wait
_MAX_SOUND_BYTES = 5 * 2**20
_SPEECH_PATH = "/audio/speech"


@dataclass(slots=True, eq=False)
class Speaker:
    """One voice of a speech model."""

    client: Posts
    model: str
    voice: str
    timeout_s: float = SPEECH_TIMEOUT_S

    async def sound(self, text: str) -> bytes:
        """Return a text spoken, as OGG with Opus, within `timeout_s`; raise `ModelError`."""
        body = {"model": self.model, "voice": self.voice, "input": text, "response_format": "opus"}
        spoken = Usage(spoken_chars=len(text))
        with ObservedCall("speech", self.model, self.client, spoken) as call:
            async with time_limit(self.timeout_s):
                sound = await self.client.post_whole(Post(_SPEECH_PATH, body), _MAX_SOUND_BYTES)
            if not is_opus(sound):
                raise NotAModel("no OGG with Opus")
            call.usage += spoken
            return sound
