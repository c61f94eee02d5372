"""Other messages than text come in, and more than the reply goes out (A22)."""

from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully, dialogue


async def test_a22_captions_are_read_other_kinds_refused_and_only_telegram_gets_the_token(
    rig: Rig,
) -> None:
    anna, chat = await rig.start_with_anna()
    for kind in ("video", "animation"):
        assert (await rig.send(anna, chat, kind)).text == sentence(f"unsupported.{kind}")
    *_, broken = await anna.send_album(chat, ["photo", "photo"])
    assert (await chat.wait_for_reply(after=broken)).text == sentence("pictures.damaged")
    assert (len(chat.replies), rig.requests) == (3, [])

    reply = await rig.send(anna, chat, "photo", caption="This is our boat Aurora")
    note = "[attached photo: you cannot see or hear it] "
    assert dialogue(rig) == [f"{note}This is our boat Aurora"]
    assert reply.text == f"All right.\n\n{sentence('pictures.damaged')}"
    assert (await rig.send(anna, chat, "sticker")).text == "All right."
    assert rig.requests[-1].messages[-1].content == "🙂"
    group = rig.telegram.group("Club", [anna])
    await anna.send(group, "photo")
    reply = await rig.send(anna, group, "photo", caption="@ricordo_bot what is this?")
    assert dialogue(rig) == [f"Anna: {note}what is this?"]
    assert group.replies == [reply]
    secret = rig.telegram.token.partition(":")[2]
    for call in rig.model.log.calls:
        assert secret not in f"{call.path} {call.request}"


async def test_a_hint_is_told_once_over_restarts_and_the_model_does_not_read_it(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna(hints="on")
    hint = sentence("hints.voice")
    for text, answer in (("One", ""), ("Two", ""), ("Three", f"\n\n{hint}")):
        assert (await ask_fully(rig, anna, chat, text)).text == f"All right.{answer}"
    await rig.restart()
    assert (await rig.ask(anna, chat, "Four")).text == "All right."
    assert hint not in str(rig.requests[-1].messages)
