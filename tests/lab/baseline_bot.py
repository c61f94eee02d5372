"""A bot without memory for comparison, made only of python-telegram-bot and openai.

    python -m tests.lab.baseline_bot

It reads Ricordo's settings from the environment. For each message it does only what every bot must
do: it shows "typing", streams an answer, and sends it.
"""

import asyncio
import os
import sys

import uvloop
from openai import AsyncOpenAI
from telegram import Update
from telegram.constants import ChatAction
from telegram.ext import Application, ContextTypes, MessageHandler, filters

BASELINE = "tests.lab.baseline_bot"
_SYSTEM = "You are a helpful assistant in a Telegram chat."


class BaselineBot:
    """Answers each message as if it were the first."""

    def __init__(self, client: AsyncOpenAI, model: str) -> None:
        self._client = client
        self._model = model

    async def answer(self, update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        """Stream an answer and send it."""
        asked = update.effective_message
        if asked is None or asked.text is None:
            return
        await asked.reply_chat_action(ChatAction.TYPING)
        stream = await self._client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": _SYSTEM},
                {"role": "user", "content": asked.text},
            ],
            stream=True,
            stream_options={"include_usage": True},
        )
        said = []
        async for chunk in stream:
            said += [choice.delta.content or "" for choice in chunk.choices]
        await asked.reply_text("".join(said))


def main() -> None:
    """Poll until a signal stops it."""
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    bot = BaselineBot(AsyncOpenAI(), os.environ["OPENAI_MODEL"])
    application = (
        Application.builder()
        .token(os.environ["TELEGRAM_BOT_TOKEN"])
        .base_url(os.environ["TELEGRAM_API_URL"] + "/bot")
        .concurrent_updates(True)  # noqa: FBT003 - the builder's own form
        .build()
    )
    application.add_handler(MessageHandler(filters.TEXT, bot.answer))
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    application.run_polling()


if __name__ == "__main__":
    main()
