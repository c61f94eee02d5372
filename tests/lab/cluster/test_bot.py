"""The bot as processes on a Cluster of three primaries; people do not notice the Cluster."""

from pathlib import Path

import pytest

from tests.acceptance.buttons import erase
from tests.acceptance.rig import open_rig
from tests.acceptance.talk import ask_fully
from tests.lab.cluster.nodes import ThreeNodeCluster

pytestmark = [
    pytest.mark.trial,
    pytest.mark.xdist_group("cluster"),
    pytest.mark.usefixtures("launcher"),
]


async def test_people_can_talk_clear_and_forget_on_a_cluster(
    whole_cluster: ThreeNodeCluster, tmp_path: Path
) -> None:
    async with open_rig(whole_cluster.url, tmp_path, "webhook") as rig:
        rig.bot = rig.another_bot(command="worker")
        web = rig.another_bot(command="web", port=rig.environment["PORT"])
        await rig.bot.start()
        await web.start()
        (anna, annas), (ben, bens) = rig.anna(), rig.ben()
        for person, chat in ((anna, annas), (ben, bens)):
            await rig.ask(person, chat, "My cat is called Mephisto")
            await rig.ask(person, chat, "What is my cat called?")
            assert rig.requests[-1].messages[1].content == "My cat is called Mephisto"
        await rig.wait_until_learned(8)

        question = await ask_fully(rig, anna, annas, "/clear")
        await erase(rig, anna, question, "clear.done", messages=4, vectors=4, waiting=0)
        question = await ask_fully(rig, ben, bens, "/forget")
        await erase(rig, ben, question, "forget.done", conversations=1, messages=4, vectors=4)
        for person, chat in ((anna, annas), (ben, bens)):
            assert (await rig.ask(person, chat, "Hello again")).text == "All right."
            assert [m.content for m in rig.requests[-1].messages[1:]] == ["Hello again"]
