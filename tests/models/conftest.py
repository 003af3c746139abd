"""The real default model, once per run."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graph_mem.config import Settings
from graph_mem.local.artifacts import Cache, read_lock
from graph_mem.local.weights import default_weights
from graph_mem.models.folder import complete_model_folder
from graph_mem.models.onnx import OnnxEncoder, load_onnx

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """e5-small-v2 int8 as the product lays it out."""
    return complete_model_folder(default_weights(Cache(Settings().cache_dir), read_lock()))


@pytest.fixture(scope="session")
def encoder(model_folder: Path) -> OnnxEncoder:
    return load_onnx(model_folder)


async def eventually(holds: Callable[[], bool], *, within_s: float = 3.0) -> None:
    """Return as soon as `holds`; fail if it never does."""
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "it never came true"
        await asyncio.sleep(0.005)
