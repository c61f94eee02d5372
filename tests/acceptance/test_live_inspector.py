"""The inspector shows what all processes do, to its operator alone, and no word of anybody."""

import asyncio
import re

import httpx2

from bot.runtime.logs import short_name
from memory.store.keys import Scope
from tests.acceptance.buttons import press, press_now
from tests.acceptance.memory_model import remember_with
from tests.acceptance.pages import page
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.model_api import Reply, server_error

ALLOW, END = "Let the operator look for one hour", "Stop the operator from looking"
TOKEN = "a-long-token-of-the-operator"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
CANARIES = ("zebra", "quokka", "wombat", "Zanzibar", "Anna", "Ben", "700700")


def check_no_words(answers: list[httpx2.Response]) -> None:
    """Fail if a word or an id of a chat, or a secret, stands in an answer or in its head."""
    for answer in answers:
        said = answer.text + str(answer.headers)
        assert [word for word in (*CANARIES, TOKEN) if word.lower() in said.lower()] == []
        assert answer.headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


async def test_the_page_shows_the_work_of_all_processes_and_no_word_of_a_chat(rig: Rig) -> None:
    thought = asyncio.Event()
    rig.script.on("quokka", Reply("A wombat thinks.", gate=thought))
    rig.environment |= {"INSPECTOR_TOKEN": TOKEN, "LEARN": "facts"}
    remember_with(rig)
    await rig.start_apart()
    anna, annas = rig.person(7007001, "Anna")
    ben, bens = rig.person(7007002, "Ben")
    group = rig.telegram.group("Zanzibar", [anna, ben])
    await rig.ask(anna, annas, "My zebra is called Zanzibar.")
    await rig.ask(ben, group, "@ricordo_bot a wombat?")
    rig.model.faults.add(server_error(), times=None)
    apology = await rig.ask(ben, bens, "broken zebra")
    rig.model.faults.clear()
    [reference] = re.findall(r"\b[0-9a-f]{8}\b", apology.text)
    said = await rig.say_until_asked(anna, annas, "What of the quokka?")

    async with httpx2.AsyncClient(base_url=page(rig, ""), trust_env=False) as web:
        closed = await web.get("/inspect")
        wrong = await web.get("/inspect", headers={"Authorization": "Bearer zebra"})
        assert (closed.status_code, wrong.status_code) == (401, 401)
        seen = await web.get("/inspect", headers=BEARER)
        assert "2 processes report" in seen.text
        assert seen.text.count("asks the model, runs tools") == 2  # the turn, and the error
        assert reference in seen.text
        name_of_ben = short_name(rig.telegram.token, Scope.of_chat(ben.id))
        assert f"<tr><td><code>{name_of_ben}" in seen.text  # what he used, by the name of his chat
        assert "held, " in seen.text

        foreign = {"Origin": "http://evil.example"}
        refused = await web.post("/inspect", data={"token": TOKEN}, headers=foreign)
        own = {"Origin": page(rig, "")}
        opened = await web.post("/inspect", data={"token": TOKEN}, headers=own)
        assert (refused.status_code, opened.status_code) == (403, 303)
        by_cookie = await web.get("/inspect?pause=1")
        assert "Turns under way: 1" in by_cookie.text
        thought.set()
        await annas.wait_for_reply(after=said)
        left = await web.post("/inspect", data={"out": "1"}, headers=own)
        assert (left.status_code, (await web.get("/inspect")).status_code) == (200, 401)
        check_no_words([closed, wrong, seen, refused, opened, by_cookie, left])


async def test_words_are_shown_only_of_a_chat_whose_people_allow_it_while_they_do(rig: Rig) -> None:
    rig.environment["INSPECTOR_TOKEN"] = TOKEN
    await rig.start(coalesce_s=0)
    anna, annas = rig.person(7007001, "Anna")
    ben, bens = rig.person(7007002, "Ben")
    group = rig.telegram.group("Zanzibar", [anna, ben], admins=[anna])
    await rig.ask(anna, annas, "My zebra eats <b>figs</b>.")
    await rig.ask(ben, bens, "A wombat is secret.")
    privacy = await rig.ask(anna, annas, "/privacy")
    in_group = await rig.ask(ben, group, "/privacy")
    assert in_group.labels == ["More"]
    admins = await rig.ask(anna, group, "/privacy")
    assert await press(rig, ben, admins, ALLOW) == sentence("clear.not_yours")

    async with httpx2.AsyncClient(base_url=page(rig, ""), trust_env=False, headers=BEARER) as web:
        assert "?look=" not in (await web.get("/inspect")).text
        await press_now(rig, anna, privacy, ALLOW)
        await rig.telegram.wait_for(lambda: END in str(privacy.now))
        [look] = re.findall(r"/inspect\?look=\w{8}", (await web.get("/inspect")).text)
        assert "until" in (await rig.ask(anna, annas, "/privacy")).text
        seen = await web.get(look)
        assert "My zebra eats &lt;b&gt;figs&lt;/b&gt;." in seen.text
        assert "All right." in seen.text
        assert "wombat" not in seen.text
        assert (await web.get(look, headers={"Authorization": ""})).status_code == 401
        await press_now(rig, anna, privacy, END)
        after = await web.get(look)
        listed = await web.get("/inspect")
        assert (after.status_code, "?look=" in listed.text) == (303, False)
        check_no_words([after, listed])
    looked = await rig.bot.wait_for_log("operator looked")
    assert (looked["conversation"], "zebra" in str(rig.bot.raw)) == ("c:7007001:0", False)


async def test_without_the_setting_there_is_no_inspector(rig: Rig) -> None:
    await rig.start()
    async with httpx2.AsyncClient(trust_env=False) as web:
        for method in ("GET", "POST"):
            answer = await web.request(method, page(rig, "/inspect"), headers=BEARER)
            assert answer.status_code == 404
    anna, chat = rig.anna()
    privacy = await rig.ask(anna, chat, "/privacy")
    assert privacy.labels == ["More"]
