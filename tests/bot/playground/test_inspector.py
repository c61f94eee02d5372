"""The panel says in plain words why a message was found, and lists what is stored of a scope."""

from datetime import UTC, datetime

from bot.playground.inspector import FoundMessage, KeyDump, dump_keys
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.search.message_search import SearchResult
from memory.store.keys import Scope

MAY = datetime(2026, 5, 14, 12, tzinfo=UTC).timestamp()
KEY = Message(3, 2, "user", "The extra key is under the <b>pot</b>", MAY, sender_name="Maya")
REPLY = Message(4, 2, "assistant", "Noted", 2.0)


def found(**parts: float | bool) -> SearchResult:
    return SearchResult((KEY, REPLY), 1.0, 3, **parts)  # type: ignore[arg-type]


def test_each_way_of_finding_has_its_reason() -> None:
    spare, alike = "Is there a spare one?", "“extra” means the same as a word of your question"
    by_words, beside = found(lexical=1.0), found(lexical=1.0, is_boosted=True)
    session = "other messages of the same session match your question"
    date = "your question names the time when it was said"
    for result, question, reason in (
        (by_words, "Where are my keys?", ("By words", "it contains “key”, as your question does")),
        (by_words, spare, ("By words", alike)),
        (found(dense=1.0), spare, ("By meaning", alike)),
        (beside, "Flowers?", ("By a neighbor", "a message right next to it matches your question")),
        (by_words, "Flowers?", ("By its session", session)),
        (by_words, "How was May?", ("By its date", date)),
    ):
        assert FoundMessage(result, question, "").reasons == (reason,)
    like = FoundMessage(found(lexical=9.0), "Flowers?", "", best="A pot of soup")
    assert like.reasons == (("By the best match", "it contains “pot”, as the best match does"),)


def test_shared_words_are_marked_and_the_rest_is_escaped() -> None:
    each = FoundMessage(found(lexical=1.0), "Which pot hides the key?", "")
    marked = "The extra <mark>key</mark> is under the &lt;b&gt;<mark>pot</mark>&lt;/b&gt;"
    assert each.marked(KEY.text) == marked


def test_a_message_that_the_answer_repeats_is_in_the_answer() -> None:
    assert FoundMessage(found(), "", "“The extra key is under the <b>pot</b>”").is_quoted
    assert not FoundMessage(found(), "", "I do not know.").is_quoted


HERE, THERE = Scope.of_chat(7), Scope.of_chat(8)


async def held(memory: Memory, conversation: Scope = HERE) -> dict[str, KeyDump]:
    found = await dump_keys(memory.client, memory.keys, conversation)
    return {holding.kind: holding for holding in found}


async def test_messages_of_this_scope_are_shown_with_size_and_expiry(memory: Memory) -> None:
    assert await held(memory) == {}
    history = await ChatHistory.read(memory.histories, HERE)
    await history.append_user_message("The boat is called Aurora", 1_762_948_800.0)
    found = await held(memory)
    log = found["log"]
    assert (log.type, log.count) == ("stream", 1)
    assert log.nbytes > len("The boat is called Aurora")
    assert 0 < log.expires_s <= 86_400
    [(entry, fields)] = log.entries
    assert entry == "1-0"
    assert "t: The boat is called Aurora" in fields
    assert dict(found["meta"].entries)["next_seq"] == "1"
    assert await held(memory, THERE) == {}


async def test_every_type_is_read_the_newest_last_and_a_long_value_is_cut(memory: Memory) -> None:
    names = memory.keys.scope(HERE)
    mail = [part for n in range(25) for part in (n, f"{n}|1|t|[]")]
    await memory.client.pipeline(
        [
            ("ZADD", names.mailbox, *mail),
            ("SET", names.lease, "1:token", "EX", 30),
            ("HSET", names.turn, "b", "2", "a", "1"),
            ("XADD", names.vectors, "3-0", "v", bytes(range(256))),
        ]
    )
    found = await held(memory)
    assert found["mailbox"].count == 25
    assert found["mailbox"].entries[-1] == ("24", "24|1|t|[]")
    assert len(found["mailbox"].entries) == 20
    assert found["lease"].entries == (("", "1:token"),)
    assert found["turn"].entries == (("a", "1"), ("b", "2"))
    assert found["turn"].expires_s == -1
    assert found["vec"].entries == (("3-0", "v: 256 bytes"),)
    await memory.client.call("SET", names.lease, "x" * 10_000)
    assert (await held(memory))["lease"].entries == (("", "x" * 600 + " …"),)
