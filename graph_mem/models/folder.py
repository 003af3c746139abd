"""The folder that turns one ONNX file and one tokenizer into a sentence-transformers model.

onnx/model.onnx                      the weights
tokenizer.json                       the tokenizer, as the `tokenizers` library writes it
tokenizer_config.json                its special tokens
config.json                          the network's shape
modules.json                         network, pooling, normalizing
sentence_bert_config.json            tokens per text
1_Pooling/config.json                mean over the tokens
config_sentence_transformers.json    prompts
"""

import json
import os
import shutil
from pathlib import Path

from graph_mem.models.profile import DEFAULT_MODEL, E5_SMALL_INT8

WEIGHTS = Path("onnx", "model.onnx")
TOKENIZER = Path("tokenizer.json")

E5_SMALL_FILES: dict[str, object] = {
    "config.json": {
        "_name_or_path": DEFAULT_MODEL,
        "architectures": ["BertModel"],
        "hidden_act": "gelu",
        "hidden_size": 384,
        "intermediate_size": 1536,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512,
        "model_type": "bert",
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30522,
    },
    "tokenizer_config.json": {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "model_max_length": 512,
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
    "sentence_bert_config.json": {"max_seq_length": 512, "do_lower_case": False},
    "1_Pooling/config.json": {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True},
    "config_sentence_transformers.json": {
        "prompts": {"query": E5_SMALL_INT8.query_prompt, "passage": E5_SMALL_INT8.passage_prompt},
        "similarity_fn_name": "cosine",
    },
}


def write_model_folder(*, weights: Path, tokenizer: Path, target: Path) -> Path:
    """Make `target` the folder of e5-small-v2 from its two files; a folder that is complete is left alone.

    Written beside and renamed, so that a reader never sees half of it.
    """
    if is_complete(target):
        return target
    staging = target.with_name(f"{target.name}.{os.getpid()}.part")
    shutil.rmtree(staging, ignore_errors=True)
    (staging / WEIGHTS).parent.mkdir(parents=True)
    shutil.copyfile(weights, staging / WEIGHTS)
    shutil.copyfile(tokenizer, staging / TOKENIZER)
    for name, content in E5_SMALL_FILES.items():
        path = staging / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    _put(staging, target)
    return target


def is_complete(folder: Path) -> bool:
    """Whether every file of the layout is there."""
    return all((folder / name).is_file() for name in (WEIGHTS, TOKENIZER, *map(Path, E5_SMALL_FILES)))


def _put(staging: Path, target: Path) -> None:
    try:
        staging.rename(target)
    except OSError:
        if is_complete(target):  # another process was first
            shutil.rmtree(staging, ignore_errors=True)
            return
        shutil.rmtree(target, ignore_errors=True)
        staging.rename(target)
