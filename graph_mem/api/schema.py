"""The schema: every part of the API put together."""

from pathlib import Path

import strawberry

from graph_mem.api.capture import CaptureMutation, CaptureSubscription
from graph_mem.api.context import ContextMutation, ContextQuery
from graph_mem.api.descriptions import describe
from graph_mem.api.documents import render_manifest
from graph_mem.api.entities import EntityQuery
from graph_mem.api.errors import SafeSchema
from graph_mem.api.facts import FactMutation, FactQuery
from graph_mem.api.failures import ERROR_TYPES
from graph_mem.api.guard import Guard, core_schema
from graph_mem.api.memories import MemoryQuery
from graph_mem.api.relations import HistoryQuery, RelationMutation
from graph_mem.api.retrieval import RetrievalMutation, RetrievalQuery
from graph_mem.api.review import ReviewMutation, ReviewQuery, ReviewSubscription
from graph_mem.api.scalars import schema_config
from graph_mem.api.search import SearchQuery
from graph_mem.api.system import SystemQuery
from graph_mem.api.traces import TraceQuery
from graph_mem.api.vocabulary import VocabularyMutation, VocabularyQuery


@strawberry.type(description="Everything that can be asked.")
class Query(
    ReviewQuery,
    SearchQuery,
    ContextQuery,
    TraceQuery,
    RetrievalQuery,
    MemoryQuery,
    FactQuery,
    HistoryQuery,
    EntityQuery,
    VocabularyQuery,
    SystemQuery,
):
    pass


@strawberry.type(description="Everything that can be changed.")
class Mutation(
    CaptureMutation,
    FactMutation,
    RelationMutation,
    ContextMutation,
    ReviewMutation,
    VocabularyMutation,
    RetrievalMutation,
):
    pass


@strawberry.type(description="Everything that can be followed.")
class Subscription(CaptureSubscription, ReviewSubscription):
    pass


def make_schema() -> SafeSchema:
    """The schema that the service answers with."""
    schema = SafeSchema(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        types=list(ERROR_TYPES),
        extensions=[Guard().extension],
        config=schema_config(),
    )
    describe(core_schema(schema))
    return schema


SDL = Path("graphql", "schema.graphql")
"""Where the printed schema is committed, from the root of the repository."""
OPERATIONS = Path("graphql", "operations")
"""What clients start from, and the manifest of it."""


def main() -> None:
    """Print schema and manifest to their committed files: `python -m graph_mem.api.schema`."""
    SDL.write_text(make_schema().as_str() + "\n", encoding="utf-8")
    (OPERATIONS / "manifest.json").write_bytes(render_manifest(OPERATIONS))


if __name__ == "__main__":
    main()
