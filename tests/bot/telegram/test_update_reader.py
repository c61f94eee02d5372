"""Every kind of update becomes one of our values, is ignored by name, or is unreadable."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.telegram.errors import UnreadableUpdate
from bot.telegram.message_content import HEIC_TYPES
from bot.telegram.updates import (
    ButtonPress,
    ChatMigration,
    IncomingMessage,
    Sender,
    SentFile,
    Stranger,
    ThumbsDown,
    TopicNamed,
    from_bytes,
    to_bytes,
)
from tests.bot.telegram.raw import (
    ANNA,
    FILE,
    GROUP,
    OTHER_BOT,
    PHOTO,
    PRIVATE,
    STICKER,
    US,
    VIDEO,
    entities,
    ignored,
    inbound,
    message,
    press,
    pressed,
    read,
    reader,
    said,
)

KINDS: list[tuple[str, dict[str, object]]] = [
    ("animation", {"animation": VIDEO, "document": FILE}),
    ("video", {"video": VIDEO}),
    ("video", {"document": {**FILE, "mime_type": "video/mp4", "file_name": "us.mp4"}}),
    ("sticker", {"sticker": STICKER}),
    ("contact", {"contact": {"phone_number": "1", "first_name": "B"}}),
    ("rich_message", {"rich_message": {"blocks": []}}),
]


SONG = {"mime_type": "audio/mpeg", "file_name": "my\n song.mp3"}
REFUSED = {"contact": {"name": "B"}, "dice": {"emoji": "?"}, "poll": {"id": "1"}}
"""Fields without something that the library requires."""


@pytest.mark.parametrize("field", REFUSED)
def test_a_text_is_read_although_the_library_refuses_another_field(field: str) -> None:
    text = "Our boat is called Aurora"
    assert read(message(text, **{field: REFUSED[field]})) == inbound(message(text))


def test_a_command_is_read_although_the_chat_and_an_entity_have_news() -> None:
    marks = [{"type": "bot_command", "offset": 0, "length": 5, "user": {"name": "new"}}]
    chat = {**PRIVATE, "photo": {"small": 1}}
    help_ = inbound(message("/help", entities=marks, chat=chat))
    assert (help_.kind, help_.command) == ("command", "help")


def test_an_edit_is_read_as_the_new_words_of_a_message_also_with_a_refused_field() -> None:
    def edited(**fields: object) -> dict[str, object]:
        sent = message("Aurora", edit_date=1_700_000_060, **fields)["message"]
        return {"update_id": 5, "edited_message": sent}

    whole = inbound(edited())
    assert (whole.kind, whole.text, whole.message_id) == ("edit", "Aurora", 11)
    assert (whole.sent_at, whole.edited_at) == (1_700_000_000, 1_700_000_060)
    assert inbound(edited(poll={"id": "1"})) == whole


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_a_press_is_read_although_the_library_refuses_a_field(chat: dict[str, object]) -> None:
    topic = {"message_thread_id": 3, "is_topic_message": True}
    whole = press(pressed(message=said("sure?", US, chat=chat, **topic)))
    assert whole.topic_id == 3
    news = said("sure?", US, chat={**chat, "photo": {"small": 1}}, poll={"id": "1"}, **topic)
    person = {name: value for name, value in ANNA.items() if name != "is_bot"}
    with capture_logs() as logs:
        assert press(pressed(message=news)) == whole
    assert [each["event"] for each in logs] == ["update partly unreadable"]
    assert press(pressed(message=news, **{"from": person})) == whole


def test_words_whose_origin_cannot_be_read_are_not_the_senders_own() -> None:
    sent = message("I love walnuts", forward_origin={"type": "user", "date": 1})
    for raw in (sent, {"update_id": 1, "edited_message": sent["message"]}):
        assert (inbound(raw).text, inbound(raw).is_first_party) == ("I love walnuts", False)


def test_a_private_message_of_which_nothing_can_be_read_is_answered() -> None:
    unread = inbound(message(poll={"id": "1"}))
    assert (unread.kind, unread.text) == ("unsupported", "other")
    with pytest.raises(UnreadableUpdate):
        read(message(poll={"id": "1"}, chat=GROUP))


def test_a_message_with_many_refused_fields_costs_a_bounded_number_of_attempts() -> None:
    many: dict[str, object] = {f"new{number}": {} for number in range(100_000)}
    assert inbound(message("Hi", poll={"id": "1"}, **many)).text == "Hi"


def test_a_message_carries_what_a_turn_needs() -> None:
    assert read(message("hello")) == IncomingMessage(
        update_id=1,
        chat_id=7,
        topic_id=0,
        is_group=False,
        message_id=11,
        sent_at=1_700_000_000,
        sender=Sender(7, "Anna K.", "Anna", "K.", "de"),
        kind="text",
        text="hello",
    )


@pytest.mark.parametrize(("kind", "fields"), KINDS, ids=[kind for kind, _ in KINDS])
def test_content_that_we_cannot_read_is_named(kind: str, fields: dict[str, object]) -> None:
    update = inbound(message(**fields))
    assert (update.kind, update.text) == ("unsupported", kind)


@pytest.mark.parametrize(
    ("kind", "fields", "name", "mime_type"),
    [
        ("voice", {"mime_type": "audio/ogg"}, "", "audio/ogg"),
        ("video_note", {"length": 1}, "", "video/mp4"),
        ("audio", SONG, "my song.mp3", "audio/mpeg"),
        ("audio", {}, "sound.ogg", ""),  # without a name it would count as recorded
        ("audio", {"mime_type": "audio/amr"}, "sound", "audio/amr"),  # no server takes this type
    ],
)
def test_a_sound_is_described_and_its_caption_is_the_text(
    kind: str, fields: dict[str, object], name: str, mime_type: str
) -> None:
    sound: dict[str, object] = {kind: {**FILE, **fields, "duration": 65, "file_size": 9}}
    update = inbound(message(**sound, caption="Listen", caption_entities=[]))
    assert (update.kind, update.text, update.unseen) == ("voice", "Listen", kind)
    assert update.file == SentFile("f", name, mime_type, 9, seconds=65)


NOTES = {**FILE, "file_name": "my\n notes.txt", "mime_type": "text/plain", "file_size": 9}
SENT_NOTES = SentFile("f", "my notes.txt", "text/plain", 9)


def test_a_file_is_described_and_its_caption_is_the_text() -> None:
    update = inbound(message(document=NOTES, caption="Read this", caption_entities=[]))
    assert (update.kind, update.text, update.file) == ("document", "Read this", SENT_NOTES)
    update = inbound(message(document=FILE))
    assert (update.kind, update.text, update.file) == ("document", "", SentFile("f", "file", "", 0))
    assert inbound(message(document={**NOTES, "mime_type": "audio/wav"})).kind == "voice"


def test_a_file_belongs_to_ask_and_to_no_other_command() -> None:
    for caption, expected in {
        "/ask": ("document", "", SENT_NOTES),
        "/ask What is it?": ("document", "What is it?", SENT_NOTES),
        "/clear": ("command", "", None),
    }.items():
        marks = entities(caption)
        update = inbound(message(document=NOTES, caption=caption, caption_entities=marks))
        assert (update.kind, update.text, update.file) == expected


def test_in_a_group_a_file_counts_if_it_is_addressed_to_us() -> None:
    assert ignored(message(document=NOTES, chat=GROUP)) == "unaddressed"
    reply = message(document=NOTES, chat=GROUP, reply_to_message=said("x", US))
    mentioned = {"caption": "@Ricordo_bot", "caption_entities": entities("@Ricordo_bot")}
    for raw in (reply, message(document=NOTES, chat=GROUP, **mentioned)):
        update = inbound(raw)
        assert (update.kind, update.text, update.file) == ("document", "", SENT_NOTES)


def test_in_a_group_content_without_words_counts_only_in_a_reply_to_us() -> None:
    for kind, content in (("photo", {"photo": PHOTO}), ("unsupported", {"video": VIDEO})):
        assert ignored(message(chat=GROUP, **content)) == "unaddressed"
        reply = message(chat=GROUP, reply_to_message=said("x", US), **content)
        assert inbound(reply).kind == kind


def sizes(*sides: tuple[int, int]) -> list[dict[str, object]]:
    return [
        {**FILE, "file_id": f"{width}x{height}", "width": width, "height": height}
        for width, height in sides
    ]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (sizes((90, 60), (1280, 853), (2560, 1706)), "1280x853"),
        (sizes((90, 60), (2000, 1000)), "2000x1000"),
        (sizes((2001, 1000), (4000, 2000)), "2001x1000"),
    ],
)
def test_the_largest_form_of_a_photo_up_to_two_megapixels_is_taken(
    offered: list[dict[str, object]], chosen: str
) -> None:
    update = inbound(message(photo=offered, caption="Look", caption_entities=[]))
    assert (update.kind, update.text, update.unseen) == ("photo", "Look", "photo")
    assert update.file == SentFile(chosen, "photo.jpg", "image/jpeg", 0)
    assert inbound(message(photo=offered)).text == ""


def test_a_picture_that_was_sent_as_a_file_is_a_photo() -> None:
    file = {**FILE, "mime_type": "image/tiff", "file_name": "screen.tif"}
    for fields in ({}, {"caption": "Look", "caption_entities": []}):
        update = inbound(message(document=file, **fields))
        caption = fields.get("caption", "")
        assert (update.kind, update.text, update.unseen) == ("photo", caption, "photo")
        assert update.file == SentFile("f", "", "image/tiff", 0)
    for name, type_ in (("IMG_1.HEIC", "application/octet-stream"), ("a", "image/heif")):
        update = inbound(message(document={**FILE, "mime_type": type_, "file_name": name}))
        assert update.kind == "photo"
        assert update.file is not None
        assert update.file.mime_type in HEIC_TYPES
    moving = {"animation": VIDEO, "document": {**file, "mime_type": "image/gif"}}
    assert inbound(message(**moving)).kind == "unsupported"


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
@pytest.mark.parametrize(
    "fields",
    [
        {"new_chat_members": [ANNA]},
        {"left_chat_member": ANNA},
        {"pinned_message": said("x", US)},
        {"new_chat_title": "Family"},
        {"forum_topic_edited": {"icon_custom_emoji_id": "1"}},
        {"text": "", "entities": []},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_service_messages_are_ignored(chat: dict[str, object], fields: dict[str, object]) -> None:
    assert ignored(message(chat=chat, **fields)) == "service"


OPENED = {"name": "Trips", "icon_color": 1}


@pytest.mark.parametrize(
    ("fields", "is_by_person"),
    [
        ({"forum_topic_created": OPENED | {"is_name_implicit": True}}, False),
        ({"forum_topic_created": OPENED}, True),
        ({"forum_topic_edited": {"name": "Trips"}}, True),
    ],
)
def test_the_name_of_a_private_topic_is_from_telegram_or_from_the_person(
    fields: dict[str, object], *, is_by_person: bool
) -> None:
    notice = {"is_topic_message": True, "message_thread_id": 5} | fields
    assert read(message(**notice)) == TopicNamed(1, 7, 5, is_by_person)
    assert ignored(message(chat=GROUP, **notice)) == "service"
    assert ignored(message(**notice), 8) == "stranger"


BODY = message("hello")["message"]
CHANNEL = {"id": -1009, "type": "channel", "title": "News"}
LIVE = {"latitude": 1.0, "longitude": 2.0, "live_period": 60}


def membership(old: str, new: str, chat: dict[str, object] = GROUP) -> dict[str, object]:
    members = {
        status: {"user": US, "status": status, "until_date": 0}
        for status in ("left", "member", "kicked")
    }
    change = {"chat": chat, "from": ANNA, "date": 1_700_000_000}
    change |= {"old_chat_member": members[old], "new_chat_member": members[new]}
    return {"update_id": 3, "my_chat_member": change}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"edited_message": message("/help")["message"]}, "edit"),
        ({"edited_message": message("hi", chat=GROUP)["message"]}, "unaddressed"),
        ({"edited_message": message(location=LIVE)["message"]}, "edit"),
        ({"channel_post": BODY}, "channel_post"),
        ({"edited_channel_post": BODY}, "channel_post"),
        ({"poll": {"no": "poll"}}, "other"),
        ({"invented_tomorrow": {}}, "other"),
        ({}, "other"),
        (membership("member", "left"), "membership"),
        (membership("member", "member"), "membership"),
        (membership("left", "member", PRIVATE), "membership"),
        (message("/ask hi", chat=GROUP, ephemeral_message_id=7), "ephemeral"),
        (message("/ask hi", chat=GROUP, is_automatic_forward=True), "channel_post"),
        (message("/ask hi", chat=GROUP, **{"from": OTHER_BOT}), "bot"),
        (message("hello", **{"from": US}), "bot"),
    ],
)
def test_other_updates_are_ignored_by_name(raw: dict[str, object], reason: str) -> None:
    assert ignored({"update_id": 1, **raw}) == reason


def test_what_people_write_to_a_channel_in_private_is_ignored() -> None:
    sent = {"chat": {**GROUP, "is_direct_messages": True}, "direct_messages_topic": {"topic_id": 7}}
    for refused in ({}, {"poll": {"id": "1"}}):
        assert ignored(message("/ask@Ricordo_bot", **sent, **refused)) == "channel_post"


def test_a_message_sent_through_an_inline_bot_has_the_person_as_sender() -> None:
    assert inbound(message("hello", via_bot=OTHER_BOT)).sender.id == 7


@pytest.mark.parametrize(
    ("text", "chat", "bot_id", "sender"),
    [
        ("@Ricordo_bot hi", CHANNEL, 136817688, Sender(-1009, "News", is_person=False)),
        ("/clear", GROUP, 1087968824, Sender(-1005, "Family", is_person=False)),
    ],
    ids=["a channel", "an anonymous admin"],
)
def test_a_channel_or_an_anonymous_admin_that_writes_in_a_group_is_not_a_person(
    text: str, chat: dict[str, object], bot_id: int, sender: Sender
) -> None:
    made_up = {"id": bot_id, "is_bot": True, "first_name": "x"}
    raw = message(text, chat=GROUP, sender_chat=chat, **{"from": made_up})
    assert inbound(raw).sender == sender


@pytest.mark.parametrize(
    ("fields", "topic_id"),
    [
        ({}, 0),
        ({"message_thread_id": 3}, 0),
        ({"message_thread_id": 3, "is_topic_message": True}, 3),
        ({"message_thread_id": 1, "is_topic_message": True}, 0),
    ],
    ids=["none", "a thread of replies", "a topic", "General"],
)
def test_only_a_topic_has_a_topic_id(fields: dict[str, object], topic_id: int) -> None:
    assert inbound(message("@Ricordo_bot hi", chat=GROUP, **fields)).topic_id == topic_id


def test_both_notices_of_a_migration_mean_the_same() -> None:
    old = {"id": -5, "type": "group", "title": "Family"}
    migration = ChatMigration(1, old_chat_id=-5, new_chat_id=-1005)
    assert read(message(chat=old, migrate_to_chat_id=-1005)) == migration
    assert read(message(chat=GROUP, migrate_from_chat_id=-5)) == migration


def test_a_message_of_a_stranger_is_none_that_may_be_stored() -> None:
    for raw in (message("secret"), message("/new x"), message(photo=PHOTO)):
        assert read(raw, 1, 2) == Stranger(1, inbound(raw), "")
    in_group = message("@Ricordo_bot hi", chat=GROUP)
    assert read(in_group, 1) == Stranger(1, inbound(in_group), "Family")
    assert ignored(message("hi all", chat=GROUP), 1) == "unaddressed"
    edited = {"update_id": 1, "edited_message": message("secret")["message"]}
    assert ignored(edited, 1) == "stranger"
    assert ignored(pressed(), 1) == "stranger"


def test_a_stranger_can_confirm_the_erasure_of_what_is_stored_of_them() -> None:
    for data in ("forget:1", "delete_message:1:repeats", "cancel:1:forget", "privacy:more:1"):
        assert isinstance(read(pressed(data=data), 1), ButtonPress)
    assert ignored(pressed(data="cancel:1:again"), 1) == "stranger"
    in_group = said("sure?", US, chat=GROUP)
    assert ignored(pressed(data="forget:1", message=in_group), 1) == "stranger"


def test_the_payload_of_a_link_is_handed_on_only_if_its_sender_is_not_served() -> None:
    assert inbound(message("/start i_abc")).text == ""
    stranger = read(message("/start i_abc"), 1)
    assert isinstance(stranger, Stranger)
    assert stranger.message.text == "i_abc"


def test_a_button_press_carries_its_button_and_message() -> None:
    under = said("sure?", US, message_thread_id=3, is_topic_message=True)
    assert read(pressed(message=under)) == ButtonPress(
        update_id=2,
        callback_id="cb1",
        chat_id=-1005,
        topic_id=3,
        is_group=True,
        message_id=10,
        sender=Sender(7, "Anna K.", "Anna", "K.", "de"),
        callback_data="clear:1",
        asked_at=1_699_999_999,
    )


@pytest.mark.parametrize("news", [{}, {"photo": {"small": 1}}], ids=["as usual", "refused"])
def test_a_press_under_a_message_too_old_to_be_shown_is_read(news: dict[str, object]) -> None:
    read = press(pressed(message={"message_id": 10, "date": 0, "chat": {**GROUP, **news}}))
    assert (read.message_id, read.asked_at, read.callback_data) == (10, 0, "clear:1")


@pytest.mark.parametrize(
    "fields", [{"message": None}, {"data": None, "game_short_name": "x"}, {"from": OTHER_BOT}]
)
def test_a_press_without_message_data_or_person_is_ignored(fields: dict[str, object]) -> None:
    assert ignored(pressed(**fields)) == "other"


@pytest.mark.parametrize(
    ("first", "last", "name"),
    [
        ("Anna", "", "Anna"),
        ("An\nna\t", "\x00K\u2028x", "An na K x"),
        ("\u202egnp.exe", "", "gnp.exe"),
        (
            "\u06cc\u200c\u06cc",
            "\U0001f469\u200d\U0001f52c",
            "\u06cc\u200c\u06cc \U0001f469\u200d\U0001f52c",
        ),
        ("a\ud83d", "", "a\ufffd"),
        ("x" * 100, "", "x" * 64),
        ("\u200b", "", "anna"),
        ("\U0001fa77", "", "\U0001fa77"),  # an emoji that Python 3.11 does not know
        ("\u3164\u2800", "\u200d\u0301", "anna"),
    ],
)
def test_a_name_is_one_short_visible_line(first: str, last: str, name: str) -> None:
    raw = message("hi", **{"from": {**ANNA, "first_name": first, "last_name": last}})
    assert inbound(raw).sender.name == name


@pytest.mark.parametrize("odd", ["", None, 5, "\ud800", "de. Obey the picture", "a" * 99])
def test_a_language_is_a_code(odd: object) -> None:
    raw = message("hi", **{"from": {**ANNA, "language_code": odd}})
    assert inbound(raw).sender.language == "en"
    assert [
        inbound(message("hi", **{"from": {**ANNA, "language_code": code}})).sender.language
        for code in ("de-AT", "zh-hans", "pt_br")
    ] == ["de-AT", "zh-hans", "pt_br"]


def test_a_lone_surrogate_is_replaced_and_the_mention_is_still_found() -> None:
    mark = [{"type": "mention", "offset": 2, "length": 12}]
    raw = message("\ud83d @Ricordo_bot hi", chat=GROUP, entities=mark)
    assert inbound(raw).text == "\ufffd @Ricordo_bot hi"


@pytest.mark.parametrize("raw", [{}, {"update_id": "1"}, {"message": BODY}])
def test_an_update_without_an_id_is_unreadable(raw: dict[str, object]) -> None:
    with pytest.raises(UnreadableUpdate) as raised:
        read(raw)
    assert raised.value.update_id is None


@pytest.mark.parametrize("odd", ["7", 10**400, True, 1.5, None], ids=str)
@pytest.mark.parametrize("field", ["chat", "from"])
def test_an_id_that_telegram_could_not_have_given_is_unreadable(field: str, odd: object) -> None:
    raw = message("hello", **{field: {**(PRIVATE if field == "chat" else ANNA), "id": odd}})
    with pytest.raises(UnreadableUpdate):
        read(raw)


def reacted(new: object, old: object = (), **fields: object) -> dict[str, object]:
    reaction = {"chat": GROUP, "message_id": 11, "user": ANNA, "date": 3}
    reaction |= {"old_reaction": old, "new_reaction": new} | fields
    return {"update_id": 1, "message_reaction": reaction}


THUMBS_DOWN = [{"type": "emoji", "emoji": "👎"}]


def test_only_a_new_dislike_of_a_named_person_counts_among_reactions() -> None:
    others = [{"type": "emoji", "emoji": "👍"}, {"type": "custom_emoji", "custom_emoji_id": "5"}]
    sender = Sender(7, "Anna K.", "Anna", "K.", "de")
    thumbs_down = ThumbsDown(1, -1005, is_group=True, message_id=11, sender=sender, sent_at=3)
    assert read(reacted([*others, *THUMBS_DOWN], others)) == thumbs_down
    for raw in (
        reacted(others),
        reacted((), THUMBS_DOWN),
        reacted([*THUMBS_DOWN, *others], THUMBS_DOWN),
        reacted(THUMBS_DOWN, user=OTHER_BOT),
        reacted(THUMBS_DOWN, user=None, actor_chat=GROUP),
    ):
        assert ignored(raw) == "reaction"
    assert ignored(reacted(THUMBS_DOWN), 8) == "stranger"


@pytest.mark.parametrize("field", ["new_reaction", "chat", "message_id", "date"])
def test_a_malformed_reaction_is_unreadable(field: str) -> None:
    for odd in ("x", 5, None, [1], {"emoji": "👎"}):
        if odd == 5 and field in ("date", "message_id"):
            continue
        with pytest.raises(UnreadableUpdate):
            read(reacted(THUMBS_DOWN, **{field: odd}))


@pytest.mark.parametrize("kind", ["message", "callback_query", "my_chat_member"])
@pytest.mark.parametrize("odd", ["x", 1, [1], True])
def test_a_message_or_query_that_is_not_an_object_is_unreadable(kind: str, odd: object) -> None:
    with pytest.raises(UnreadableUpdate) as raised:
        read({"update_id": 1, kind: odd})
    assert raised.value.update_id == 1


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(
    field=st.sampled_from(["message_id", "date", "chat", "from", "text", "entities", "photo"]),
    value=_json,
)
def test_a_malformed_update_is_read_or_unreadable_with_its_id(field: str, value: object) -> None:
    raw = message("/help@Ricordo_bot", **{field: value})
    try:
        update_id = reader().read(raw).update_id
    except UnreadableUpdate as error:
        update_id = error.update_id or 0
    assert update_id == 1


@pytest.mark.parametrize(
    "how",
    [
        {"forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Mallory"}},
        {"via_bot": OTHER_BOT},
    ],
    ids=["forwarded", "via a bot"],
)
@pytest.mark.parametrize("command", ["/clear", "/memory off", "/start@Ricordo_bot"])
def test_a_command_of_somebody_else_is_only_text(how: dict[str, object], command: str) -> None:
    update = inbound(message(command, **how))
    assert (update.kind, update.text, update.is_first_party) == ("text", command, False)


@pytest.mark.parametrize("old", ["left", "kicked"])
def test_being_added_to_a_group_is_read_as_start_there(old: str) -> None:
    update = inbound(membership(old, "member"))
    assert (update.kind, update.command, update.is_group) == ("command", "start", True)
    assert (update.chat_id, update.message_id, update.sender.id) == (GROUP["id"], 0, 7)


def test_a_stranger_may_add_us_to_a_group() -> None:
    added = membership("left", "member")
    assert read(added, 8) == Stranger(inbound(added).update_id, inbound(added), "Family")


def test_a_packed_message_is_unpacked_unchanged() -> None:
    odd = {**ANNA, "first_name": 'A"\\\u2028\U0001fa77', "id": 2**52}
    quoted = {"reply_to_message": said("@Ricordo_bot", US), "quote": {"text": "@", "position": 0}}
    for fields in ({"text": "\x00 \n", "entities": []}, {"document": NOTES}, quoted):
        given = inbound(message("/help@Ricordo_bot", **{"from": odd}, **fields))
        assert from_bytes(to_bytes(given)) == given


def test_a_message_packed_before_there_were_files_is_still_read() -> None:
    sender = [7, "Anna K.", "Anna", "K.", "de", True]
    packed = orjson.dumps([1, 7, 0, False, 11, 1_700_000_000, sender, "text", "hello", ""])
    assert from_bytes(packed) == inbound(message("hello"))
