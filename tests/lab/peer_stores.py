"""Other stores, asked the questions of `peers`; runs only in the environment of one store.

    python peer_stores.py PEER FOLDER

FOLDER has `texts.json`, a list of `{"texts", "questions"}` for each conversation, and `rows.npz`
with their unit rows. `answers.json` is written there: for each conversation the positions of the
texts found for each question, best first, with milliseconds of CPU and bytes.
"""

import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

K = 50

Find = Callable[[int], Sequence[int]]
"""Returns the positions of the `K` texts that are found for a question, given by its number."""


@dataclass(frozen=True)
class Talk:
    """The texts and questions of one conversation, with unit rows; files may go to `folder`."""

    texts: list[str]
    questions: list[str]
    rows: npt.NDArray[np.float32]
    question_rows: npt.NDArray[np.float32]
    folder: Path

    def ready(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the row of each text and question, for the embedder that a store calls."""
        texts = [*self.texts, *self.questions]
        return dict(zip(texts, [*self.rows, *self.question_rows], strict=True))

    def beginning(self, folder: Path) -> "Talk":
        """Return the first few texts and the first question."""
        few, one = slice(5), slice(1)
        texts, questions = self.texts[few], self.questions[one]
        return Talk(texts, questions, self.rows[few], self.question_rows[one], folder)


def dense(talk: Talk) -> Find:
    """Rank by cosine; nothing else."""
    rows = talk.rows.copy()
    return lambda number: np.argsort(-(rows @ talk.question_rows[number]), kind="stable")[
        :K
    ].tolist()


def langgraph(talk: Talk) -> Find:
    """Use `InMemoryStore` with an index, which ranks by cosine."""
    from langgraph.store.memory import InMemoryStore

    ready = talk.ready()
    store = InMemoryStore(
        index={
            "dims": talk.rows.shape[1],
            "embed": lambda texts: [ready[text].tolist() for text in texts],
            "fields": ["text"],
        }
    )
    for position, text in enumerate(talk.texts):
        store.put(("talk",), str(position), {"text": text})
    return lambda number: [
        int(found.key) for found in store.search(("talk",), query=talk.questions[number], limit=K)
    ]


def lancedb(talk: Talk) -> Find:
    """Use a hybrid query with its default, reciprocal rank fusion of vectors and full text."""
    import lancedb as lance

    table = lance.connect(talk.folder).create_table(
        "talk",
        [
            {"position": position, "text": text, "vector": row}
            for position, (text, row) in enumerate(zip(talk.texts, talk.rows, strict=True))
        ],
    )
    table.create_fts_index("text")

    def find(number: int) -> list[int]:
        query = table.search(query_type="hybrid").vector(talk.question_rows[number])
        return [
            found["position"] for found in query.text(talk.questions[number]).limit(K).to_list()
        ]

    return find


def llama_index(talk: Talk, mode: str = "simple") -> Find:
    """Use `QueryFusionRetriever` of vectors and BM25; its default mode is `simple`."""
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import QueryBundle, TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [
        TextNode(id_=str(position), text=text, embedding=row)
        for position, (text, row) in enumerate(zip(talk.texts, talk.rows.tolist(), strict=True))
    ]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=talk.rows.shape[1]))
    words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=K)
    both = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=K), words],
        llm=MockLLM(),
        mode=mode,
        similarity_top_k=K,
        num_queries=1,
        use_async=False,
    )
    index.storage_context.persist(str(talk.folder))
    words.persist(str(talk.folder / "bm25"))

    def find(number: int) -> list[int]:
        row = talk.question_rows[number].tolist()
        found = both.retrieve(QueryBundle(talk.questions[number], embedding=row))
        return [int(each.node.node_id) for each in found]

    return find


def llama_index_rrf(talk: Talk) -> Find:
    """Use llama-index with reciprocal rank fusion."""
    return llama_index(talk, "reciprocal_rerank")


def mem0(talk: Talk) -> Find:
    """Use `Memory` with a local Qdrant and `infer=False`; messages are stored as they are."""
    from mem0 import Memory

    # `search` strips the question before it asks for its row. The model that made the rows does
    # the same: it splits a text at its spaces.
    stripped = (question.strip() for question in talk.questions)
    ready = talk.ready() | dict(zip(stripped, talk.question_rows, strict=True))

    class Ready:
        """The embedder, which has its rows ready."""

        def embed(self, text: str, *_: Any, **__: Any) -> list[float]:
            row: list[float] = ready[text].tolist()
            return row

        def embed_batch(self, texts: list[str], *_: Any, **__: Any) -> list[list[float]]:
            return [ready[text].tolist() for text in texts]

    place = {"path": str(talk.folder / "qdrant"), "on_disk": True}
    place |= {"embedding_model_dims": talk.rows.shape[1]}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(talk.folder / "history.db"),
        }
    )
    memory.embedding_model = Ready()
    for position, text in enumerate(talk.texts):
        said = [{"role": "user", "content": text}]
        memory.add(said, user_id="talk", infer=False, metadata={"position": position})

    def find(number: int) -> list[int]:
        found = memory.search(
            talk.questions[number], filters={"user_id": "talk"}, top_k=K, threshold=0.0
        )
        return [each["metadata"]["position"] for each in found["results"]]

    return find


def txtai(talk: Talk) -> Find:
    """Use `Embeddings` with `hybrid`, which adds half of each score of vectors and BM25."""
    from txtai import Embeddings

    ready = talk.ready()
    embeddings = Embeddings(
        hybrid=True,
        method="external",
        transform=lambda texts: np.array([ready[text] for text in texts], np.float32),
    )
    embeddings.index([(position, text, None) for position, text in enumerate(talk.texts)])
    embeddings.save(str(talk.folder / "index"))
    return lambda number: [int(found[0]) for found in embeddings.search(talk.questions[number], K)]


STORES = {
    each.__name__: each
    for each in (dense, langgraph, lancedb, llama_index, llama_index_rrf, mem0, txtai)
}


def asked(store: Callable[[Talk], Find], talk: Talk) -> dict[str, object]:
    """Fill the store and ask all questions; `bytes` are those on disk, else those in memory."""
    tracemalloc.start()
    find = store(talk)
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    disk = sum(path.stat().st_size for path in talk.folder.rglob("*") if path.is_file())
    found, times = [], []
    for number in range(len(talk.questions)):
        began = time.process_time()
        ranked = find(number)
        times.append((time.process_time() - began) * 1000)
        found.append([int(position) for position in ranked])
    return {"found": found, "ms": times, "bytes": disk or memory, "on_disk": disk > 0}


def main(peer: str, folder: Path) -> None:
    """Ask one store about all conversations, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    said: Sequence[Mapping[str, list[str]]] = json.loads((folder / "texts.json").read_text())
    rows = np.load(folder / "rows.npz")
    answers: list[dict[str, object]] = []
    for number, each in enumerate(said):
        place, first = (folder / peer / f"{name}{number}" for name in ("all", "first"))
        place.mkdir(parents=True)
        arrays = rows[f"texts_{number}"], rows[f"questions_{number}"]
        talk = Talk(each["texts"], each["questions"], *arrays, place)
        if not answers:  # what is imported is not counted
            first.mkdir()
            STORES[peer](talk.beginning(first))(0)
        answers.append(asked(STORES[peer], talk))
    (folder / "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
