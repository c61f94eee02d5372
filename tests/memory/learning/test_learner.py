"""Learning from watermarks: when, once, in which scope, and what happens in trouble."""

import asyncio
import time
from dataclasses import replace
from math import inf
from zoneinfo import ZoneInfo

import orjson
import pytest

from bot.runtime.background_learner import BackgroundLearner
from memory.behaviors.behavior import Reach
from memory.behaviors.behavior_store import BehaviorState
from memory.behaviors.context import Asker
from memory.behaviors.learning_behavior import Unlearned
from memory.learning import progress
from memory.learning.batch_learner import first_session, request_of
from memory.learning.progress import LearnerBusy
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.changes import Revision
from memory.scopes.entries import Fact
from memory.scopes.fields import Digest, LearningPause, PersonsZone
from memory.scopes.history import ChatHistory
from memory.scopes.scope_memory import RECIPE
from memory.scopes.writes import ForgetRecord, Remember, to_json
from memory.search.embeddings import EmbeddingsUnavailable, fingerprint_of
from memory.store.client import RedisClient
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from memory.text.internal_model import InternalModelUnavailable
from tests.memory.behaviors.batches import NOW, answered, batch, said
from tests.memory.conftest import TOKENS, memory_of
from tests.memory.learning.scripted import (
    Notes,
    RefusingEmbedder,
    ScriptedModel,
    talk,
    talk_and_learn,
)
from tests.memory.turns import GROUP, HERE, end_pauses, set_learned
from tests.memory.words_embedder import WordsEmbedder

ANNS = HERE.of_person(7)


async def noted(memory: Memory) -> float | None:
    """Return in how many seconds more is due, None for never."""
    due = await memory.client.call("ZSCORE", memory.keys.learning, HERE.tag)
    return None if due is None else due - time.time()


def test_a_session_ends_by_a_pause_of_an_hour_or_by_new() -> None:
    """`/new` is named by the newest message before it."""
    talk = [said(1, "a", at=NOW), said(2, "b", at=NOW + 3_600), said(3, "c", at=NOW + 7_201)]
    now = NOW + 7_201
    assert first_session(talk, 0, now) == 2
    assert first_session(talk, 1, now) == 1
    assert first_session(talk[:2], 0, NOW + 7_200) == 0
    assert first_session(talk[:2], 0, now) == first_session(talk[:2], 2, NOW + 3_600) == 2


async def test_the_model_is_asked_when_a_behavior_is_due_and_nothing_is_learned_twice(
    memory: Memory, model: ScriptedModel
) -> None:
    notes = Notes(every=2)
    memory.enable_learning([notes], model)
    progress = await talk_and_learn(memory, "one")
    assert (progress.calls, model.asked) == (0, [])
    model.parts = {"notes": {"text": "Ann counts"}}
    progress = await talk_and_learn(memory, "two")
    assert (progress.calls, progress.entries, notes.batches) == (1, 1, [[1, 2, 3, 4]])
    await memory.learn(HERE)
    await talk_and_learn(memory, "three", "four")
    assert notes.batches == [[1, 2, 3, 4], [5, 6, 7, 8]]


async def test_a_conversation_whose_payer_may_ask_nothing_waits_for_the_next_day(
    memory: Memory, model: ScriptedModel
) -> None:
    is_allowed = False

    async def may_ask() -> bool:
        return is_allowed

    memory.enable_learning([Notes(every=1)], model, may_ask=may_ask)
    assert (await talk_and_learn(memory, "one")).messages == 0
    due = await memory.client.call("ZSCORE", memory.keys.learning, HERE.tag)
    assert model.asked == []
    assert round(due) % 86_400 < 3_600
    is_allowed = True
    assert (await memory.learn(HERE)).calls == 1


async def test_entries_and_state_are_written_together_with_the_watermark(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=1)], model)
    model.parts = {"notes": {"text": "Ann counts"}}
    await talk_and_learn(memory, "one")
    scope_memory = await memory.scopes.read(HERE)
    assert [fact.text for fact in scope_memory.facts] == ["Ann counts"]
    state = BehaviorState("notes", 2, text='{"n":2}')
    assert (scope_memory.get(BehaviorState, "notes"), scope_memory.state) == (state, "")
    assert scope_memory.watermark("notes") == 2
    found = await memory.scopes.search(Fact, scope_memory, "counts", 3)
    assert [hit.record.text for hit in found] == ["Ann counts"]


