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


def complete_model_folder(folder: Path) -> Path:
    """`folder`, which holds weights and tokenizer of e5-small-v2, with the small files around them.

    Each file is written beside and renamed, so that another process never reads half of one.
    """
    for name, content in E5_SMALL_FILES.items():
        path = folder / name
        text = json.dumps(content, indent=2) + "\n"
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    return folder
