"""Files that people send (A30), and talks that they bring: read, found with source, deleted."""

import re
from pathlib import Path

from memory.store.embedded import EmbeddedValkey
from tests.acceptance.bot_process import run_command
from tests.acceptance.buttons import delete_now, erase, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully
from tests.acceptance.test_pictures import has_picture
from tests.bot.features.documents.test_scans import scan
from tests.bot.parsing.exports import chatgpt, zipped
from tests.bot.parsing.office import word
from tests.bot.parsing.pdfs import pdf
from tests.servers.bot_api import Chat, Hang, Message, Person, Upload
from tests.servers.model_api.errors import bad_request
from tests.servers.model_api.rules import Dialect

WHALE = b"The blue whale is the largest animal. A blue whale weighs up to 190 tonnes."
QUESTION = "How heavy is a blue whale?"


def notes(content: bytes = WHALE, name: str = "sea.txt", mime_type: str = "text/plain") -> Upload:
    return Upload(content, name, mime_type)


async def send(person: Person, chat: Chat, file: Upload, caption: str = "") -> Message:
    """Send a file and return the bot's answer to it."""
    sent = await person.send(chat, "document", file=file, caption=caption)
    return await chat.wait_for_reply(after=sent)


def asked_last(rig: Rig) -> str:
    """Return the last message of the model's last request."""
    return rig.requests[-1].messages[-1].content


