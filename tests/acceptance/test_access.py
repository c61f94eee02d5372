"""Who may come in: strangers ask or bring an invitation, admins let in, refuse and remove.

Updates come in at one process and are answered by another.
"""

import asyncio
import re
from pathlib import Path

from tests.acceptance.bot_process import BotProcess
from tests.acceptance.buttons import press, press_now, shown
from tests.acceptance.rig import US, Rig
from tests.acceptance.sentences import sentence, sentence_in
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import Reply
from tests.stored import everything_on_disk

ADMIN, OTHER_ADMIN = 1009, 1010
CANARY = "QUIXOTIC"
GROWING = Reply("The old harbour of Genoa has a lighthouse. " * 100, chunk_delay_s=1 / 30)


async def start(rig: Rig, **settings: object) -> tuple[BotProcess, list[tuple[Person, Chat]]]:
    """Start two processes; return the worker, and two admins who have written to the bot."""
    rig.environment |= {name.upper(): str(value) for name, value in settings.items()}
    rig.environment["ADMIN_USER_IDS"] = f"{ADMIN} {OTHER_ADMIN}"
    [worker] = await rig.start_apart()
    admins = [rig.person(ADMIN, "Ada"), rig.person(OTHER_ADMIN, "Otto", "de")]
    await asyncio.gather(*(rig.ask(admin, chat, "/start") for admin, chat in admins))
    return worker, admins


async def remove(rig: Rig, admin: Person, people: Message) -> None:
    """Remove the person whose button stands first, and confirm it."""
    await press_now(rig, admin, people, "Remove")
    asked = sentence("people.remove_ask")
    await rig.telegram.wait_for(lambda: asked in people.now.text)
    await press_now(rig, admin, people, "Remove")
    await rig.telegram.wait_for(lambda: asked not in people.now.text)


async def test_a_stranger_asks_once_and_is_in_from_the_first_decision_until_removed(
    rig: Rig, tmp_path: Path
) -> None:
    rig.script.on("Genoa", GROWING)
    worker, [(ada, adas), (otto, ottos)] = await start(rig, access="ask")
    anna, annas = rig.anna()
    for number in range(10):
        await anna.say(annas, f"{CANARY} let me in {number}")
    await rig.telegram.wait_for(lambda: len(adas.replies) == len(ottos.replies) == 2)
    await rig.telegram.wait_for(lambda: not rig.telegram.updates.pending_count)
    notices = [adas.replies[-1], ottos.replies[-1]]
    for notice, language in zip(notices, ("en", "de"), strict=True):
        assert notice.text == sentence_in(language, "access.wants_in", name="Anna", id=anna.id)
    await press(rig, ada, notices[0], "Let in")
    await press(rig, otto, notices[1], "Ablehnen")
    for notice, language, by in zip(notices, ("en", "de"), (f"{ADMIN} (you)", ADMIN), strict=True):
        is_in = sentence_in(language, "access.let_in", id="Anna (1001)", by=by)
        await shown(rig, notice, is_in)
    await rig.telegram.wait_for(lambda: len(annas.replies) == 2)
    assert annas.texts == [sentence("access.asked"), sentence("access.welcome")]
    assert CANARY.encode() not in await rig.stored()
    assert CANARY.encode() not in everything_on_disk(tmp_path)
    assert CANARY not in "\n".join(line for bot in (rig.bot, worker) for line in bot.raw)
    assert (await rig.ask(anna, annas, "Hello")).text == "All right."

    # Removed while an answer is being written and another message waits.
    people = await rig.ask(ada, adas, "/people")
    assert "Anna (1001)" in people.text
    for said in (
        sentence("people.settings"),
        f"you ({ADMIN}), named in ADMIN_USER_IDS",
        f"{OTHER_ADMIN}, named in ADMIN_USER_IDS",
    ):
        assert said in people.text
    await anna.say(annas, "Tell me about Genoa")
    await rig.telegram.wait_for(lambda: len(rig.telegram.calls_to("sendMessageDraft")) > 1)
    await remove(rig, ada, people)
    assert "Anna" not in people.now.text
    await worker.wait_for_log("lease lost")
    drafts = len(rig.telegram.calls_to("sendMessageDraft"))

    # What is stored of her she still sees and erases.
    privacy = await rig.ask(anna, annas, "/privacy")
    assert privacy.text == sentence("privacy.short", ttl_days=365)
    await press(rig, anna, privacy, "More")
    await shown(rig, privacy, sentence("privacy.text", "privacy.access", ttl_days=365))
    question = await rig.ask(anna, annas, "/forget")
    await press(rig, anna, question, "Erase")
    await rig.telegram.wait_for(lambda: "I've forgotten you" in question.now.text)
    assert b"Anna" not in await rig.stored()
    before = len(rig.bot.log)
    await anna.say(annas, f"{CANARY} again")
    await rig.bot.wait_for_log("stranger", after=before)
    assert len(rig.telegram.calls_to("sendMessageDraft")) == drafts
    assert not any("Genoa" in text or "lighthouse" in text for text in annas.texts)

    # Groups ask as well; one that an admin addresses is in at once.
    club = rig.telegram.group("Club", [anna, ada])
    await anna.say(club, f"{US} {CANARY}")
    await rig.telegram.wait_for(lambda: "Club" in adas.replies[-1].text)
    assert club.texts == [sentence("access.group_asked")]
    await press(rig, ada, adas.replies[-1], "Refuse")
    await rig.telegram.wait_for(lambda: rig.telegram.calls_to("leaveChat"))
    assert club.texts[1:] == [sentence("access.group_refused")]
    team = rig.telegram.group("Team", [otto])
    assert (await rig.ask(otto, team, f"{US} Hello")).text == "All right."
    assert CANARY.encode() not in await rig.stored()


