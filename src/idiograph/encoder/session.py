"""The transformer on onnxruntime: token ids in, token vectors out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from idiograph.encoder.weights import Arrays
from idiograph.errors import ModelError
from idiograph.runner import cores
from idiograph.style.tokens import Floats, Ints

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

GRAPH_FILE = Path(__file__).with_name("roberta.onnx")
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
ERRORS_ONLY = 3  # of the library's log


def start_session(weights: Arrays, threads: int | None = None) -> "InferenceSession":
    """The graph with these weights, on a GPU where the installed onnxruntime can use one."""
    import onnxruntime as ort

    options: Any = ort.SessionOptions()
    options.intra_op_num_threads = threads or allowed_threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    options.enable_mem_pattern = False  # shapes change from batch to batch
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # who waits takes no processor time
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in weights.items()}
    options.add_external_initializers(list(values), list(values.values()))
    try:
        providers = choose_providers(ort.get_available_providers())
        return ort.InferenceSession(GRAPH_FILE.read_bytes(), options, providers=providers)
    except Exception as error:  # the library raises kinds of its own, with Exception above them
        first = str(error).strip().splitlines()[0]
        raise ModelError(f"the graph of the model cannot be run: {first}; install idiograph again") from error


def choose_providers(available: Sequence[str]) -> list[str]:
    """Who runs the graph, the first that can: a GPU of CUDA where the installed build of onnxruntime knows one.

    >>> choose_providers(["CPUExecutionProvider"])
    ['CPUExecutionProvider']
    """
    return [name for name in (CUDA, CPU) if name in available]


def allowed_threads() -> int:
    """The cores that this process may use, or fewer where numpy's linear algebra was told so, as by OMP_NUM_THREADS=1."""
    from threadpoolctl import threadpool_info

    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return min([cores(), *blas])


def run_session(session: "InferenceSession", rows: Sequence[Ints], pad: int) -> Floats:
    """The vectors of texts that fit into the window: (texts, longest, d); rows past a text's end mean nothing."""
    lengths = np.array([len(row) for row in rows], np.int32)
    ids = np.full((len(rows), int(lengths.max())), pad, np.int64)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = row
    inputs = {"ids": ids, "positions": count_positions(ids, pad), "lengths": lengths}
    return np.asarray(session.run(["vectors"], inputs)[0])


def count_positions(ids: Ints, pad: int) -> Ints:
    """Where each token stands, as RoBERTa counts: from the place after the padding token's, which is not counted.

    >>> count_positions(np.array([[0, 7, 2, 1]]), pad=1).tolist()
    [[2, 3, 4, 1]]
    """
    real = ids != pad
    return np.where(real, np.cumsum(real, axis=1), 0) + pad