async def test_the_caption_of_a_file_is_answered_from_the_file(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    file = notes(pdf("Page one.", WHALE.decode()), "sea.pdf", "application/pdf")
    await send(anna, chat, file, QUESTION)
    assert "[sea.pdf, page 2]" in asked_last(rig)
    assert asked_last(rig).endswith(QUESTION)
    await send(anna, chat, notes(word(), "animals.docx", ""), "Which animal has 190 tonnes?")
    assert "[animals.docx, Whales] Whales\n  Animal | Tonnes\n  Blue whale | 190" in asked_last(rig)
    await rig.ask(anna, chat, "Thanks")
    assert next(m.content for m in rig.requests[-1].messages if m.role == "user") == QUESTION


async def test_a_reply_to_a_file_is_answered_from_that_file(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    first = await anna.send(chat, "document", file=notes(name="whales.txt"))
    await chat.wait_for_reply(after=first)
    await send(anna, chat, notes(b"The cow is pink.", "cows.txt"))
    await rig.ask(anna, chat, "What does it say?", reply_to=first)
    assert f"[whales.txt] {WHALE.decode()}" in asked_last(rig)
    assert re.search(r"message replied to: \[.*\] Anna: 📎 whales.txt \(partly", asked_last(rig))
    assert "pink" not in asked_last(rig)
    await rig.ask(anna, chat, "Thanks!", reply_to=first)
    assert WHALE.decode() not in asked_last(rig)
    captioned = await anna.send(
        chat, "document", file=notes(b"A pig sings.", "pigs.txt"), caption="OK"
    )
    await chat.wait_for_reply(after=captioned)
    await send(anna, chat, notes(b"A hen is green.", "hens.txt"))
    await rig.ask(anna, chat, "What does it say?", reply_to=captioned)
    assert "A pig sings." in asked_last(rig)
    assert "green" not in asked_last(rig)


async def test_a_scan_is_read_by_the_model_and_the_answer_says_which_pages(rig: Rig) -> None:
    read_again = "A blue whale weighs 170 tonnes."
    rig.script.on("What does the page say?", *[WHALE.decode()] * 5, *[read_again] * 5, "Nonsense")
    anna, chat = await rig.start_with_anna()
    pages = scan(7)
    told = sentence("documents.scanned", name="scan.pdf", pages="1, 2, 3, 4, 5")
    reply = await send(anna, chat, notes(pages, "scan.pdf", "application/pdf"))
    assert reply.text == f"{told}\n\n{sentence('documents.read', name='scan.pdf', passages=5)}"
    assert [str(each.raw).count("data:image/jpeg") for each in rig.requests] == [1] * 5
    await rig.ask(anna, chat, QUESTION)
    assert f"[scan.pdf, page 1] {WHALE.decode()}" in asked_last(rig)
    assert "data:image" not in str(rig.requests[-1].raw)
    assert pages[-500:-200] not in await rig.stored()

    # Another file of this name, with a question. Its words replace those, and are read once.
    rig.script.on("How heavy", "190 tonnes.")
    told = sentence("documents.scanned", name="scan.pdf", pages="1, 2, 3, 4, 5")
    reply = await send(anna, chat, notes(scan(6), "scan.pdf", "application/pdf"), QUESTION)
    assert reply.text == f"{told}\n\n190 tonnes."
    assert f"[scan.pdf, page 1] {read_again}" in asked_last(rig)
    assert "Nonsense" not in asked_last(rig)

    text = "Invalid content type. image_url is only supported by certain models."
    refusal = bad_request(text, "messages[1].content[1].type", "invalid_value")
    rig.model.dialect = Dialect(refuses=lambda asked: refusal if has_picture(asked) else None)
    reply = await send(anna, chat, notes(scan(2), "other.pdf", "application/pdf"))
    assert reply.text == sentence("files.refused_no_text", name="other.pdf")


async def test_in_a_group_nobody_replaces_anothers_file_and_admins_may_delete_it(rig: Rig) -> None:
    """A file with the name of another person's, even an admin's, gets a number in its name."""
    await rig.start()
    (anna, _), (mallory, _) = rig.anna(), rig.ben()
    chief = rig.telegram.user(1003, "Chief")
    group = rig.telegram.group("Club", [anna, mallory], [chief])
    us = "@ricordo_bot"
    await anna.send(group, "document", file=notes(b"Not for the bot."))
    await send(anna, group, notes(), us)
    assert len(group.replies) == 1
    for name, person, text in (
        ("sea (2).txt", mallory, b"A blue whale weighs nothing."),
        ("sea (2).txt", mallory, b"A blue whale weighs less than nothing."),
        ("sea (3).txt", chief, b"A blue whale is heavy."),
        ("sea.txt", anna, b"A blue whale weighs up to 173 tonnes."),
    ):
        answer = await send(person, group, notes(text), us)
        assert answer.text == sentence("documents.read", name=name, passages=1)
    await rig.ask(anna, group, f"{us} {QUESTION}")
    assert "[sea.txt] A blue whale weighs up to 173 tonnes." in asked_last(rig)
    assert "[sea (2).txt] A blue whale weighs less than nothing." in asked_last(rig)
    assert b"weighs nothing" not in await rig.stored()
    listed = await rig.ask(mallory, group, f"/documents{us}")
    number = next(line for line in listed.text.splitlines() if " sea.txt (" in line).split()[1]
    assert await press(rig, mallory, listed, f"✕ {number}") == sentence("clear.not_yours")
    await delete_now(rig, chief, listed, f"✕ {number}")
    assert b"173 tonnes" not in await rig.stored()


async def test_files_are_listed_and_deleted_one_by_one_or_with_the_conversation(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    empty = await rig.ask(anna, chat, "/documents")
    assert empty.text == sentence("documents.none")
    await send(anna, chat, notes())
    listed = await rig.ask(anna, chat, "/documents")
    assert "sea.txt (1 kB, " in listed.text
    await delete_now(rig, anna, listed, "✕ 1")
    await shown(rig, listed, sentence("lists.deleted", "documents.none"))
    assert b"190 tonnes" not in await rig.stored()
    await send(anna, chat, notes())
    question = await ask_fully(rig, anna, chat, "/clear")
    await erase(rig, anna, question, "clear.done", messages=0, vectors=0, waiting=0, learned=1)
    assert b"whale" not in await rig.stored()
    assert (await rig.ask(anna, chat, "/documents")).text == sentence("documents.none")
    await rig.ask(anna, chat, QUESTION)
    assert "190" not in asked_last(rig)


async def test_a30_operators_documents_are_read_only_by_bots_that_name_their_namespace(
    rig: Rig, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "sea.md").write_bytes(b"# Whales\n\n" + WHALE)
    (tmp_path / "docs" / "ignored.zip").write_bytes(b"PK")
    put = "namespace manual: 1 file, 1 passage\nread by: bots that run with "
    put += "DOCUMENT_NAMESPACES=manual\n"
    link = ("--link", "https://sea")
    assert await _ingest(rig, tmp_path / "docs", *link) == f"sea.md: 1 passage\n{put}"
    assert await _ingest(rig, tmp_path / "docs", *link) == f"sea.md: unchanged\n{put}"

    anna, chat = await rig.start_with_anna(document_namespaces="other")
    await rig.ask(anna, chat, QUESTION)
    assert "190" not in asked_last(rig)
    await rig.bot.stop()
    await rig.start(document_namespaces="other, manual")
    await rig.ask(anna, chat, QUESTION)
    assert "[sea.md, Whales, https://sea]" in asked_last(rig)

    removed = "sea.md: removed\nnamespace manual: 1 removed\n"
    assert await _ingest(rig, tmp_path / "docs", "--remove") == removed
    await rig.ask(anna, chat, f"Again: {QUESTION}")
    assert "[sea.md" not in asked_last(rig)


async def test_one_command_puts_a_document_into_several_namespaces_and_a_chat_sees_it_once(
    rig: Rig, tmp_path: Path
) -> None:
    (tmp_path / "sea.md").write_bytes(WHALE)
    assert await _ingest(rig, tmp_path / "sea.md", "--namespace", "team") == (
        "sea.md: 1 passage\nnamespaces manual, team: 1 file, 1 passage\n"
        "read by: bots that run with DOCUMENT_NAMESPACES=manual\n"
    )
    anna, chat = await rig.start_with_anna(document_namespaces="team, manual")
    await rig.ask(anna, chat, QUESTION)
    assert asked_last(rig).count("[sea.md") == 1
    removed = await _ingest(rig, tmp_path / "sea.md", "--namespace", "team", "--remove")
    assert removed == "sea.md: removed\nnamespaces manual, team: 1 removed\n"
    await rig.ask(anna, chat, f"Again: {QUESTION}")
    assert "[sea.md" not in asked_last(rig)


async def test_ingest_names_each_refused_file_and_a_folder_without_documents(
    rig: Rig, tmp_path: Path
) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00\xff")
    said = await _ingest(rig, tmp_path, status=1)
    assert said == f"no document in {tmp_path}\n"
    said = await _ingest(rig, tmp_path / "picture.png", status=1)
    assert said == (
        "picture.png: refused: no format that is read\n"
        "namespace manual: 0 files, 0 passages, 1 refused\n"
    )


async def test_ingest_says_that_a_bot_holds_the_embedded_store(rig: Rig, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (tmp_path / "sea.md").write_bytes(WHALE)
    rig.environment |= {"REDIS_URL": "", "DATA_DIR": str(folder)}
    running = EmbeddedValkey(folder)
    running.start()
    try:
        said = await _ingest(rig, tmp_path / "sea.md", status=1)
    finally:
        running.stop()
    assert said.startswith(f"a running bot uses the embedded Valkey in {folder}: stop it, ")


async def _ingest(rig: Rig, path: Path, *options: str, status: int = 0) -> str:
    command = ("ingest", str(path), "--namespace", "manual", *options)
    ended, written = await run_command(rig.environment, *command)
    assert ended == status
    return written


BOAT = ("Sailing", "What is my boat called?", "Your boat is called Zephyr.")
BREAD = ("Bread", "How long does my rye bread bake?", "Fifty minutes at 240 degrees.")


async def test_chatgpt_talks_are_imported_after_a_yes_found_with_date_and_removed(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    ben, bens = rig.ben()
    export = Upload(zipped(chatgpt(BOAT, BREAD)), "chatgpt.zip", "application/zip")
    how = await rig.ask(anna, chat, "/import")
    assert how.text == sentence("import.how")
    listed = await rig.ask(anna, chat, "/import - My boat is a ketch.\n- I sail alone.")
    assert listed.text == sentence("import.list_preview", "import.list_ask", facts=2)
    assert await press(rig, anna, listed, "Don't import") == ""
    await shown(rig, listed, sentence("import.refused"))
    assert b"ketch" not in await rig.stored()

    preview = await send(anna, chat, export)
    assert "Conversations: 2, messages: 4, facts: 0." in preview.text
    assert "From 12 March 2024 to 13 March 2024." in preview.text
    assert b"Zephyr" not in await rig.stored()
    assert rig.requests == []

    # The bot is killed while it fetches the file for the second time.
    rig.telegram.faults.add(Hang(60), method="getFile")
    fetched = len(rig.telegram.calls_to("getFile"))
    assert await press(rig, anna, preview, "Import") == ""
    await shown(rig, preview, sentence("import.storing"))
    await rig.telegram.wait_for(lambda: len(rig.telegram.calls_to("getFile")) > fetched)
    await rig.restart()
    done = await chat.wait_for_reply(after=preview)
    known = f"{BREAD[1]} · {BOAT[1]}"
    assert done.text == sentence("import.done", "import.example", source="ChatGPT", examples=known)
    await rig.bot.wait_until(lambda: any("Zephyr" in text for text in rig.model.log.embedded))

    for too_late in ("Import", "Don't import"):
        await press(rig, anna, preview, too_late)
    await rig.ask(anna, chat, "Do you know the name of my boat?")
    assert preview.now.text == sentence("import.storing")
    source = r"\[ChatGPT, imported, 2024-03-12, Sailing\] What is my boat called\?"
    assert re.search(source, asked_last(rig))
    await rig.ask(ben, bens, "Do you know the name of my boat?")
    assert "Zephyr" not in asked_last(rig)

    listed = await rig.ask(anna, chat, "/documents")
    await delete_now(rig, anna, listed, "✕ 1")
    await shown(rig, listed, sentence("lists.deleted", "documents.none"))
    stored = await rig.stored()
    assert b"Zephyr" not in stored
    assert b"rye bread" not in stored
    await rig.ask(anna, chat, "And the bread, how long?")
    assert "Fifty" not in asked_last(rig)
