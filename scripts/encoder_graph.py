"""Write the graph of the shipped model, `src/idiograph/encoder/roberta.onnx`: operations and shapes, no weights.

Needs `pip install onnx`. Run it when the build of the model changes: python scripts/encoder_graph.py
"""

import sys
from collections.abc import Mapping

import onnx
from onnx import NodeProto, TensorProto, helper

from idiograph.encoder.session import GRAPH_FILE
from idiograph.encoder.weights import SHIPPED_BUILD, Build

FUSED = "com.microsoft"  # onnxruntime's own operators: attention, and sums with what follows them
OPSETS = {"": 17, FUSED: 1}
TINY = 1e-12  # the shortest vector that is scaled, as in torch


def main() -> int:
    GRAPH_FILE.write_bytes(graph_bytes(SHIPPED_BUILD))
    print(f"{GRAPH_FILE}: {GRAPH_FILE.stat().st_size} bytes")
    return 0


def graph_bytes(build: Build) -> bytes:
    """The same bytes for the same build."""
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "tokens"]),
        helper.make_tensor_value_info("positions", TensorProto.INT64, ["texts", "tokens"]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["texts"]),
    ]
    wide = 2 * build.width
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", "tokens", wide])
    graph = helper.make_graph(nodes(build), "roberta", inputs, [output], initializers(build))
    imports = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    return onnx.ModelProto.SerializeToString(
        helper.make_model(graph, opset_imports=imports, ir_version=9), deterministic=True
    )


def nodes(build: Build) -> list[NodeProto]:
    found = [
        node("Gather", "words", "ids", output="word16"),
        node("Cast", "word16", output="word", to=TensorProto.FLOAT),
        node("Gather", "places", "positions", output="place"),
        fused("SkipLayerNormalization", "word", "place", "scale", "shift", output="state.0", epsilon=build.epsilon),
    ]
    for layer in range(build.layers):
        found += layer_nodes(build, layer)
    return found + unit_nodes(build)


def layer_nodes(build: Build, at: int) -> list[NodeProto]:
    """One layer: `state.N` → `state.N+1`."""
    state, eps = f"state.{at}", build.epsilon

    def own(*names: str) -> list[str]:
        return [f"{at}.{name}" for name in names]

    attended, mixed, between, wide, bent, narrow = own("attended", "mixed", "between", "wide", "bent", "narrowed")
    return [
        fused("Attention", state, *own("attend", "attend.bias"), "lengths", output=attended, num_heads=build.heads),
        node("MatMul", attended, *own("mix"), output=mixed),
        fused(
            "SkipLayerNormalization",
            mixed,
            state,
            *own("mix.scale", "mix.shift", "mix.bias"),
            output=between,
            epsilon=eps,
        ),
        node("MatMul", between, *own("widen"), output=wide),
        fused("BiasGelu", wide, *own("widen.bias"), output=bent),  # the exact one, by the error function
        node("MatMul", bent, *own("narrow"), output=narrow),
        fused(
            "SkipLayerNormalization",
            narrow,
            between,
            *own("narrow.scale", "narrow.shift", "narrow.bias"),
            output=f"state.{at + 1}",
            epsilon=eps,
        ),
    ]


def unit_nodes(build: Build) -> list[NodeProto]:
    """The last layer and a lower one, each of unit length, the lower one times the weight of its token, end to end."""
    found: list[NodeProto] = []
    for name, layer in (("top", build.layers), ("low", build.lower)):
        state = f"state.{layer}"
        found += [
            node("ReduceL2", state, output=f"{name}.size", axes=[-1], keepdims=1),
            node("Max", f"{name}.size", "tiny", output=f"{name}.least"),
            node("Div", state, f"{name}.least", output=f"{name}.unit"),
        ]
    return [
        *found,
        node("Gather", "wording", "ids", output="weight"),
        node("Unsqueeze", "weight", "last", output="weights"),
        node("Mul", "low.unit", "weights", output="low.weighed"),
        node("Concat", "top.unit", "low.weighed", output="vectors", axis=-1),
    ]


def initializers(build: Build) -> list[TensorProto]:
    """Two constants, and a place for each weight, which onnxruntime is given when a session is made."""
    constants = [
        helper.make_tensor("tiny", TensorProto.FLOAT, [], [TINY]),
        helper.make_tensor("last", TensorProto.INT64, [1], [-1]),
    ]
    return constants + [empty_tensor(name, shape) for name, shape in weight_shapes(build).items()]


def weight_shapes(build: Build) -> Mapping[str, tuple[int, ...]]:
    wide, inner = build.width, build.inner
    found: dict[str, tuple[int, ...]] = {
        "words": (build.vocabulary, wide),
        "places": (build.positions, wide),
        "wording": (build.vocabulary,),
        "scale": (wide,),
        "shift": (wide,),
    }
    layer = {"attend": (wide, 3 * wide), "mix": (wide, wide), "widen": (wide, inner), "narrow": (inner, wide)}
    sizes = {f"{name}.bias": shape[1:] for name, shape in layer.items()}
    sizes |= {f"{name}.{kind}": (wide,) for name in ("mix", "narrow") for kind in ("scale", "shift")}
    for at in range(build.layers):
        found |= {f"{at}.{name}": shape for name, shape in (layer | sizes).items()}
    return found


def empty_tensor(name: str, shape: tuple[int, ...]) -> TensorProto:
    tensor = TensorProto(name=name, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.data_type = TensorProto.FLOAT16 if name == "words" else TensorProto.FLOAT
    tensor.external_data.add(key="location", value="model.safetensors")
    return tensor


def node(kind: str, *inputs: str, output: str, **settings: object) -> NodeProto:
    return helper.make_node(kind, list(inputs), [output], **settings)


def fused(kind: str, *inputs: str, output: str, **settings: object) -> NodeProto:
    return helper.make_node(kind, list(inputs), [output], domain=FUSED, **settings)


if __name__ == "__main__":
    sys.exit(main())
