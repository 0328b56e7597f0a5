"""The graph that is checked in is the one that its script makes, and runs on as many threads as are allowed."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from idiograph.encoder.session import CPU, CUDA, GRAPH_FILE, choose_providers, count_positions, start_session
from idiograph.encoder.weights import SHIPPED_BUILD
from idiograph.errors import ModelError

SCRIPT = Path(__file__).parents[2] / "scripts" / "encoder_graph.py"


def test_the_graph_is_what_its_script_makes():
    pytest.importorskip("onnx", reason="making the graph needs onnx")
    made = runpy.run_path(str(SCRIPT))["graph_bytes"](SHIPPED_BUILD)
    assert made == GRAPH_FILE.read_bytes()


def test_the_graph_holds_no_weights():
    assert GRAPH_FILE.stat().st_size < 20_000


def test_weights_that_do_not_fit_the_graph_are_an_error_in_one_line():
    with pytest.raises(ModelError, match="cannot be run") as caught:
        start_session({"words": np.zeros((3, 384), np.float16)})
    assert "\n" not in str(caught.value)


def test_a_padding_token_within_a_text_takes_no_position():
    assert count_positions(np.array([[0, 5, 1, 6, 2, 1]]), pad=1).tolist() == [[2, 3, 1, 4, 5, 1]]


def test_a_gpu_is_used_where_the_installed_onnxruntime_knows_one():
    assert choose_providers(["TensorrtExecutionProvider", CUDA, CPU]) == [CUDA, CPU]
    assert choose_providers(["AzureExecutionProvider", CPU]) == [CPU]


def test_it_runs_on_one_thread_where_others_do():
    code = "from idiograph.encoder.session import allowed_threads; print(allowed_threads())"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"OMP_NUM_THREADS": "1"} | _path(), capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "1"


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
