"""Rules for a readable request: the refusals of real servers beyond single fields.

`Dialect` says which server this one takes after. A request that passes here with strict templates
passes on every OpenAI-compatible server that we know.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from operator import ne

import orjson

from bot.model.call import PromptMessage
from tests.servers.model_api.errors import (
    ApiError,
    bad_request,
    content_filtered,
    moderation_blocked,
)
from tests.servers.model_api.faults import Quirk
from tests.servers.model_api.requests import (
    ApiRequest,
    ChatRequest,
    EmbeddingsRequest,
    ImageRequest,
    SpeechRequest,
    TranscriptionRequest,
)
from tests.servers.model_api.responses_bodies import check_responses
from tests.servers.word_vectors import DIMENSIONS

_OVERHEAD_TOKENS = 3  # per message and for the answer's beginning, as OpenAI's cookbook counts


def quarter_of_bytes(text: str) -> int:
    """Count tokens roughly, for servers that need no better count."""
    return len(text.encode(errors="surrogatepass")) // 4


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one server behaves: what it requires, what it refuses and what it supports.

    0 and empty values mean that it does not check.

    `server` is its name; only the server that encrypted thoughts can read them. `models` are the
    models that it has, `unsupported` the parameters that it refuses, and `response_formats` the
    formats that it supports in addition to text. `context_tokens` is the maximum of a prompt, and
    `embedding_tokens` the maximum of a single text, counted by `count_tokens`. With
    `strict_templates`, roles must alternate after one leading system message. With
    `reads_arguments`, the calls in a prompt must be valid JSON, as vLLM's templates require. A
    prompt with a word in `filtered` is refused, as Azure's content filter does. `refuses` returns
    any other refusal. A prompt that is too long is refused, or loses its oldest messages if the
    server `cuts_front`.

    `missing_paths` are paths that it does not serve. `headers` are on every answer, `model_fields`
    in each entry of `/v1/models`, and every stream has the `quirks`. `refusals` are statuses and
    bodies by the code of an error, or by its status if it has no code; `{param}` is replaced by the
    parameter at fault.
    """

    server: str = ""
    api_key: str = ""
    models: frozenset[str] = frozenset()
    unsupported: frozenset[str] = frozenset()
    response_formats: frozenset[str] = frozenset({"json_object", "json_schema"})
    strict_templates: bool = True
    reads_arguments: bool = False
    filtered: frozenset[str] = frozenset()
    context_tokens: int = 0
    embedding_tokens: int = 8192
    count_tokens: Callable[[str], int] = quarter_of_bytes
    dimensions: int = DIMENSIONS
    honours_dimensions: bool = True
    refuses: Callable[[ApiRequest], ApiError | None] = lambda _: None
    cuts_front: bool = False
    missing_paths: frozenset[str] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)
    model_fields: Mapping[str, object] = field(default_factory=lambda: {"owned_by": "ricordo"})
    quirks: frozenset[Quirk] = frozenset()
    refusals: Mapping[str, tuple[int, object]] = field(default_factory=dict)


def check_request(request: ApiRequest, dialect: Dialect) -> int:
    """Return the tokens of a request's prompt; raise `ApiError` when `dialect` forbids it."""
    if dialect.models and request.model not in dialect.models:
        message = f"The model `{request.model}` does not exist or you do not have access to it."
        raise ApiError(404, message, code="model_not_found")
    for name in request.raw:
        if name in dialect.unsupported:
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            raise bad_request(message, name, "unsupported_parameter")
    if refusal := dialect.refuses(request):
        raise refusal
    if isinstance(request, EmbeddingsRequest):
        return _check_texts(request.texts, dialect)
    if isinstance(request, TranscriptionRequest):
        return _check_sound(request)
    if isinstance(request, SpeechRequest):
        return _check_speech(request)
    if isinstance(request, ImageRequest):
        return _check_image(request, dialect)
    return _check_chat(request, dialect)


_SOUNDS = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "ogg", "wav", "webm")


def _check_sound(request: TranscriptionRequest) -> int:
    """Return no tokens; refuse a sound by the name of its file, as OpenAI does."""
    if request.file_name.rpartition(".")[2] not in _SOUNDS:
        raise bad_request(f"Unrecognized file format. Supported formats: {_SOUNDS}", "file")
    return 0


_MAX_SPEECH_CHARS = 4096
_SPEECH_FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")


def _check_speech(request: SpeechRequest) -> int:
    """Return no tokens; refuse what OpenAI refuses."""
    if not request.text:
        raise bad_request("Input should be a non-empty string.", "input")
    if len(request.text) > _MAX_SPEECH_CHARS:
        raise bad_request("String should have at most 4096 characters", "input")
    if not request.voice:
        raise bad_request("Missing required parameter: 'voice'.", "voice")
    if request.response_format not in _SPEECH_FORMATS:
        raise bad_request(f"Input should be one of {_SPEECH_FORMATS}", "response_format")
    return 0


def always_sends_image(model: str) -> bool:
    """Return whether a model sends the image itself and refuses to be asked for it."""
    return model.startswith("gpt-image")


