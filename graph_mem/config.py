"""Settings of a process: the environment, read once at the edge, as frozen values.

Every setting is `GRAPH_MEM_` + its name in capitals; the README lists them all and a test compares. In a container a
setting may also be a file of that name, in small letters, among the secrets.
"""

from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

SECRETS = Path("/run/secrets")


class Settings(BaseSettings):
    """Everything an operator may choose. Secrets do not show when this is printed."""

    model_config = SettingsConfigDict(
        env_prefix="GRAPH_MEM_",
        frozen=True,
        env_ignore_empty=True,
        extra="forbid",
        secrets_dir=SECRETS if SECRETS.is_dir() else None,
    )

    data_dir: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("graph-mem"),
        description="Where an instance keeps its state: database, password, signing key.",
    )
    cache_dir: Path = Field(
        default_factory=lambda: platformdirs.user_cache_path("graph-mem"),
        description="Where downloads are kept, shared by all instances of this user; may be deleted.",
    )
    maven_mirror: str | None = Field(
        default=None, description="Address of the Maven repository to download from; Maven Central if absent."
    )
    java_home: Path | None = Field(
        default=None, description="Home of the Java that runs Neo4j; if absent, the best one found here."
    )

    neo4j_uri: str | None = Field(
        default=None,
        description="Neo4j to use (`bolt://`, `neo4j://`, `neo4j+s://`, ...); if absent, `up` starts one of its own.",
    )
    neo4j_user: str = Field(default="neo4j", description="User at that Neo4j.")
    neo4j_password: SecretStr | None = Field(default=None, description="Password at that Neo4j.")
    neo4j_database: str = Field(default="neo4j", description="Database to use.")
    neo4j_pool_size: int = Field(default=50, ge=1, description="Connections one process may hold to Neo4j.")
    neo4j_port: int = Field(
        default=7687, ge=0, le=65535, description="Bolt port of the Neo4j that `up` starts; 0 is any free one."
    )
    neo4j_http_port: int = Field(
        default=7474, ge=0, le=65535, description="HTTP port (Neo4j Browser) of it; 0 is any free one."
    )
    neo4j_heap_mib: int | None = Field(
        default=None, ge=256, description="Heap of it in MiB; if absent, an eighth of the machine, 512 to 4096."
    )
    neo4j_pagecache_mib: int | None = Field(
        default=None, ge=32, description="Page cache of it in MiB; if absent, a sixteenth of the machine, 128 to 2048."
    )

    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port the API listens on; 0 is any free one.")
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Origins, separated by commas, whose pages may call the API."
    )
    rate_limit_per_minute: int = Field(
        default=1_200_000,
        ge=0,
        description="Cost one caller may spend in a minute, in nodes that queries may touch; 0 is no limit.",
    )
    failed_logins_per_minute: int = Field(
        default=300,
        ge=0,
        description="Credentials that are not valid which one address may send in a minute; 0 is no limit.",
    )
    operation_timeout_s: float = Field(default=30.0, gt=0, description="Seconds an operation may take.")
    allow_introspection: bool = Field(default=True, description="Whether the schema can be asked for over the API.")

    jwt_secret: SecretStr | None = Field(
        default=None,
        description="Secret, of at least 32 bytes, that signs tokens; if absent, one kept in the data folder.",
    )
    jwt_jwks_url: str | None = Field(
        default=None, description="Keys of an identity provider; if given, only its tokens count."
    )
    jwt_audience: str = Field(default="graph-mem", description="Audience a token must name.")
    jwt_issuer: str = Field(default="graph-mem", description="Issuer a token must name.")
    token_lifetime_days: int = Field(default=30, ge=1, description="Days until a token made here expires.")

    embedder: str = Field(
        default="e5-small-v2",
        description=(
            "Embedding model: `e5-small-v2`, `onnx` (the same weights without torch), `openai` (see embedder_url), "
            "or any sentence-transformers name or folder."
        ),
    )
    embedder_url: str | None = Field(
        default=None, description="Base address of an OpenAI-compatible endpoint, for embedder `openai`."
    )
    embedder_model: str | None = Field(default=None, description="Model to ask that endpoint for.")
    embedder_dimension: int | None = Field(default=None, ge=1, description="Dimension of that model's vectors.")
    embedder_api_key: SecretStr | None = Field(default=None, description="Key for that endpoint.")
    extractor: str = Field(
        default="rules", description="Entity extractor: `rules`, `spacy:NAME`, or `gliner:NAME` (name or folder)."
    )

    chat_url: str | None = Field(
        default=None,
        description=(
            "Base address of an OpenAI-compatible endpoint that finds claims and judges candidates for the nightly "
            "cycle; if absent, rules find claims and nothing is judged."
        ),
    )
    chat_model: str | None = Field(default=None, description="Model to ask that endpoint for.")
    chat_api_key: SecretStr | None = Field(default=None, description="Key for that endpoint.")

    tokenizer: str | None = Field(
        default=None,
        description=(
            "Tokenizer that context budgets are counted with: a `tokenizer.json`, a folder with one, or a name in this "
            "machine's cache; if absent, the default embedding model's."
        ),
    )
    pin_tokens: int = Field(
        default=2000, ge=50, description="Tokens above which a single pinned memory is cut at a paragraph."
    )
    scratch_hours: float = Field(default=24.0, gt=0, description="Hours a note of a run is kept if the run never ends.")

    worker_concurrency: int = Field(default=2, ge=1, description="Batches of jobs one process works on at once.")
    worker_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port where `worker` answers `/health/live`, `/health/ready` and `/metrics`; if absent, nowhere.",
    )
    trace_retention_days: int = Field(default=90, ge=1, description="Days the trace of a search or a run is kept.")

    slow_operation_ms: float = Field(
        default=1000.0,
        ge=0,
        description="Milliseconds from which on the spans of an operation are exported though it was not sampled.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(default="INFO", description="Least level logged.")
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto", description="Form of the log: `console` on a terminal and `json` elsewhere if `auto`."
    )

    @field_validator("cors_origins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
