"""The playground's page without a browser: what it sends to the bot, shows, and refuses."""

import asyncio
import pickle
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import pytest

from bot.model.call import PromptMessage
from bot.model.model_errors import ModelRefused
from bot.playground.inspector import Inspector
from bot.playground.inspector_page import InspectorPage
from bot.playground.page_telegram import PageTelegram
from bot.playground.play import has_screen, open_browser
from bot.playground.scene import GROUP_ID, PageMessage, Scene, uploaded
from bot.prompt.assemble import Prompt
from bot.reply.parts import Button, Part
from bot.telegram.chat import Destination
from bot.turn.observers import AgentRan, BotServing
from memory.behaviors.context import AgentContext, Background, CallContext, Person
from memory.behaviors.steps import Action, CompletedStep, ToolCall, ToolResult
from memory.behaviors.tool_output import OutgoingFile
from memory.memory import Memory
from memory.message import Message, Picture
from memory.scopes.changes import Write
from memory.scopes.entries import Checked, Ended, Fact
from memory.scopes.history import ChatHistory
from memory.scopes.sources import Source, Wording
from memory.search.message_search import SearchResult
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.work.item import WorkItem

ANNA = "c:1:0"
SECTION = "<memory>\n[today] Anna: The <b>boat</b> is called Aurora\n</memory>"


