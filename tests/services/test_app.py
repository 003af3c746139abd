"""Settings become the parts that use them."""

from pathlib import Path

import pytest

from graph_mem import app
from graph_mem.config import Settings
from graph_mem.errors import SetupError
from graph_mem.local.home import Address
from graph_mem.models.claims import ModelClaims
from graph_mem.models.judge import ModelJudge
from graph_mem.models.profile import ModelProfile


def settings(address: Address, **chosen: object) -> Settings:
    return Settings(
        neo4j_uri=address.uri, neo4j_user=address.user, neo4j_password=address.password, embedder="onnx", **chosen
    )


async def test_a_chat_endpoint_finds_claims_and_judges(neo4j_address: Address) -> None:
    given = settings(neo4j_address, chat_url="http://127.0.0.1:9/v1", chat_model="any")
    async with app.opened(given, start_model=False) as deps:
        assert isinstance(deps.claims, ModelClaims)
        assert isinstance(deps.judge, ModelJudge)
    async with app.opened(settings(neo4j_address), start_model=False) as deps:
        assert (deps.claims, deps.judge) == (None, None)


async def test_an_endpoint_without_a_model_is_refused(neo4j_address: Address) -> None:
    with pytest.raises(SetupError, match="GRAPH_MEM_CHAT_MODEL"):
        async with app.opened(settings(neo4j_address, chat_url="http://127.0.0.1:9/v1"), start_model=False):
            raise AssertionError("opened")


@pytest.mark.parametrize("missing", ["embedder_url", "embedder_model"])
def test_a_remote_embedder_needs_address_and_model(missing: str) -> None:
    chosen = {"embedder_url": "http://127.0.0.1:9/v1", "embedder_model": "text-embedding-3-small"}
    with pytest.raises(SetupError, match="GRAPH_MEM_EMBEDDER_URL and GRAPH_MEM_EMBEDDER_MODEL"):
        app.model(Settings(embedder="openai", **{name: value for name, value in chosen.items() if name != missing}))


def test_a_remote_embedder_has_the_dimension_of_its_model() -> None:
    given = Settings(embedder="openai", embedder_url="http://127.0.0.1:9/v1", embedder_model="text-embedding-3-small")
    profile: ModelProfile = app.model(given)[1]
    assert profile.dimension == 1536


def test_schema_and_documents_are_found_in_the_repository() -> None:
    root = Path(__file__).parents[2]
    assert (app.folder("schema"), app.folder("graphql")) == (root / "schema", root / "graphql")
