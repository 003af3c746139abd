"""What must be known about an embedding model before and beside loading it."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from graph_mem.errors import SetupError

DEFAULT_MODEL = "e5-small-v2-int8"


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """An embedding model's dimension, prompts and measured habits.

    `lexical_weight` and `vector_weight` are the shares of the two search legs that were measured best with this
    model (bench/README.md). `cosine_unrelated` and `cosine_same` are what texts with nothing in common, and a text and
    its paraphrase, have: scores are placed between the two. `texts_per_run` is how many texts share one run
    of the network: int8 weights that quantize activations per run give a text another vector in other company (cosine
    0.995), so they run one by one.
    """

    name: str
    dimension: int
    query_prompt: str = ""
    passage_prompt: str = ""
    max_tokens: int = 512
    texts_per_run: int = 16
    lexical_weight: float = 0.5
    vector_weight: float = 0.5
    cosine_unrelated: float = 0.2
    cosine_same: float = 0.9

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise SetupError(f"{self.name}: dimension {self.dimension}, expected at least 1.")


@dataclass(frozen=True, kw_only=True)
class _Family:
    """Habits shared by all sizes of a model, recognized by a part of its name."""

    mark: str
    query_prompt: str
    passage_prompt: str
    lexical_weight: float
    dimensions: tuple[tuple[str, int], ...]
    cosines: tuple[float, float] = (0.2, 0.9)


BGE_QUERY = "Represent this sentence for searching relevant passages: "
SIZES = (("small", 384), ("base", 768), ("large", 1024))
FAMILIES = (
    _Family(
        mark="e5",
        query_prompt="query: ",
        passage_prompt="passage: ",
        lexical_weight=0.4,
        dimensions=SIZES,
        cosines=(0.72, 0.92),
    ),
    _Family(mark="bge", query_prompt=BGE_QUERY, passage_prompt="", lexical_weight=0.5, dimensions=SIZES),
    _Family(mark="minilm", query_prompt="", passage_prompt="", lexical_weight=0.6, dimensions=(("minilm", 384),)),
    _Family(
        mark="text-embedding-3",
        query_prompt="",
        passage_prompt="",
        lexical_weight=0.5,
        dimensions=(("3-small", 1536), ("3-large", 3072)),
    ),
)

E5_SMALL_INT8 = ModelProfile(
    name=DEFAULT_MODEL,
    dimension=384,
    query_prompt="query: ",
    passage_prompt="passage: ",
    texts_per_run=1,
    lexical_weight=0.4,
    vector_weight=0.6,
    cosine_unrelated=0.72,
    cosine_same=0.92,
)


def profile_of(model: str, *, dimension: int | None = None) -> ModelProfile:
    """The profile of `model`: a folder, a sentence-transformers name or an endpoint's model name.

    Errors: SetupError when neither the folder, nor the name, nor `dimension` tells the dimension.
    """
    folder = Path(model)
    profile = _profile_of_folder(folder) if (folder / "config.json").is_file() else _profile_of_name(model, dimension)
    return replace(profile, dimension=dimension) if dimension else profile


def _profile_of_folder(folder: Path) -> ModelProfile:
    config = _object(folder / "config.json")
    name = str(config.get("_name_or_path") or folder.name)
    profile = _profile_of_name(name, _folder_dimension(folder, config))
    prompts = _object(folder / "config_sentence_transformers.json").get("prompts")
    if isinstance(prompts, dict):
        given = cast("dict[str, object]", prompts)
        profile = replace(
            profile,
            query_prompt=str(given.get("query", profile.query_prompt)),
            passage_prompt=str(given.get("passage", given.get("document", profile.passage_prompt))),
        )
    limit = _object(folder / "sentence_bert_config.json").get("max_seq_length")
    return replace(profile, max_tokens=limit if isinstance(limit, int) else 512, texts_per_run=_texts_per_run(folder))


def _folder_dimension(folder: Path, config: dict[str, object]) -> int | None:
    """The width of the last layer that changes it: a dense head, else the pooling, else the encoder."""
    for dense in sorted(folder.glob("*_Dense/config.json"), reverse=True):
        width = _object(dense).get("out_features")
        if isinstance(width, int):
            return width
    pooling = _object(folder / "1_Pooling" / "config.json").get("word_embedding_dimension")
    width = pooling if isinstance(pooling, int) else config.get("hidden_size")
    return width if isinstance(width, int) else None


def _texts_per_run(folder: Path) -> int:
    """One for ONNX files, since they may quantize activations per run; see `ModelProfile`."""
    return 1 if is_onnx_folder(folder) else 16


def is_onnx_folder(folder: Path) -> bool:
    """Whether `folder` holds ONNX weights and no others."""
    others = ("model.safetensors", "pytorch_model.bin", "model.safetensors.index.json")
    return (folder / "onnx" / "model.onnx").is_file() and not any((folder / name).exists() for name in others)


def _profile_of_name(name: str, dimension: int | None) -> ModelProfile:
    lowered = name.lower()
    if DEFAULT_MODEL in lowered:
        return E5_SMALL_INT8
    family = next((f for f in FAMILIES if f.mark in lowered), None)
    if dimension is None and family is not None:
        dimension = next((size for mark, size in family.dimensions if mark in lowered), None)
    if dimension is None:
        raise SetupError(
            f"graph-mem does not know the embedding model {name!r}: say the dimension of its vectors by --dimension,"
            " or GRAPH_MEM_EMBEDDER_DIMENSION."
        )
    if family is None:
        return ModelProfile(name=name, dimension=dimension)
    return ModelProfile(
        name=name,
        dimension=dimension,
        query_prompt=family.query_prompt,
        passage_prompt=family.passage_prompt,
        lexical_weight=family.lexical_weight,
        vector_weight=round(1 - family.lexical_weight, 6),
        cosine_unrelated=family.cosines[0],
        cosine_same=family.cosines[1],
    )


def _object(path: Path) -> dict[str, object]:
    """The JSON object in `path`; empty when there is no such file."""
    if not path.is_file():
        return {}
    try:
        value: object = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SetupError(f"{path.name} of the model folder is not JSON: {error}.") from error
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