@dataclass
class Site:
    """The page with its parts."""

    telegram: PageTelegram
    scene: Scene
    inspector: Inspector
    page: InspectorPage
    client: httpx2.AsyncClient

    async def post(self, path: str, **form: str) -> httpx2.Response:
        return await self.client.post(path, data=form)

    async def text(self, at: str = ANNA, **query: str) -> str:
        return (await self.client.get("/", params={"at": at} | query)).text

    def say(self, text: str, at: str = ANNA) -> PageMessage:
        place = self.scene.place(at)
        return self.telegram.say(place, place.speaker, text)

    @property
    def updates(self) -> list[Mapping[str, Any]]:
        return list(self.telegram.updates.values())


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    scene = Scene()
    telegram = PageTelegram(scene)
    inspector = Inspector(telegram, scene)
    page = InspectorPage(inspector, "A note")
    transport = httpx2.ASGITransport(page.app())
    headers = {"origin": "http://localhost"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        yield Site(telegram, scene, inspector, page, client)


@pytest.fixture
def memory(site: Site, memory: Memory) -> Memory:
    site.inspector.observe(BotServing(memory, prompt))
    return memory


async def ran(memory: Memory, number: int, *, uses_memory: bool = True) -> AgentRan:
    said = Message(1, 1, "user", "The <b>boat</b> is called Aurora", 1.0, sender_name="Anna")
    call = ToolCall("a", "calculate", '{"expression": "3 * 7"}')
    hit = SearchResult((said,), 3.25, 1, lexical=2.5, dense=0.75, is_boosted=True)
    context = AgentContext(
        CallContext(Scope(ANNA), Person(), 2.0, used={"f1": "a fact"}),
        await ChatHistory.read(memory.histories, Scope(ANNA)),
        Message(0, 0, "user", f"Question {number}", 2.0, message_ids=(number,)),
        uses_memory=uses_memory,
        background=Background(window=(said,), recalled=(hit,)),
        completed_steps=[CompletedStep(Action((call,)), (ToolResult("a", "21"),))],
        pictures=(Picture(1, b"a picture", "image/png", 1, 1),),
        files=[OutgoingFile("a.txt", b"a file")],
        sizes={"system": 11, "tools": 22, "window": 33, "memory": 44, "message": 55, "steps": 66},
    )
    return AgentRan(context, "21", None, 0.5)


def prompt(context: AgentContext) -> Prompt:
    said = f"{SECTION}\n\n{context.user_message.text}"
    return Prompt(
        (
            PromptMessage("system", "You are a bot."),
            PromptMessage("user", said, pictures=context.pictures),
            PromptMessage("tool", "21", tool_call_id="a"),
        ),
        {},
    )


async def test_a_message_reaches_its_topic_from_the_chosen_person(site: Site) -> None:
    kitchen = next(place for place in site.scene if place.topic)
    tag = kitchen.conversation.tag
    await site.post("/say", at=tag, person="2", mention="1", text="Who cooks?")
    [said] = kitchen.messages
    assert (said.text, said.sender) == ("@ricordo_bot Who cooks?", site.scene.people[1])
    assert site.updates[-1]["message"]["message_thread_id"] == 2
    for command in ("/help", "/help@other_bot", "/recall boat"):
        await site.post("/say", at=tag, mention="1", text=command)
    commands = ["/help@ricordo_bot", "/help@other_bot", "/recall@ricordo_bot boat"]
    assert [each.text for each in kitchen.messages[1:]] == commands


async def test_a_private_chat_keeps_its_person_and_mentions_nobody(site: Site) -> None:
    answer = await site.post("/say", at=ANNA, person="2", mention="1", command="/help", text="Hm")
    assert answer.headers["location"] == "/?at=c%3A1%3A0"
    [said] = site.scene.place(ANNA).messages
    assert (said.text, said.sender) == ("/help", site.scene.people[0])


async def test_the_answer_to_a_button_is_seen_until_a_person_does_anything_else(site: Site) -> None:
    await site.telegram.send(Destination(1), Part("Sure?", (), ((Button("yes", "ok"),),)))
    place = site.scene.place(ANNA)
    site.telegram.press(place, place.messages[0], "ok")
    await site.telegram.answer_button(site.updates[-1]["callback_query"]["id"], "Not <yours>")
    assert '<p class="note" role="status">Not &lt;yours&gt;</p>' in await site.text()
    await site.post("/press", at=ANNA, button=f"{place.messages[0].id}:👎")
    assert "Not &lt;yours" not in await site.text()
    disliked = site.updates[-1]["message_reaction"]
    assert disliked["new_reaction"] == [{"type": "emoji", "emoji": "👎"}]


async def test_an_unknown_address_shows_the_first_chat_and_languages_have_names(site: Site) -> None:
    page = await site.text(at="c:99:0")
    assert "<h2>What happened: Anna</h2>" in page
    assert '<option value="de">Deutsch</option>' in page
    assert "the app is set to English" in page


async def test_a_turn_is_shown_in_parts_with_messages_escaped(site: Site, memory: Memory) -> None:
    site.inspector.observe(await ran(memory, 1))
    page = await site.text()
    assert "231 tokens" in page
    for tokens in (11, 22, 33, 44, 55, 66):
        assert f'<td class="number">{tokens}</td>' in page
    assert page.count("&lt;memory&gt;\n[today] Anna: The &lt;b&gt;boat") == 2  # and in the prompt
    assert "<b>boat</b>" not in page
    for score in ("3.25", "2.50", "0.75", "yes"):
        assert f"<dd>{score}</dd>" in page
    assert "calculate({&#34;expression&#34;: &#34;3 * 7&#34;})" in page


async def test_a_failed_turn_says_why_and_what_setting_may_help(site: Site, memory: Memory) -> None:
    refused = ModelRefused("a secret", 404, "model_not_found")
    site.inspector.observe(replace(await ran(memory, 1), reply="", error=refused))
    why = "It failed: ModelRefused 404 model_not_found; look at OPENAI_MODEL."
    assert why in await site.text()


async def test_of_a_turn_only_what_the_page_shows_is_kept(site: Site, memory: Memory) -> None:
    """Else erased words, files and a bot that was closed would stay in the process."""
    site.inspector.observe(await ran(memory, 1))
    kept = pickle.dumps(await site.inspector.turns(site.scene.place(ANNA)))
    assert b"Question 1" in kept
    assert not any(each in kept for each in (b"a fact", b"a file", b"a picture"))


async def test_what_the_script_has_already_is_not_sent_again(site: Site) -> None:
    first = await site.client.get("/", params={"at": ANNA})
    assert first.headers["content-security-policy"].startswith("default-src 'self';")
    known = {"if-none-match": first.headers["etag"]}
    again = await site.client.get("/", params={"at": ANNA}, headers=known)
    assert (again.status_code, again.content) == (304, b"")
    await site.post("/say", at=ANNA, text="Hello")
    changed = await site.client.get("/", params={"at": ANNA}, headers=known)
    assert "334 messages, facts, summaries" in first.text
    assert changed.text == await site.text() != first.text


async def test_turns_from_before_an_erasure_and_off_the_record_are_not_shown(
    site: Site, memory: Memory
) -> None:
    here = Scope(ANNA)
    history = await ChatHistory.read(memory.histories, here)
    said = await history.append_user_message("A secret", 1.0, sender_id=1)
    site.inspector.observe(await ran(memory, 1, uses_memory=False))
    site.inspector.observe(await ran(memory, 2))
    assert re.findall(r"Question (\d)</bdi>", await site.text()) == ["2"]
    await memory.forgetting.erase_messages(here, [said.seq], "receipt")
    site.inspector.observe(await ran(memory, 3))
    assert re.findall(r"Question (\d)</bdi>", await site.text()) == ["3"]
    await (await ChatHistory.read(memory.histories, here)).clear()
    assert "Question" not in await site.text()


async def test_twenty_turns_are_listed_and_only_the_chosen_one_is_sent_in_full(
    site: Site, memory: Memory
) -> None:
    for number in range(1, 31):
        site.inspector.observe(await ran(memory, number))
    page = await site.text(turn="12")
    assert (page.count('class="turn"'), page.count('<details class="turn"')) == (20, 1)
    assert '<details class="turn" id="turn-c:1:0-12" open>' in page
    assert 'id="turn-c:1:0-10"' not in page
    assert page.count(" open>") == 1


async def test_starting_over_erases_chats_memory_and_updates(site: Site, memory: Memory) -> None:
    history = await ChatHistory.read(memory.histories, Scope(ANNA))
    await history.append_user_message("A secret", 1.0, sender_id=1)
    await site.post("/say", at=ANNA, text="Another secret")
    site.inspector.observe(await ran(memory, 1))
    assert "t: A secret" not in await site.text()
    assert "t: A secret" in await site.text(stored="1")
    await site.post("/start-over")
    page = await site.text()
    assert "secret" not in page
    assert "Question" not in page
    assert site.updates == []
    again = await ChatHistory.read(memory.histories, Scope(ANNA))
    assert list(again.messages) == []


async def test_the_memory_is_shown_with_receipts_histories_and_reminders(
    site: Site, memory: Memory, store: RedisClient
) -> None:
    said = site.say("I live in <b>Graz</b>")
    history = await ChatHistory.read(memory.histories, Scope(ANNA))
    await history.append_user_message(said.text, 86_400, sender_id=1)
    sources = (Source(ANNA, 1, 0, 1), Source("c:1:5", 1, 0, 1))
    wording = Wording(1, "Lives in <i>Linz</i>", sources, 86_400, 172_800)
    lives = Fact(0, "Lives in Graz", sources, 172_800, replaced=(wording,), is_pinned=True)
    rows = Fact(0, "Rows", sources[1:], 86_400)
    ended = Ended(2, 259_200, 1)
    facts = await memory.scopes.read(Scope.of_person(1))
    added = [replace(lives, changes=True), rows, ended, Checked(1, 345_600, is_confirmed=True)]
    await memory.scopes.write(facts, Write(added))
    water = WorkItem(
        1, "Water <plants>", rule="0 18 * * 5", zone="Asia/Tehran", due=0, message_id=said.id
    )
    body = f"1|0|{1_900_000_000_000}|0|0|0|{water.body}"
    await store.call("HSET", memory.keys.scope(Scope(ANNA)).work, water.id, body)
    assert "marked" not in await site.text()
    await site.telegram.react(1, 1, "✍")
    page = " ".join((await site.text()).split("<h2>Memory</h2>")[1].split())
    assert "Messages that taught something: 1<" in page
    assert f"#message-{ANNA}-1" in page
    assert "“I live in &lt;b&gt;Graz&lt;/b&gt;”" in page
    assert "marked ✍" in page
    assert "Facts: 2" in page
    for shown in (
        '<span class="badge">pinned</span>',
        '<span class="badge">ended</span>',
        "replaced by “Lives in Graz”",
        "“Lives in &lt;i&gt;Linz&lt;/i&gt;”",
        "<dt>former words, until 3 January 1970",
        "<dd>changes with time</dd>",
        "<dt>confirmed or said again</dt><dd>5 January 1970",
        "a message of another chat or topic, or one that is gone",
        "Reminders to come: 1",
        "Water &lt;plants&gt;",
        "Asia/Tehran, repeats by <code>0 18 * * 5</code>",
        "Sunday, 17 March 2030, 21:16",
    ):
        assert shown in page


async def test_people_can_be_added_until_the_page_is_full(site: Site) -> None:
    answers = [await site.post("/people", name=f"Person {n}") for n in range(7)]
    assert [answer.status_code for answer in answers] == [303] * 6 + [409]
    assert answers[0].headers["location"] == "/?at=c%3A3%3A0"


def test_people_topics_languages_and_the_year_survive_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "scene.json"
    scene = Scene(file)
    scene.add_person("Chloé", "de")
    scene.add_topic("Repairs")
    scene.switch_language(scene.people[1], "fa")
    scene.add_guest()
    again = Scene(file)
    assert [place.conversation for place in again] == [place.conversation for place in scene]
    assert [place.title for place in again] == [place.title for place in scene]
    assert again.people == scene.people
    assert [person.language for person in again.people] == ["en", "fa", "de"]


def test_a_scene_file_that_cannot_be_read_gives_the_first_scene(tmp_path: Path) -> None:
    file = tmp_path / "scene.json"
    file.write_text('{"people": 3}')
    found = [place.conversation.tag for place in Scene(file)]
    assert found == [ANNA, "c:2:0", f"c:{GROUP_ID}:0", f"c:{GROUP_ID}:2"]


async def test_after_a_restart_chats_show_what_it_remembers(site: Site, memory: Memory) -> None:
    history = await ChatHistory.read(memory.histories, Scope(ANNA))
    await history.append_user_message("My boat is called Aurora", 1.0, sender_id=1)
    hostile = "[boat](javascript:alert(1)) <img src=x onerror=alert(2)> [sea](https://a.example)"
    await history.append_assistant_message(f"**Noted.** {hostile} {'*a* ' * 200}", 2.0)
    page = await site.text()
    assert ("<strong>Noted.</strong>" in page, page.count("<em>a</em>")) == (True, 98)
    assert '<a href="https://a.example" rel="noreferrer">sea</a>' in page
    assert [each for each in ("<img src=x", 'href="javascript') if each in page] == []
    assert "My boat is called Aurora" in page
    assert "remembers the messages above from before this start" in page
    assert (await site.text()).count("My boat is called Aurora</div>") == 1


async def test_a_person_edits_only_a_message_of_a_person(site: Site) -> None:
    place = site.scene.place(ANNA)
    said = site.say("on Monday").id
    sent = await site.telegram.send(Destination(1), Part("Noted."))
    page = await site.text(edit=str(said))
    assert ">on Monday</textarea>" in page
    assert ">Noted.</textarea>" not in await site.text(edit=str(sent))
    for number in (said, sent):
        await site.post("/say", at=ANNA, edit=str(number), text="on Tuesday")
    assert [message.text for message in place.messages] == ["on Tuesday", "Noted."]
    assert site.updates[-1]["edited_message"]["text"] == "on Tuesday"


async def test_a_question_of_the_bot_is_answered_by_just_writing(site: Site) -> None:
    opened = "Reply to Ricordo: How should it read?"
    asked = await site.telegram.send(Destination(1), Part("How should it read?", force_reply=True))
    assert opened in await site.text()
    assert opened not in await site.text(reply=f"-{asked}")
    await site.telegram.send(Destination(1), Part("A reminder"))
    assert opened in await site.text()
    await site.post("/say", at=ANNA, text="Likes tea", reply=str(asked))
    assert site.updates[-1]["message"]["reply_to_message"]["message_id"] == asked
    assert opened not in await site.text()


async def test_a_draft_has_a_stop_button_that_tells_the_bot(site: Site) -> None:
    await site.telegram.show_draft(Destination(1), 7, Part("1 2 3"))
    assert "Stop</button>" in await site.text()
    await site.post("/stop", at=ANNA)
    assert site.updates[-1]["stopped_message_generation"]["draft_id"] == 7
    page = await site.text()
    assert "Stop</button>" not in page
    assert ">1 2 3</div>" in page
    assert (await site.post("/stop", at=ANNA)).status_code == 303
    assert len(site.updates) == 1


@pytest.mark.parametrize("number", ["x", "-1", "0", "9" * 5000, "٣"])
async def test_a_message_that_is_not_there_is_ignored(site: Site, number: str) -> None:
    for name in ("reply", "edit"):
        assert (await site.client.get("/", params={"at": ANNA, name: number})).status_code == 200
        await site.post("/say", at=ANNA, text=name, **{name: number})
    assert [message.text for message in site.scene.place(ANNA).messages] == ["reply"]


async def test_a_file_that_the_bot_sent_can_be_opened_and_runs_nothing(site: Site) -> None:
    page = OutgoingFile("export.json", b"<script>alert(1)</script>")
    await site.telegram.send(Destination(1), Part("", file=page))
    [sent] = site.scene.place(ANNA).messages
    assert sent.file
    answer = await site.client.get(f"/files/{sent.file.id}")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await site.client.get("/files/unknown")).status_code == 404