async def test_personal_memory_is_stored_for_the_person_in_private_and_for_the_group_in_groups(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=1, is_personal=True)], model)
    await memory.scopes.set_field(ANNS, PersonsZone("Asia/Tokyo"))
    for conversation, text in ((HERE, "private"), (GROUP, "group")):
        model.parts = {"notes": {"text": text}}
        await talk_and_learn(memory, "one", conversation=conversation)
    books = [await memory.scopes.read(scope) for scope in (HERE, ANNS, GROUP)]
    assert [[fact.text for fact in book.facts] for book in books] == [[], ["private"], ["group"]]
    of_day, of_group = (orjson.loads(text.splitlines()[-1])["on"] for _, text in model.asked)
    assert of_day > of_group  # the person's day counts


class Joining(Notes):
    """Learns only if that costs no further call."""

    def is_due(self, unlearned: Unlearned) -> bool:
        return unlearned.is_shared


async def test_a_behavior_may_join_anothers_call(memory: Memory, model: ScriptedModel) -> None:
    behaviors = [joining := Joining("joining", is_personal=True), Notes("due", every=2)]
    memory.enable_learning(behaviors, model)
    model.parts = {"joining": {"text": "a"}, "due": {"text": "b"}}
    assert (await talk_and_learn(memory, "one")).calls == 0
    assert (await talk_and_learn(memory, "two")).calls == 1
    assert joining.batches == [[1, 2, 3, 4]]


async def test_a_behavior_does_not_learn_or_hold_anything_up_where_it_does_not_run(
    memory: Memory, model: ScriptedModel
) -> None:
    limited, everywhere = Notes("limited", every=1), Notes("everywhere", every=1)
    limited.reach = Reach(frozenset({"groups"}))
    memory.enable_learning([limited, everywhere], model)
    model.parts = {"limited": {"text": "a"}, "everywhere": {"text": "b"}}
    for conversation in (HERE, GROUP):
        closing = Closing(digest="looked it up")
        await talk_and_learn(memory, "one", conversation=conversation, closing=closing)
    assert (limited.batches, everywhere.batches) == ([[1, 2]], [[1, 2], [1, 2]])
    first, second = [asked for asked, _ in model.asked]
    assert ("## limited" in first, "## limited" in second) == (False, True)
    here = await memory.scopes.read(HERE)
    assert (here.all(Digest), here.watermark("limited")) == ([], 0)


@pytest.mark.parametrize("behaviors", [[], [Notes("facts", every=9, is_personal=True)]], ids=len)
async def test_the_digest_of_tools_is_not_kept_if_no_behavior_learns_from_it(
    memory: Memory, model: ScriptedModel, behaviors: list[Notes]
) -> None:
    memory.enable_learning(behaviors, model)
    await talk_and_learn(memory, "one", closing=Closing(digest="looked it up"))
    assert (await memory.scopes.read(HERE)).all(Digest) == []


async def test_a_bad_part_keeps_its_watermark_and_does_not_block_the_other(
    memory: Memory, model: ScriptedModel
) -> None:
    good, bad = Notes("good", every=1), Notes("bad", every=1)
    memory.enable_learning([good, bad], model)
    model.parts = {"good": {"text": "a"}, "bad": {"words": 7}}
    await talk_and_learn(memory, "one")
    scope_memory = await memory.scopes.read(HERE)
    assert (scope_memory.watermark("good"), scope_memory.watermark("bad")) == (2, 0)
    assert 0 < (await noted(memory) or 0) < 90
    assert ((await memory.learn(HERE)).calls, bad.batches) == (0, [])  # it waits


async def test_after_two_bad_parts_a_behavior_is_asked_alone(
    memory: Memory, model: ScriptedModel
) -> None:
    good, bad = Notes("good", every=1), Notes("bad", every=1)
    memory.enable_learning([good, bad], model)
    model.parts = {"good": {"text": "a"}, "bad": {"text": "b"}}
    learned = memory.keys.scope(HERE).learned
    await memory.client.call("HSET", learned, "failures:bad", "2|0")
    assert (await talk_and_learn(memory, "one")).calls == 2
    instructions = [instruction for instruction, _ in model.asked]
    assert ["## good" in text for text in instructions] == [False, True]
    assert (good.batches, bad.batches) == ([[1, 2]], [[1, 2]])


async def test_without_an_answer_all_is_learned_later(memory: Memory, model: ScriptedModel) -> None:
    notes = Notes(every=1)
    memory.enable_learning([notes], model)
    model.fails = True
    await talk(memory, "one")
    with pytest.raises(InternalModelUnavailable):
        await memory.learn(HERE)
    assert 0 < (await noted(memory) or 0) <= 60
    model.fails, model.parts = False, {"notes": {"text": "a"}}
    await memory.learn(HERE)
    assert notes.batches == []
    await end_pauses(memory)
    await memory.learn(HERE)
    assert notes.batches == [[1, 2]]


