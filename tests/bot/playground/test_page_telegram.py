"""The page as the Telegram of the bot: what the bot sends is shown, what people do reaches it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from telegram import Update

from bot.playground.page_telegram import PageTelegram
from bot.playground.scene import GROUP_ID, Scene, find_entities, uploaded
from bot.reply.parts import Button, Entity, Part
from bot.telegram.chat import Destination
from bot.telegram.connection import TelegramHealth
from bot.telegram.errors import IntakeClosed, NotAccepted, Refused
from bot.telegram.intake import RawUpdate
from bot.telegram.telegram import SetupPlan
from memory.behaviors.tool_output import OutgoingFile

ANNA = Destination(1)
YES = ((Button("yes", "ok"),),)


class Page(PageTelegram):
    """A page with a clock that stands still, and the chat of Anna."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.scene = Scene()
        super().__init__(self.scene, lambda: self.now)
        self.place = self.scene.place("c:1:0")

    def says(self, text: str) -> None:
        self.say(self.place, self.place.speaker, text)

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.place.messages]


class Bot:
    """Takes updates in; refuses those for which `refuses` returns an error."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.refuses: Callable[[str, bool], Exception | None] = lambda *_: None
        self.tried = asyncio.Event()

    async def accept(self, raw: RawUpdate, /, *, after_refusal: bool = False) -> None:
        text = cast("Any", raw)["message"]["text"]
        self.tried.set()
        if error := self.refuses(text, after_refusal):
            raise error
        self.seen.append(text)


@asynccontextmanager
async def receiving(page: Page, bot: Bot) -> AsyncIterator[None]:
    async with page.open(None, None, TelegramHealth()) as telegram:  # type: ignore[arg-type]
        [coroutine] = telegram.receive(bot.accept, SetupPlan(None))
        task = asyncio.create_task(coroutine)
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while True:
            if found():
                return
            await asyncio.sleep(0.01)


async def test_what_waited_is_handed_on_in_order_and_once() -> None:
    page, bot = Page(), Bot()
    page.says("one")
    async with receiving(page, bot):
        page.says("two")
        await until(lambda: not page.updates)
        page.says("three")
        await until(lambda: not page.updates)
    assert bot.seen == ["one", "two", "three"]
    page.says("four")
    other = Bot()
    async with receiving(page, other):
        await until(lambda: not page.updates)
    assert other.seen == ["four"]


async def test_nothing_is_handed_on_that_was_dropped_meanwhile() -> None:
    page, bot = Page(), Bot()
    for text in ("one", "two"):
        page.says(text)
    bot.refuses = lambda *_: page.updates.clear()
    async with receiving(page, bot):
        await until(lambda: not page.updates)
    assert bot.seen == ["one"]


@pytest.mark.parametrize(
    ("error", "seen"), [(IntakeClosed(), ["/forget"]), (NotAccepted(), []), (ValueError(), [])]
)
async def test_a_refused_message_comes_again_and_a_command_passes_a_closed_intake(
    error: Exception, seen: list[str]
) -> None:
    page, bot = Page(), Bot()
    bot.refuses = lambda text, closed: None if closed and text == "/forget" else error
    page.says("hello")
    page.says("/forget")
    async with receiving(page, bot):
        await until(bot.tried.is_set)
        await until(lambda: bot.seen == seen)
        bot.refuses = lambda *_: None
        await until(lambda: not page.updates)
    assert sorted(bot.seen) == ["/forget", "hello"]


async def test_every_act_of_a_person_is_an_update_as_telegram_sends_it() -> None:
    page = Page()
    await page.send(ANNA, Part("Sure?", (Entity("bold", 0, 4),), YES))
    page.place.speaker.language = "de"
    [question] = page.place.messages
    page.press(page.place, question, "ok")
    page.press(page.place, question, "of another message")
    reply = page.say(page.place, page.place.speaker, "/help 🙂 @ricordo_bot", reply_to=question)
    page.edit_message(page.place, reply, "Yes")
    await page.show_draft(ANNA, 7, Part("1 2"))
    page.stop(page.place)
    page.say(next(each for each in page.scene if each.topic), page.place.speaker, "Look")
    files = [uploaded(b"OggS", "a.ogg", "audio/ogg"), uploaded(b"{}", "a.json", "text/json")]
    page.send_files(page.place, files, "Look")
    sent: list[Any] = list(page.updates.values())
    read = [Update.de_json(dict(each)).effective_chat for each in sent]
    types = ["private"] * 3 + [None, "supergroup"] + ["private"] * 2
    assert [chat and chat.type for chat in read] == types
    press, said, edited, stop, in_topic, voice, document = (list(each.values())[1] for each in sent)
    buttons = [[{"text": "yes", "callback_data": "ok"}]]
    assert press["message"]["reply_markup"]["inline_keyboard"] == buttons
    assert press["from"]["language_code"] == "de"
    assert [each["type"] for each in said["entities"]] == ["bot_command", "mention"]
    assert edited["edit_date"]
    assert (stop["draft_id"], stop["chat"]["id"]) == (7, 1)
    assert said["reply_to_message"]["from"]["username"] == "ricordo_bot"
    assert said["reply_to_message"]["from"]["is_bot"]
    assert (in_topic["chat"]["is_forum"], in_topic["message_thread_id"]) == (True, 2)
    assert (voice["caption"], voice["voice"]["file_size"]) == ("Look", 4)
    assert ("caption" in document, document["document"]["mime_type"]) == (False, "text/json")
    assert len({each["update_id"] for each in sent}) == len(sent)


async def test_typing_and_drafts_end_with_a_message_or_in_time() -> None:
    page = Page()
    await page.show_typing(ANNA)
    await page.show_draft(ANNA, 7, Part("half \ud83d"))
    assert page.is_typing(page.place)
    assert str(page.draft(page.place)).count("half \ufffd") == 1
    page.now += 5
    assert not page.is_typing(page.place)
    page.now += 25
    assert page.draft(page.place) is None
    await page.show_draft(ANNA, 7, Part("all"))
    heard: list[str] = []
    with page.after_each_send(ANNA, lambda: heard.append("sent")):
        await page.send(ANNA, Part("all of it"))
    assert (page.draft(page.place), heard) == (None, ["sent"])


async def test_the_bot_changes_only_messages_that_are_there() -> None:
    page = Page()
    sent = await page.send(ANNA, Part("Sure?", buttons=YES))
    await page.edit(1, sent, Part("Sure?", buttons=YES))
    assert not page.place.messages[0].edited_at
    await page.edit(1, sent, Part("Done."))
    await page.react(1, sent, "✍")
    await page.send(Destination(2), Part("", buttons=YES, copy_of=(1, sent)))
    [copied] = page.scene.place("c:2:0").messages
    assert (copied.text, copied.buttons) == ("Done.", YES)
    await page.delete(1, sent)
    await page.delete(1, sent)
    assert page.texts == []
    with pytest.raises(Refused, match="message_gone"):
        await page.edit(1, sent, Part("Again"))
    with pytest.raises(Refused):
        await page.send(Destination(99), Part("Maya is not here"))


async def test_files_are_kept_under_their_ids_and_bounded() -> None:
    page = Page()
    await page.send(ANNA, Part("", file=OutgoingFile("a.png", b"12", kind="photo")))
    [photo] = page.place.messages
    assert photo.file
    assert (photo.file.kind, photo.file.mime_type) == ("photo", "image/png")
    await page.send(ANNA, Part("again", file=OutgoingFile("", file_id=photo.file.id)))
    assert page.place.messages[1].file == photo.file
    assert await page.download(photo.file.id, 2) == b"12"
    with pytest.raises(Refused, match="too_big"):
        await page.download(photo.file.id, 1)
    with pytest.raises(Refused):
        await page.send(ANNA, Part("", file=OutgoingFile("", file_id="unknown")))


async def test_only_the_first_two_administer_the_group() -> None:
    page = Page()
    page.scene.add_person("Chloé")
    asked = [(GROUP_ID, 1), (GROUP_ID, 2), (GROUP_ID, 3), (1, 1)]
    assert [await page.is_group_admin(*each) for each in asked] == [True, True, False, False]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/start", [("bot_command", 0, 6)]),
        ("(/start)", [("bot_command", 1, 6)]),
        ("@abcd!", [("mention", 0, 5)]),
        ("🙂 /help@ricordo_bot @ricordo_bot", [("bot_command", 3, 17), ("mention", 21, 12)]),
        *((text, []) for text in ("/a/b", "1/2", "@abc", "me@home.example", "/no/path")),
    ],
)
def test_mentions_and_commands_count_utf16(text: str, found: list[tuple[str, int, int]]) -> None:
    assert list(find_entities(text)) == [Entity(*each) for each in found]