async def test_a_picture_is_a_photo_only_if_its_bytes_say_so(site: Site) -> None:
    place = site.scene.place(ANNA)
    script = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    sent = {}
    for content, mime_type in (
        (b"\xff\xd8\xff\xe0 a photo", "image/jpeg"),
        (script, "image/svg+xml"),
        (script, "image/png"),
        (b"OggS", "audio/ogg"),
    ):
        file = uploaded(content, "a", mime_type)
        site.telegram.send_files(place, [file])
        message = place.messages[-1]
        assert message.file
        shown = await site.client.get(f"/files/{message.file.id}")
        assert shown.headers["x-content-type-options"] == "nosniff"
        sent[content, mime_type] = (message.file.kind, shown.headers["content-type"])
    assert list(sent.values()) == [
        ("photo", "image/jpeg"),
        ("document", "application/octet-stream"),
        ("document", "image/png"),
        ("voice", "audio/ogg"),
    ]


async def test_several_pictures_are_an_album_with_one_caption(site: Site) -> None:
    files = [("file", (name, b"\xff\xd8\xff\xe0 " + name.encode(), "image/jpeg")) for name in "abc"]
    await site.client.post("/say", data={"at": ANNA, "text": "Our trip"}, files=files)
    sent = site.scene.place(ANNA).messages
    shown = [(each.text, each.file and each.file.name) for each in sent]
    assert shown == [("Our trip", "a"), ("", "b"), ("", "c")]
    assert len({update["message"]["media_group_id"] for update in site.updates}) == 1
    assert sent[0].album.isdecimal()


