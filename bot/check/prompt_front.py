"""Is a prompt of `PROMPT_TOKENS` read to its front: some servers cut what is too long, silently.

Two words are planted, one in the system message and one in the oldest message, and asked back.
"""

from collections.abc import Iterator

from bot.check.model_trouble import trouble
from bot.check.recognition import OTHER, KnownServer
from bot.check.rows import Row
from bot.model.call import ChatModel, ModelReply, PromptMessage
from bot.model.model_errors import ContextTooLong, ModelError
from bot.prompt.fitting import messages_tokens
from memory.text.tokens import TokenCounter

_WHAT = "Model prompt"
_SYSTEM_WORD, _FIRST_WORD = "marzipan", "gyroscope"
_SYSTEM = f"You are being tested. The first test word is {_SYSTEM_WORD}."
_OPENING = f"The second test word is {_FIRST_WORD}."
_QUESTION = "Two test words were given at the very beginning. Reply with both of them."
_NOTED = PromptMessage("assistant", "Noted.")
_FILLER = 20 * "On this day nothing happened that anybody would have to remember. "
_COUNTED_SHARE = 0.75
"""A server that counted less of a prompt has not read all of it: vocabularies differ by less."""


async def whole_prompt(
    model: ChatModel, tokens: TokenCounter, size: int, known: KnownServer = OTHER
) -> Row:
    """Ask for both words at the end of a prompt of up to `size` tokens."""
    messages = _long_prompt(tokens, size)
    sent = messages_tokens(tokens, messages)
    try:
        reply = await model.complete(messages, ())
    except ContextTooLong:
        seen = f"the model does not take {sent} tokens"
        return Row(_WHAT, "fail", seen, _advice(known))
    except ModelError as error:
        return trouble(_WHAT, error, known=known)
    return front_was_read(reply, sent, known)


def front_was_read(reply: ModelReply, sent: int, known: KnownServer = OTHER) -> Row:
    """Judge the answer to a prompt of `sent` tokens by what came back and what was counted."""
    said, counted = reply.text.casefold(), reply.usage.prompt_tokens
    planted = {_SYSTEM_WORD: "the system message", _FIRST_WORD: "the first message"}
    lost = [place for word, place in planted.items() if word not in said]
    if not lost:
        return Row(_WHAT, "ok", f"{sent} tokens were read from front to end")
    seen = f"of {sent} tokens, the word in {' and the one in '.join(lost)} did not come back"
    advice = _advice(known)
    if counted:
        seen += f"; the server counted {counted}"
    if counted >= _COUNTED_SHARE * sent:
        advice += ", or try another OPENAI_MODEL"
    return Row(_WHAT, "fail", seen, advice)


def _advice(known: KnownServer) -> str:
    return f"lower PROMPT_TOKENS, or raise {known.context or 'the context of the server'}"


def _long_prompt(tokens: TokenCounter, size: int) -> list[PromptMessage]:
    """Return a prompt shaped as the bot's, user and assistant taking turns."""
    front = [PromptMessage("system", _SYSTEM), PromptMessage("user", _OPENING)]
    end = [_NOTED, PromptMessage("user", _QUESTION)]
    room = size - messages_tokens(tokens, [*front, *end])
    return [*front, *_talk(tokens, room), *end]


def _talk(tokens: TokenCounter, room: int) -> Iterator[PromptMessage]:
    """Yield pairs of answer and next message, of up to `room` tokens."""
    day = 1
    while True:
        pair = (_NOTED, PromptMessage("user", f"Day {day}. {_FILLER}"))
        room -= messages_tokens(tokens, pair)
        if room < 0:
            return
        yield from pair
        day += 1
