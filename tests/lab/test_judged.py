"""`tests.lab.judged` asks a whole bot and counts, against the scripted model."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from bot.telegram.updates import Sender
from tests.lab import judged
from tests.lab.talks import request_of
from tests.servers.model_api import ApiError, ChatRequest, ModelApiServer, Reply
from tests.settings import Settings

SAID = {"Ann": "Ann: I sail in Kiel with Ben.", "assistant": "assistant: Fair winds."}
ASKED = [("Where is the boat?", "Kiel", "one"), ("Who is with her?", "Ben", "two")]
ASKED += [("What may she like?", "", "two")]
TALK = {
    "id": "ann",
    "turns": [
        {"id": who, "session": "a", "date": "2023-05-01", "speaker": who, "text": text}
        for who, text in SAID.items()
    ],
    "questions": [
        {"question": text, "answer": answer, "category": category, "evidence": ["Ann"]}
        for text, answer, category in ASKED
    ],
}


class Model:
    """Learns nothing, knows only Kiel, and judges by the words."""

    def __init__(self) -> None:
        self.learned = self.judged = 0
        self.asked: list[str] = []
        self.is_down = True

    async def respond(self, request: ChatRequest) -> Reply:
        content = request.messages[-1].content
        if "reference answer" in request.messages[0].content:
            self.judged += 1
            pair = json.loads(content[content.index("{") :])
            is_right = pair["reference"] in pair["answer"]
            verdict = {"reason": "", "verdict": "right" if is_right else "wrong"}
            return Reply(json.dumps({"judged": verdict}))
        if "## What was said" in content:
            self.learned += 1
            return Reply(json.dumps({"running_state": {}, "facts": {}, "synopses": {}}))
        if self.is_down and "Who is" in content:
            raise ApiError(400, "no")
        self.asked.append("\n".join(each.content for each in request.messages[1:]))
        return Reply("In Kiel.")


def rows_of(text: str) -> list[dict[str, object]]:
    """Return the rows between the lines of the log."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conversations.json").write_text(json.dumps([TALK]))
    np.savez(tmp_path / "embeddings.npz", turns_ann=np.eye(3)[:2], questions_ann=np.eye(3))
    return tmp_path


async def test_what_failed_is_asked_again_and_what_is_done_is_not(
    folder: Path, valkey: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Model()
    out = folder / "scores.jsonl"
    options = argparse.Namespace(path=folder, out=out, judge="judge", parallel=2)
    printed = []
    async with ModelApiServer(model) as server:
        settings = Settings(
            _env_file=None,
            openai_base_url=server.base_url,
            openai_api_key="sk-test",
            openai_model="chat",
            openai_embedding_model="off",
            web="off",
            prices="chat 1 0 1; judge 1 0 1",
        )
        for model.is_down in (True, False):
            done = rows_of(out.read_text()) if out.exists() else []
            await judged.measure(settings, options, valkey, done)
            printed.append(rows_of(capsys.readouterr().out))
    first, second = printed
    one, two = ({"category": name, "questions": 1} for name in ("one", "two"))
    assert first[:3] == [
        {"category": "all", "questions": 1, "score": 100.0},
        one | {"score": 100.0},
        {"unanswered": 1},
    ]
    assert second[:4] == [
        {"category": "all", "questions": 2, "score": 50.0},
        one | {"score": 100.0},
        two | {"score": 0.0},
        {"unanswered": 0},
    ]
    assert int(str(first[-1]["read"])) > int(str(second[-1]["read"])) > 0
    assert float(str(first[-1]["cost"])) > 0
    assert (model.learned > 0, model.judged) == (True, 2)
    assert [sum(text in each for each in model.asked) for text, *_ in ASKED] == [1, 1, 0]
    assert "I sail in Kiel with Ben." in model.asked[0]


def test_nothing_is_asked_before_somebody_agrees_to_what_it_costs(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRICES", "chat 1 0 1")
    for name in ("OPENAI_MODEL", "OPENAI_MEMORY_MODEL"):
        monkeypatch.setenv(name, "chat")
    judged.main([str(folder), "--out", str(folder / "scores.jsonl")])
    [row] = rows_of(capsys.readouterr().out)
    assert row == {"announced": {"questions": 2, "read": 20_591, "written": 756, "cost": "0.0213"}}
    assert not (folder / "scores.jsonl").exists()


@pytest.mark.parametrize(
    ("answer", "share"),
    [("On 12 May you met Zofia in Kiel.", 1.0), ("You met Zofia.", 0.0), ("I do not know.", 0.0)],
)
def test_an_answer_needs_the_names_and_numbers_that_the_question_does_not_have(
    answer: str, share: float
) -> None:
    request = request_of(Sender(1, "Ann", "Ann"), "Whom did I meet in Kiel?", 0, 1)
    case = judged.Case(0, "single", request, wanted=[["Yesterday, 12 May, I met Zofia in Kiel."]])
    assert judged.has_all(answer, case) == share