async def test_a_form_larger_than_the_largest_file_is_refused(site: Site) -> None:
    answer = await site.client.post("/say", content=b"a" * (22 * 2**20))
    assert answer.status_code == 413


async def test_a_text_that_the_page_would_not_send_is_refused_by_the_server_too(site: Site) -> None:
    answer = await site.post("/say", at=ANNA, text="a" * 100_001)
    assert (answer.status_code, site.scene.place(ANNA).messages) == (413, [])
    await site.post("/say", at=ANNA, text="a" * 100_000)
    sent = [len(message.text) for message in site.scene.place(ANNA).messages]
    assert sent == [4096] * 24 + [1696]


PART = b'--cut\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n%b\r\n'


@pytest.mark.parametrize("ending", [b"", b"\r", b"\n", b"\r\n", b"\x00\xff", b"\r\n--cu"])
async def test_a_file_keeps_every_byte(site: Site, ending: bytes) -> None:
    content = b"\r\n" * 5000 + ending
    form = {"content-type": "multipart/form-data; boundary=cut"}
    await site.client.post("/say", content=PART % content + b"--cut--\r\n", headers=form)
    [sent] = site.scene.place(ANNA).messages
    assert sent.file
    assert sent.file.content == content


async def test_half_a_character_is_replaced_because_nothing_can_store_it(site: Site) -> None:
    field = (
        b'--cut\r\nContent-Disposition: form-data; name="text"\r\n\r\nhalf \\ud83d\r\n--cut--\r\n'
    )
    form = {"content-type": "multipart/form-data; boundary=cut; charset=unicode_escape"}
    await site.client.post("/say", content=field, headers=form)
    assert [message.text for message in site.scene.place("").messages] == ["half \ufffd"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", PART % b""),
        ("multipart/form-data; boundary=cut", b"\x00\xff" * 100),
        ("multipart/form-data; boundary=cut", PART % b"" * 101 + b"--cut--\r\n"),
        ("application/x-www-form-urlencoded", b"a&" * 101),
        ("application/x-www-form-urlencoded", b"text=" + b"a" * 2**21),
    ],
    ids=["no boundary", "no form", "many files", "many fields", "a long field"],
)
async def test_a_form_that_no_browser_sends_is_refused(site: Site, kind: str, body: bytes) -> None:
    answer = await site.client.post("/say", content=body, headers={"content-type": kind})
    assert answer.status_code == 400


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", None])
async def test_forms_of_other_pages_are_refused(site: Site, origin: str | None) -> None:
    site.client.headers = httpx2.Headers({"origin": origin} if origin else {})
    assert (await site.client.post("/start-over")).status_code == 403


@pytest.mark.parametrize(("host", "status"), [("[::1]:80", 200), ("127.0.0.1.evil", 400)])
async def test_requests_for_another_host_are_refused(site: Site, host: str, status: int) -> None:
    headers = {"host": host, "origin": f"http://{host}"}
    assert (await site.client.get("/", headers=headers)).status_code == status


async def test_an_open_page_does_not_keep_the_playground_from_stopping(site: Site) -> None:
    events = asyncio.create_task(site.client.get("/events"))
    while not site.telegram._changed._waiters:  # noqa: ASYNC110 - it waits for a change then
        await asyncio.sleep(0)
    await site.page.stop()
    assert (await events).text.startswith("data: ")


def test_opening_a_browser_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, closed = Event(), Event()

    def text_browser(_: str) -> None:
        opened.set()
        closed.wait(60)

    monkeypatch.setattr("webbrowser.open", text_browser)
    open_browser("http://127.0.0.1/")
    assert opened.wait(60)
    closed.set()


def test_a_browser_opens_only_on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    for display in ("", ":0"):
        monkeypatch.setenv("DISPLAY", display)
        assert has_screen() == bool(display)
