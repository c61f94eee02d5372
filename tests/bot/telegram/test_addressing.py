"""Which messages are addressed to us, and which of their text is meant for us."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.telegram.updates import IncomingMessage
from tests.bot.telegram.raw import (
    ANNA,
    GROUP,
    ME,
    OTHER_BOT,
    PRIVATE,
    US,
    ignored,
    inbound,
    message,
    read,
    said,
    utf16,
)

OUR_MESSAGE = said("Good morning", US)
ANNAS_MESSAGE = said("Good morning", ANNA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", "hello"),
        ("@Ricordo_bot hello", "hello"),
        ("@ricordo_BOT , hello", "hello"),
        ("tell @Ricordo_bot hello", "tell @Ricordo_bot hello"),
        ("@Ricordo_bot", "@Ricordo_bot"),
        ("@other_bot hello", "@other_bot hello"),
    ],
)
def test_in_private_all_is_for_us_and_a_leading_mention_is_cut(text: str, expected: str) -> None:
    update = inbound(message(text))
    assert (update.kind, update.text) == ("text", expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@Ricordo_bot when is dinner?", "when is dinner?"),
        ("@RICORDO_BOT: when, then:", "when, then:"),
        ("\U0001f600\U0001f600 @Ricordo_bot when?", "\U0001f600\U0001f600 @Ricordo_bot when?"),
        ("dinner, @Ricordo_bot?", "dinner, @Ricordo_bot?"),
    ],
)
def test_in_a_group_a_mention_anywhere_addresses_us(text: str, expected: str) -> None:
    update = inbound(message(text, chat=GROUP))
    assert (update.kind, update.text, update.is_group) == ("text", expected, True)


@pytest.mark.parametrize(
    "text",
    ["dinner is ready", "@Ricordo_bot2 hi", "@other_bot hi", "mail me@Ricordo_bot", "Ricordo_bot"],
)
def test_in_a_group_other_messages_are_not_for_us(text: str) -> None:
    assert ignored(message(text, chat=GROUP)) == "unaddressed"


def test_our_name_in_a_code_block_does_not_address_us() -> None:
    code = [{"type": "code", "offset": 0, "length": 12}]
    assert ignored(message("@Ricordo_bot", chat=GROUP, entities=code)) == "unaddressed"


def test_a_mention_by_link_addresses_us() -> None:
    link = [{"type": "text_mention", "offset": 0, "length": 2, "user": US}]
    assert inbound(message("\U0001f600 hi", chat=GROUP, entities=link)).text == "hi"
    link = [{"type": "text_mention", "offset": 0, "length": 2, "user": ANNA}]
    assert ignored(message("\U0001f600 hi", chat=GROUP, entities=link)) == "unaddressed"


def test_a_reply_to_us_is_for_us() -> None:
    update = inbound(message("and then?", chat=GROUP, reply_to_message=OUR_MESSAGE))
    assert (update.kind, update.text) == ("text", "and then?")


TOPIC_OPENED = said("", US, forum_topic_created={"name": "Trips", "icon_color": 1})


@pytest.mark.parametrize("other", [ANNAS_MESSAGE, said("x", OTHER_BOT), TOPIC_OPENED])
def test_a_reply_to_another_message_is_not_for_us(other: dict[str, object]) -> None:
    """In a topic that we opened, Telegram shows a plain message as a reply to its notice."""
    raw = message("and then?", chat=GROUP, reply_to_message=other, is_topic_message=True)
    assert ignored(raw) == "unaddressed"


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
@pytest.mark.parametrize(
    ("text", "command", "arguments"),
    [
        ("/help", "help", ""),
        ("/HELP me please", "help", "me please"),
        ("/help@Ricordo_bot", "help", ""),
        ("/Clear@ricordo_BOT now\nplease", "clear", "now\nplease"),
        ("/ask", "ask", ""),
        ("/ask@Ricordo_bot", "ask", ""),
        ("/unheard_of@Ricordo_bot x", "unheard_of", "x"),
    ],
)
def test_our_commands_are_read(
    chat: dict[str, object], text: str, command: str, arguments: str
) -> None:
    update = inbound(message(text, chat=chat))
    assert (update.kind, update.command, update.text) == ("command", command, arguments)


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
@pytest.mark.parametrize("text", ["/ask when is dinner?", "/ASK@Ricordo_bot  when is dinner?"])
def test_ask_with_a_text_is_an_ordinary_message(chat: dict[str, object], text: str) -> None:
    update = inbound(message(text, chat=chat))
    assert (update.kind, update.command, update.text) == ("text", "", "when is dinner?")


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_a_command_for_another_bot_is_never_ours(chat: dict[str, object]) -> None:
    raw = message("/help@other_bot", chat=chat, reply_to_message=OUR_MESSAGE)
    assert ignored(raw) == "other_bot"
    assert ignored(message("/help@other_bot @Ricordo_bot", chat=chat)) == "other_bot"


def test_an_unknown_bare_command_is_ours_in_private_only() -> None:
    update = inbound(message("/quote 3"))
    assert (update.kind, update.command, update.text) == ("command", "quote", "3")
    raw = message("/quote 3", chat=GROUP, reply_to_message=OUR_MESSAGE)
    assert ignored(raw) == "unknown_command"


@pytest.mark.parametrize("text", ["/usr/bin/env", "see /help", "//help"])
def test_a_text_that_only_looks_like_a_command_is_text(text: str) -> None:
    assert inbound(message(text)).kind == "text"


_talk = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/@"), max_size=20
)


@given(before=_talk, after=_talk)
def test_a_mention_is_found_anywhere_by_its_utf16_offset(before: str, after: str) -> None:
    text = f"{before} @{ME.username} {after}"
    mark = {"type": "mention", "offset": utf16(before) + 1, "length": utf16(ME.username) + 1}
    update = read(message(text, chat=GROUP, entities=[mark]))
    assert isinstance(update, IncomingMessage)
    assert update.text == text.strip() or not before.strip()


@given(before=_talk, after=_talk, shift=st.sampled_from([-1, 1]))
def test_a_mark_beside_our_name_does_not_address_us(before: str, after: str, shift: int) -> None:
    text = f"{before} @{ME.username} {after}"
    offset = utf16(before) + 1 + shift
    mark = {"type": "mention", "offset": offset, "length": utf16(ME.username) + 1}
    assert ignored(message(text, chat=GROUP, entities=[mark])) == "unaddressed"
