"""Graphs of one op each, for ops that compute element by element: python -m graphs.sweep DIR writes one for each op and
type that TensorFlow has, with what TensorFlow gives for special values, and, on types of 16 bits, for ordinary ones."""

import itertools
import json
import pathlib
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from graphs.recorder import tf1, write_bundle

OPS = """Abs Acos Acosh AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BesselI0 BesselI0e BesselI1 BesselI1e
Betainc BitwiseAnd BitwiseOr BitwiseXor Cast Ceil ClipByValue Complex ComplexAbs Conj Cos Cosh DataFormatDimMap Digamma Div
DivNoNan Elu EluGrad Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Igamma IgammaGradA Igammac
Imag InvGrad Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogSoftmax Maximum
Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual OnesLike Polygamma PopulationCount Pow Real RealDiv Reciprocal Relu
Relu6 Relu6Grad ReluGrad RightShift Rint Round Rsqrt RsqrtGrad Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Softmax
Softplus SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad TruncateDiv
TruncateMod Unique Xdivy Xlog1py Xlogy ZerosLike Zeta""".split()

# By zero, and the least number by -1, they fail or overflow.
DIVISIONS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")

FLOATS = ("float32", "float64", "float16", "bfloat16")
HALVES = FLOATS[2:]
INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
COMPLEX = ("complex64", "complex128")

# A product of three of them is the most that an op gets.
FEW = [0.0, -0.0, 1, -1, 0.5, 2, -2.5, np.inf, -np.inf, np.nan]
MANY = [*FEW, -0.5, 1.5, 2.5, -2, 3, 7, 1e-3, -1e-3, 1e3, -1e3, 1e-30, 88, -88, 1e30, -1e30, 100.5, 17.25, -17.25, 0.3, -0.7, 5, 10, 20]
WHOLE = [0, 1, 2, 3, 5, 7, -1, -2, -3, -7, 100, 127, -128, -100, 64, 33]
PLANE = [0, 1, -1, 1j, -1j, 0.5 + 0.5j, -2 + 0.3j, 3 - 4j, 1e-3j, 2, -0.5, 10 + 1j, -10 - 1j, np.pi * 1j, 1e3]


@np.errstate(all="ignore")
def special(op, dtype, inputs):
    """All combinations of special values of a type, for as many inputs of an op."""
    if dtype in FLOATS:
        values = FEW if inputs > 2 else MANY
    elif dtype in COMPLEX:
        values = PLANE
    else:
        ends = np.iinfo(dtype)
        values = sorted({ends.min, ends.max, *(v for v in WHOLE if ends.min <= v <= ends.max)})
    rows = itertools.product(values, repeat=inputs)
    if dtype in INTEGERS and op in DIVISIONS:
        rows = [row for row in rows if row[-1] not in (0, -1)]
    columns = zip(*rows)
    return [np.array(column).astype(tf.as_dtype(dtype).as_numpy_dtype) for column in columns]


def ordinary(dtype, inputs):
    rng = np.random.RandomState(7)
    return [(rng.randn(40, 50) * 1.5).astype(tf.as_dtype(dtype).as_numpy_dtype) for _ in range(inputs)]


def attributes(definition, dtype):
    """The attributes without a default, if they are types."""
    used = {i.type_attr for i in definition.input_arg}
    left = [a for a in definition.attr if a.name not in used and not a.HasField("default_value")]
    return {a.name: tf.as_dtype(dtype) for a in left}


def record(folder, op, values, dtype):
    """Writes what TensorFlow makes of values, and reports whether it has a kernel for them."""
    definition = op_def_registry.get(op)
    with tf.Graph().as_default() as graph:
        try:
            inputs = [tf1.placeholder(dtype, v.shape, f"x{i}") for i, v in enumerate(values)]
            arguments = {i.name: t for i, t in zip(definition.input_arg, inputs, strict=True)}
            given = getattr(tf.raw_ops, op)(**arguments, **attributes(definition, dtype))
        except (TypeError, ValueError):  # not of this type
            return False
        outputs = list(given) if isinstance(given, tuple) else [given]
        tf.no_op("nothing")
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        try:
            with tf1.Session(graph=graph, config=config) as session:
                results = session.run(outputs, dict(zip(inputs, values)))
        except tf.errors.OpError:
            return False
        folder.mkdir(parents=True)
        tf1.train.export_meta_graph(str(folder / "graph.meta"))
    log = {f"feeds/step_000/x{i}:0": v for i, v in enumerate(values)}
    log.update({f"fetches/step_000/out{i}": r for i, r in enumerate(results)})
    write_bundle(folder / "record", log)
    fetches = {f"out{i}": t.name for i, t in enumerate(outputs)}
    manifest = dict(steps=1, train_op="nothing", init_ops=["nothing"], fetches=fetches, variables=[])
    (folder / "program.json").write_text(json.dumps(manifest))
    return True


def main(folder):
    for op in OPS:
        inputs = len(op_def_registry.get(op).input_arg)
        for dtype in (*FLOATS, *INTEGERS, *COMPLEX):
            if record(folder / f"{op}.{dtype}.special", op, special(op, dtype, inputs), dtype) and dtype in HALVES:
                record(folder / f"{op}.{dtype}.ordinary", op, ordinary(dtype, inputs), dtype)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