def _check_image(request: ImageRequest, dialect: Dialect) -> int:
    """Return no tokens; refuse what OpenAI refuses."""
    if not 0 < len(request.prompt) <= 4_000:
        raise bad_request("Invalid 'prompt': string of a wrong length.", "prompt")
    if "response_format" in request.raw and always_sends_image(request.model):
        name = "response_format"
        raise bad_request(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    if any(word in request.prompt for word in dialect.filtered):
        raise moderation_blocked()
    return 0


def cut_front(chat: ChatRequest, dialect: Dialect) -> ChatRequest:
    """Return what this server's model sees of a prompt: perhaps without its oldest messages.

    The system message and the last message always stay.
    """
    if not (dialect.cuts_front and dialect.context_tokens):
        return chat
    front = chat.messages[: chat.messages[0].role == "system"]
    while len(chat.messages) > len(front) + 1:
        if prompt_tokens(chat, dialect) <= dialect.context_tokens:
            break
        chat = replace(chat, messages=(*front, *chat.messages[len(front) + 1 :]))
    return chat


def _check_texts(texts: Sequence[str], dialect: Dialect) -> int:
    if not texts or not all(texts) or len(texts) > 2048:
        raise bad_request("'$.input' is invalid. Please check the API reference.")
    tokens = [dialect.count_tokens(text) for text in texts]
    if dialect.embedding_tokens and max(tokens) > dialect.embedding_tokens:
        raise bad_request(
            f"This model's maximum context length is {dialect.embedding_tokens} tokens, however "
            f"you requested {max(tokens)} tokens. Please reduce your prompt."
        )
    return sum(tokens)


def _check_chat(chat: ChatRequest, dialect: Dialect) -> int:
    try:
        return _checked_chat(chat, dialect)
    except ApiError as error:
        if chat.api == "responses" and error.param.startswith("messages"):
            error.param = "input"  # the entries are read into messages, which it has not
        raise


def _checked_chat(chat: ChatRequest, dialect: Dialect) -> int:
    if chat.response_format not in {"text", *dialect.response_formats}:
        # The text of DeepSeek, which supports JSON mode only
        raise bad_request("This response_format type is unavailable now")
    _check_parameters(chat)
    _check_tool_results(chat.messages)
    if chat.api == "responses":
        check_responses(chat, dialect.server)
    if dialect.strict_templates:
        _check_template(chat.messages)
    if dialect.reads_arguments:
        _check_arguments(chat.messages)
    if any(word in message.content for word in dialect.filtered for message in chat.messages):
        raise content_filtered()
    tokens = prompt_tokens(chat, dialect)
    if dialect.context_tokens and tokens > dialect.context_tokens and not dialect.cuts_front:
        raise bad_request(
            f"This model's maximum context length is {dialect.context_tokens} tokens. However, "
            f"your messages resulted in {tokens} tokens. Please reduce the length of the messages.",
            "messages",
            "context_length_exceeded",
        )
    return tokens


def _check_parameters(chat: ChatRequest) -> None:
    names = [tool.name for tool in chat.tools]
    if len(set(names)) < len(names):
        raise bad_request("Tool names must be unique.", "tools")
    for name in ("tool_choice", "parallel_tool_calls"):
        if not names and chat.api == "chat" and chat.raw.get(name) is not None:
            raise bad_request(f"'{name}' is only allowed with tools.", name)
    if chat.tool_choice not in ("auto", "none", *names, *(("required",) if names else ())):
        raise bad_request(f"Tool choice '{chat.tool_choice}' not found in tools.", "tool_choice")
    if not chat.stream and chat.raw.get("stream_options") is not None:
        raise bad_request("'stream_options' is only allowed with 'stream'.", "stream_options")
    if chat.response_format == "json_object" and not any(
        "json" in message.content.lower() for message in chat.messages
    ):
        message = "To use JSON mode, the messages must contain the word 'json' in some form."
        raise bad_request(message, "messages")


def _check_tool_results(messages: Sequence[PromptMessage]) -> None:
    """Every call is answered once, right after the message that makes it; nothing else is."""
    waiting: set[str] | None = None  # ids of the calls just made; None outside of such a run
    for at, message in enumerate(messages):
        if message.role != "tool":
            _check_answered(waiting)
            waiting = {call.id for call in message.tool_calls} or None
        elif waiting is None:
            raise bad_request("A result must follow its calls.", f"messages[{at}].role")
        elif message.tool_call_id not in waiting:
            text = f"The call '{message.tool_call_id}' is not in the previous message."
            raise bad_request(text, f"messages[{at}].tool_call_id")
        else:
            waiting.remove(message.tool_call_id)
    _check_answered(waiting)


def _check_answered(waiting: Collection[str] | None) -> None:
    if waiting:
        raise bad_request(f"Calls without results: {', '.join(sorted(waiting))}.", "messages")


def _check_template(messages: Sequence[PromptMessage]) -> None:
    """Raise the errors of the strictest chat templates: Mistral, Gemma, Qwen."""
    talk = messages[1:] if messages[0].role == "system" else messages
    if any(message.role == "system" for message in talk):
        raise bad_request("System message must be at the beginning.", "messages")
    spoken = [message.role for message in talk if message.role != "tool" and not message.tool_calls]
    if not spoken or any(map(ne, spoken, cycle(("user", "assistant")))):
        raise bad_request("After a system message roles must alternate.", "messages")
    if messages[-1].role == "assistant":
        raise bad_request("Expected last role User or Tool but got assistant.", "messages")


def _check_arguments(messages: Sequence[PromptMessage]) -> None:
    for call in (call for message in messages for call in message.tool_calls):
        try:
            orjson.loads(call.arguments)
        except orjson.JSONDecodeError as error:
            raise bad_request(str(error), "messages") from None


def prompt_tokens(chat: ChatRequest, dialect: Dialect) -> int:
    """Count everything that the model would read, definitions of tools included."""
    count = dialect.count_tokens
    tokens = _OVERHEAD_TOKENS * (len(chat.messages) + 1)
    for message in chat.messages:
        tokens += count(message.role) + count(message.content)
        tokens += sum(count(call.name) + count(call.arguments) for call in message.tool_calls)
    definitions = ([tool.name, tool.description, dict(tool.parameters)] for tool in chat.tools)
    return tokens + sum(count(orjson.dumps(definition).decode()) for definition in definitions)