async def test_an_invitation_for_one_lets_one_of_twenty_people_in_and_not_again(rig: Rig) -> None:
    ben, _ = rig.ben()
    club = rig.telegram.group("Club", [ben], basic=True)
    _, [(ada, adas), _] = await start(rig, access="invite", allowed_group_ids=club.id)
    made = await rig.ask(ada, adas, "/invite 1 2")
    found = re.search(r"t\.me/ricordo_bot\?start=(i_([\w-]{22}))", made.text)
    assert found, made.text
    assert f" by {ada.id} (you); " in made.text
    link, code = found.groups()
    people = [rig.person(2000 + number, f"Person{number}") for number in range(20)]
    await asyncio.gather(*(person.say(chat, f"/start {link}") for person, chat in people))
    await rig.telegram.wait_for(lambda: all(chat.replies for _, chat in people))
    ended = sentence("access.bad_link")
    [(winner, winners)] = [each for each in people if each[1].texts != [ended]]
    assert code.encode() not in await rig.stored()
    assert (await rig.ask(winner, winners, "Hello")).text == "All right."
    people_list = await rig.ask(ada, adas, "/people")
    assert f" by an invitation of {ada.id} (you); " in people_list.text
    await remove(rig, ada, people_list)
    await winner.say(winners, f"/start {link}")
    await rig.telegram.wait_for(lambda: winners.texts[-1] == ended)
    assert (await rig.ask(winner, winners, "Hello")).text == sentence("access.invited_only")

    # A withdrawn link, and people whom the settings name.
    listed = await adas.wait_for_reply(after=await ada.say(adas, "/invite"))
    assert listed.text.count("t.me/ricordo_bot") == 1
    await press_now(rig, ada, listed, "Withdraw")
    await shown(rig, listed, sentence("invite.none"))
    # A group that the settings name keeps its place as a supergroup; from others the bot leaves.
    assert (await rig.ask(ben, club, f"{US} Hello")).text == "All right."
    moved = await ben.migrate(club)
    assert (await rig.ask(ben, moved, f"{US} Hello again")).text == "All right."
    other = rig.telegram.group("Other", [winner])
    await winner.say(other, f"{US} Hello")
    await rig.telegram.wait_for(lambda: rig.telegram.calls_to("leaveChat"))
    assert other.texts == [sentence("access.group_refused")]