async def test_a_wait_that_ends_during_a_round_is_no_success(
    memory: Memory, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pass_a_minute() -> None:
        monkeypatch.setattr(progress, "time", lambda: time.time() + 60)

    memory.enable_learning([Notes(every=1)], model)
    model.parts, model.meanwhile = {"notes": {"text": "a"}}, pass_a_minute
    await talk(memory, "one")
    pause = LearningPause("vectors", 1, round(time.time()) + 30, "words")
    await set_learned(memory, HERE, {pause.name: pause.stored})
    assert (await memory.learn(HERE)).calls == 1
    assert (await memory.scopes.read(HERE)).get(LearningPause, "vectors") == pause
    assert (await noted(memory) or inf) <= 0


@pytest.mark.parametrize(("after_s", "is_due"), [(10_000_000_000, True), (inf, False)])
async def test_learning_is_due_after_enough_quiet_or_never(
    memory: Memory, model: ScriptedModel, *, after_s: float, is_due: bool
) -> None:
    memory.enable_learning([Notes(every=9, after_s=after_s)], model)
    await talk_and_learn(memory, "one")
    due_in_s = await noted(memory)
    assert (due_in_s is not None and due_in_s > 1_000_000) == is_due
    assert is_due or due_in_s is None


async def test_what_people_ask_to_see_is_learned_without_waiting_for_a_pause(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=9)], model)
    assert (await talk_and_learn(memory, "one")).calls == 0
    memory.learner.asked_for.add(HERE)
    assert [(await memory.learn(HERE)).calls for _ in range(2)] == [1, 0]
    assert (await talk_and_learn(memory, "two")).calls == 0


async def test_a_look_during_a_round_has_the_next_round_learn(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=9)], model)
    await talk(memory, "one")

    async def second_look() -> None:
        await talk(memory, "two")
        memory.learner.asked_for.add(HERE)

    model.parts, model.meanwhile = {"notes": {"text": "n"}}, second_look
    memory.learner.asked_for.add(HERE)
    await memory.learn(HERE)
    await memory.learn(HERE)
    assert any("two" in content for _, content in model.asked)


async def test_after_something_was_written_the_conversation_is_looked_at_once_more(
    memory: Memory, model: ScriptedModel
) -> None:
    """A process that dies right after learning has not marked the message."""
    memory.enable_learning([Notes(every=1, is_personal=True)], model)
    model.parts = {"notes": {"text": "Ann counts"}}
    assert (await talk_and_learn(memory, "one")).entries == 1
    assert 0 < (await noted(memory) or 0) <= 61
    assert (await memory.learn(HERE)).entries == 0
    assert await noted(memory) is None


