"""The peer, neo4j-graphrag's HybridRetriever, on the same server, data and model: as shipped, and at its best.

It knows no filter in hybrid search, so each group of a set has a label and two indexes of its own.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from neo4j import Driver
from neo4j.exceptions import ClientError
from neo4j.vector import Vector
from neo4j_graphrag.indexes import create_fulltext_index, create_vector_index
from neo4j_graphrag.retrievers import HybridRetriever
from neo4j_graphrag.types import HybridSearchRanker

from bench.measures import Answered
from bench.sets import DataSet, Document, Question
from graph_mem.services import Deps

_SYNTAX = re.compile(r'([+\-!(){}\[\]^"~*?:\\/&|])')
_OPERATORS = re.compile(r"\b(AND|OR|NOT)\b")
_TOP = 10
_BATCH = 500
_ALPHAS = (0.3, 0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to ask the peer. `alpha` is the vector's share, for ranker `linear`; it fetches `ratio` times the page."""

    name: str
    escaped: bool = True
    alpha: float | None = None
    ratio: int = 1


SHIPPED = Way("graphrag as shipped", escaped=False)
WAYS = (
    SHIPPED,
    Way("graphrag, escaped"),
    *(Way(f"graphrag, escaped, linear {alpha}", alpha=alpha, ratio=5) for alpha in _ALPHAS),
)


async def answers(deps: Deps, data: DataSet, *, open_driver: Callable[[], Driver]) -> Mapping[str, list[Answered]]:
    """What the peer answers to the questions of `data`, each way."""
    found: dict[str, list[Answered]] = {way.name: [] for way in WAYS}
    groups = sorted({document.group or "" for document in data.documents})
    with open_driver() as driver:
        for number, group in enumerate(groups):
            label = f"BenchPeer_{re.sub(r'[^a-z]', '', data.name)}_{number}"
            documents = [document for document in data.documents if (document.group or "") == group]
            await _load(deps, driver, label, documents, database=deps.db.name)
            retriever = HybridRetriever(
                driver, f"{label}_vector", f"{label}_words", return_properties=["doc"], neo4j_database=deps.db.name
            )
            for question in (one for one in data.questions if (one.group or "") == group):
                vector = await deps.embedder.query(question.text)
                for way in WAYS:
                    asked = await asyncio.to_thread(_ask, retriever, question, vector.tolist(), way)
                    found[way.name].append(Answered(question, asked))
    return found


async def _load(deps: Deps, driver: Driver, label: str, documents: Sequence[Document], *, database: str) -> None:
    there, _, _ = driver.execute_query(f"MATCH (n:{label}) RETURN count(n) AS n", database_=database)
    if there[0]["n"] != len(documents):
        driver.execute_query(f"MATCH (n:{label}) DETACH DELETE n", database_=database)
        texts = [f"{document.title}\n{document.text}" if document.title else document.text for document in documents]
        vectors = await deps.embedder.passages(texts)
        for start in range(0, len(texts), _BATCH):
            rows = [
                {"doc": documents[i].id, "text": texts[i], "embedding": Vector.from_numpy(vectors[i])}
                for i in range(start, min(start + _BATCH, len(texts)))
            ]
            await asyncio.to_thread(
                driver.execute_query,
                f"UNWIND $rows AS row CREATE (n:{label} {{doc: row.doc, text: row.text}})"
                " SET n.embedding = toFloatList(row.embedding)",
                {"rows": rows},
                database_=database,
            )
    dimensions = deps.embedder.profile.dimension
    create_vector_index(driver, f"{label}_vector", label, "embedding", dimensions, "cosine", neo4j_database=database)
    create_fulltext_index(driver, f"{label}_words", label, ["text"], neo4j_database=database)
    driver.execute_query("CALL db.awaitIndexes(300)", database_=database)


def _ask(retriever: HybridRetriever, question: Question, vector: list[float], way: Way) -> list[str]:
    """Documents best first; nothing where the peer raises."""
    text = question.text
    if way.escaped:
        text = _OPERATORS.sub(lambda match: match[0].lower(), _SYNTAX.sub(r"\\\1", text))
    ranker = HybridSearchRanker.NAIVE if way.alpha is None else HybridSearchRanker.LINEAR
    try:
        result = retriever.get_search_results(
            query_text=text,
            query_vector=vector,
            top_k=_TOP,
            effective_search_ratio=way.ratio,
            ranker=ranker,
            alpha=way.alpha,
        )
    except ClientError:
        return []
    return [record["node"]["doc"] for record in result.records]
