"""Does the model read a prompt of `PROMPT_TOKENS` from its beginning? Some servers cut it silently.

We hide one word in the system message and one in the oldest message, and ask for both at the end.
"""

from collections.abc import Iterator

from bot.model.call import ChatModel, ModelReply, PromptMessage
from bot.model.model_errors import ContextTooLong, ModelError
from bot.model.recognition import OTHER, KnownServer
from bot.model.trouble import trouble
from bot.probe import Row
from bot.prompt.fitting import messages_tokens
from memory.text.tokens import TokenCounter

_WHAT = "Model prompt"
_SYSTEM_WORD, _FIRST_WORD = "marzipan", "gyroscope"
_SYSTEM = f"You are being tested. The first test word is {_SYSTEM_WORD}."
_OPENING = f"The second test word is {_FIRST_WORD}."
_QUESTION = "Two test words were given at the very beginning. Reply with both of them."
_NOTED = PromptMessage("assistant", "Noted.")
_FILLER = 20 * "On this day nothing happened that anybody would have to remember. "
_MIN_COUNTED_SHARE = 0.75
"""A server that counted a smaller share did not read all of it; vocabularies differ by less."""


async def whole_prompt(
    model: ChatModel, tokens: TokenCounter, max_tokens: int, known: KnownServer = OTHER
) -> Row:
    """Ask for both words at the end of a prompt of up to `max_tokens`."""
    messages = _long_prompt(tokens, max_tokens)
    sent = messages_tokens(tokens, messages)
    try:
        reply = await model.complete(messages, ())
    except ContextTooLong:
        return Row(_WHAT, "fail", f"the model does not take {sent} tokens", _advice(known))
    except ModelError as error:
        return trouble(_WHAT, error, known=known)
    return front_was_read(reply, sent, known)


def front_was_read(reply: ModelReply, sent: int, known: KnownServer = OTHER) -> Row:
    """Judge the answer to a prompt of `sent` tokens by its words and by what the server counted."""
    text, counted = reply.text.casefold(), reply.usage.prompt_tokens
    hidden = {_SYSTEM_WORD: "the system message", _FIRST_WORD: "the first message"}
    missing = [place for word, place in hidden.items() if word not in text]
    if not missing:
        return Row(_WHAT, "ok", f"all of {sent} tokens were read")
    seen = f"of {sent} tokens, the word in {' and the one in '.join(missing)} did not come back"
    advice = _advice(known)
    if counted:
        seen += f"; the server counted {counted}"
    if counted >= _MIN_COUNTED_SHARE * sent:
        advice += ", or try another OPENAI_MODEL"
    return Row(_WHAT, "fail", seen, advice)


def _advice(known: KnownServer) -> str:
    return f"lower PROMPT_TOKENS, or raise {known.context or 'the context of the server'}"


def _long_prompt(tokens: TokenCounter, max_tokens: int) -> list[PromptMessage]:
    """Return a prompt in the form of the bot's, with user and assistant in turns."""
    front = [PromptMessage("system", _SYSTEM), PromptMessage("user", _OPENING)]
    end = [_NOTED, PromptMessage("user", _QUESTION)]
    tokens_left = max_tokens - messages_tokens(tokens, [*front, *end])
    return [*front, *_talk(tokens, tokens_left), *end]


def _talk(tokens: TokenCounter, tokens_left: int) -> Iterator[PromptMessage]:
    """Yield pairs of an answer and the next message, together at most `tokens_left`."""
    day = 1
    while True:
        pair = (_NOTED, PromptMessage("user", f"Day {day}. {_FILLER}"))
        tokens_left -= messages_tokens(tokens, pair)
        if tokens_left < 0:
            return
        yield from pair
        day += 1