async def test_only_one_process_learns_from_a_conversation_at_once(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([Notes(every=1)], model)
    model.parts = {"notes": {"text": "a"}}
    await talk(memory, "one")

    async def learn_beside() -> None:
        with pytest.raises(LearnerBusy):
            await memory.learn(HERE)

    model.meanwhile = learn_beside
    await memory.learn(HERE)
    assert len(model.asked) == 1
    again_in = await noted(memory)
    assert again_in is None or again_in < 15


async def test_a_learner_keeps_its_lease_also_after_redis_was_away(
    memory: Memory, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.learning.learner._LEASE_MS", 30)
    failures, kept = iter([StoreUnavailable()]), asyncio.Event()

    async def hold(*_: object) -> bool:
        for failure in failures:
            raise failure
        kept.set()
        return True

    monkeypatch.setitem(memory.scripts, "lease", hold)
    memory.enable_learning([Notes(every=1)], model)
    model.meanwhile = kept.wait
    await talk_and_learn(memory, "one")


async def test_tool_writes_are_carried_out_once_after_the_turn(memory: Memory) -> None:
    wanted = to_json([Remember("Ann sails", sender_id=7)])
    await talk(memory, "one", closing=Closing(writes=wanted))
    learned = memory.keys.scope(HERE).learned
    waiting = await memory.client.call("HGETALL", learned)
    await memory.learn(HERE)
    # The process died after the person's scope was written and before the field was removed.
    await set_learned(memory, HERE, waiting)
    await memory.learn(HERE)
    facts = (await memory.scopes.read(ANNS)).facts
    assert [(fact.text, fact.sources[0].seq) for fact in facts] == [("Ann sails", 1)]
    assert await memory.client.call("HLEN", learned) == 0


async def test_a_replaced_fact_ends_and_is_erased_with_its_replacement(memory: Memory) -> None:
    await talk_and_learn(memory, "one", closing=Closing(writes=to_json([Remember("Ann sails")])))
    await talk(memory, "two", closing=Closing(writes=to_json([Remember("Ann rows", replaces=1)])))
    await memory.learn(HERE)
    facts = (await memory.scopes.read(ANNS)).facts
    assert [(fact.text, fact.is_current) for fact in facts] == [
        ("Ann sails", False),
        ("Ann rows", True),
    ]
    await talk_and_learn(memory, "three", closing=Closing(writes=to_json([ForgetRecord(2)])))
    assert (await memory.scopes.read(ANNS)).facts == []


@pytest.mark.parametrize("agrees", [True, False])
async def test_several_facts_are_erased_after_one_yes(memory: Memory, *, agrees: bool) -> None:
    for text in ("Ann sails", "Ann rows", "Ann swims"):
        await talk_and_learn(memory, text, closing=Closing(writes=to_json([Remember(text)])))
    write = ForgetRecord(1, asks_first=True, sender_id=7, nonce="n" * 16, others=(3, 9))
    await talk_and_learn(memory, "forget both", closing=Closing(writes=to_json([write])))
    assert len((await memory.scopes.read(ANNS)).facts) == 3
    left_marks: list[int] = []

    async def note(_: Scope, fact_id: int) -> None:
        left_marks.append(fact_id)

    memory.correcting.fact_leaves.append(note)
    for _ in range(2):
        await memory.tool_writer.answer(HERE, write.nonce, Asker(7, is_group=False), agrees=agrees)
    left = ["Ann rows"] if agrees else ["Ann sails", "Ann rows", "Ann swims"]
    assert [fact.text for fact in (await memory.scopes.read(ANNS)).facts] == left
    assert left_marks == ([1, 3, 9] if agrees else [])
    await talk(memory, "forget rowing", closing=Closing(writes=to_json([ForgetRecord(2)])))
    await memory.learn(HERE)
    assert left_marks[-1:] == [2]  # as well if a tool erases it


async def test_another_model_embeds_records_again(memory: Memory, embedder: WordsEmbedder) -> None:
    await talk_and_learn(memory, "one", closing=Closing(writes=to_json([Remember("Ann sails")])))
    embedder.fingerprint, embedder.dimensions = "larger", 256
    await memory.learn(HERE)
    scope_memory = await memory.scopes.read(ANNS)
    assert scope_memory.fingerprint == fingerprint_of(embedder, RECIPE)
    hits = await memory.scopes.search(Fact, scope_memory, "sails", 3)
    assert [hit.record.text for hit in hits] == ["Ann sails"]


async def test_without_vectors_everything_else_is_learned_once(
    store: RedisClient, model: ScriptedModel
) -> None:
    memory = memory_of(store, embedder := RefusingEmbedder())
    memory.enable_learning([notes := Notes(every=1)], model)
    model.parts = {"notes": {"text": "Ann counts"}}
    await talk(memory, "one", closing=Closing(writes=to_json([Remember("Ann sails")])))
    for _ in range(2):
        with pytest.raises(EmbeddingsUnavailable):
            await memory.learn(HERE)
        await end_pauses(memory)
    assert (len(model.asked), notes.batches) == (1, [[1, 2]])
    books = [await memory.scopes.read(scope) for scope in (HERE, ANNS)]
    assert [fact.text for book in books for fact in book.facts] == ["Ann counts", "Ann sails"]
    assert await noted(memory) is not None
    embedder.refused = None
    await end_pauses(memory)
    progress = await memory.learn(HERE)
    assert (progress.messages, progress.records, progress.calls) == (2, 2, 0)
    assert await noted(memory) is None


async def test_a_text_without_a_vector_does_not_block_other_scopes(
    store: RedisClient, model: ScriptedModel
) -> None:
    memory = memory_of(store, embedder := RefusingEmbedder())
    memory.enable_learning([Notes(every=1)], model)
    model.parts = {"notes": {"text": "too long"}}
    embedder.refused = "too long"
    await talk(memory, "too long", closing=Closing(writes=to_json([Remember("Ann sails")])))
    with pytest.raises(EmbeddingsUnavailable):
        await memory.learn(HERE)
    books = [await memory.scopes.read(scope) for scope in (HERE, ANNS)]
    assert [book.vectors_length for book in books] == [0, 1]


async def test_after_a_refused_write_vectors_are_tried_again_soon(
    store: RedisClient, model: ScriptedModel
) -> None:
    memory = memory_of(store, RefusingEmbedder())
    memory.enable_learning([Notes(every=1)], model)
    model.parts = {"notes": {"text": "a"}}
    await talk(memory, "one")
    model.meanwhile = lambda: memory.scopes.update(HERE, lambda _: Revision())
    await memory.learn(HERE)
    again_in = await noted(memory)
    assert again_in is not None
    assert again_in < 10


async def test_messages_during_a_wait_are_learned_later(
    memory: Memory, model: ScriptedModel
) -> None:
    memory.enable_learning([notes := Notes(every=1)], model)
    model.parts, model.fails = {"notes": {"text": "a"}}, True
    learner = BackgroundLearner(memory.learn)

    async def speak() -> None:
        await talk(memory, "two")
        learner.learn(HERE)

    model.meanwhile = speak
    await talk(memory, "one")
    learner.learn(HERE)
    await learner.stop(grace_s=5)
    assert len(model.asked) == 1
    model.fails = False
    await end_pauses(memory)
    await memory.learn(HERE)
    assert [seq for batch in notes.batches for seq in batch] == [1, 2, 3, 4]


SLOW = pytest.mark.parametrize(
    ("every", "rejects"), [(10_000, False), (1, True)], ids=["never due", "a bad part each time"]
)


@SLOW
async def test_a_behavior_that_is_far_behind_does_not_block_the_others(
    memory: Memory, model: ScriptedModel, *, every: int, rejects: bool
) -> None:
    slow, quick = Notes("slow", every=every), Notes("quick", every=1)
    slow.rejects = rejects
    memory.enable_learning([slow, quick], model)
    model.parts = {"slow": {"text": "a"}, "quick": {"text": "b"}}
    await talk_and_learn(memory, *map(str, range(101)))
    await talk_and_learn(memory, "one more")
    assert [seq for batch in quick.batches for seq in batch] == list(range(1, 205))
    assert slow.batches == []


@pytest.mark.parametrize("unanswered", [199, 200, 450])
async def test_exchanges_after_many_unanswered_messages_are_learned_whole(
    memory: Memory, model: ScriptedModel, unanswered: int
) -> None:
    """A question may be the last of a page of the log, and its answer the first of the next."""
    memory.enable_learning([notes := Notes(every=1)], model)
    model.parts = {"notes": {"text": "a"}}
    history = await ChatHistory.read(memory.histories, HERE)
    for number in range(unanswered):
        await history.append_user_message(str(number), 1_000.0, sender_id=7)
    await talk_and_learn(memory, "answered")
    assert notes.batches == [[unanswered + 1, unanswered + 2]]


async def test_a_cached_scope_works_on_if_its_model_changes_under_the_same_name(
    memory: Memory, embedder: WordsEmbedder
) -> None:
    """Another process has learned, so this one has read nothing in between."""
    beside = memory_of(memory.client, embedder)

    async def keep(text: str) -> None:
        await talk(beside, "one", closing=Closing(writes=to_json([Remember(text)])))
        for _ in range(3):  # vectors of messages go, then those of records, then all come back
            await beside.learn(HERE)

    async def found() -> list[str]:
        scope_memory = await memory.scopes.read(ANNS)
        hits = await memory.scopes.search(Fact, scope_memory, "sails", 3)
        return [hit.record.text for hit in hits]

    await keep("Ann sails")
    assert await found() == ["Ann sails"]
    embedder.dimensions = 64
    await keep("Ann has a cat")
    assert await found() == await found() == ["Ann sails"]
    assert (await memory.scopes.read(ANNS)).vectors_length == 2


def test_a_forwarded_line_names_its_author_and_its_day() -> None:
    forwarded = replace(
        said(2, "I live in Oslo", is_first_party=False),
        forwarded_from='Ben"}\n{"n":9',
        forwarded_at=NOW - 86_400,
    )
    messages = (replace(said(1, "Look"), unseen="photo"), forwarded, answered(3, "Nice"))
    _, text = request_of({Notes(): batch(*messages)}, (), TOKENS, ZoneInfo("Asia/Tokyo"))
    first, second, _ = map(orjson.loads, text.splitlines()[-3:])
    assert (first["said"], first["attached_but_not_seen"]) == ("Look", "photo")
    assert not {"untrusted", "forwarded_from"} & first.keys()
    author, day = second["forwarded_from"], second["forwarded_on"]
    assert (author, day) == ('Ben"} {"n" 9', "2025-11-20 13:40")
    assert second["untrusted"]
