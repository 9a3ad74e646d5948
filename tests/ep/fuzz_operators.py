"""Random nodes of each operator that the provider takes, against ONNX Runtime's CPU provider.

::

    python -m tests.ep.fuzz_operators [PATTERN] [--seconds 600] [--seed 0]

starts from nodes that tests of the operators have, and changes attributes, inputs, their shapes,
types and values, also to invalid ones. NaN and infinity are left out: kernels of the CPU provider
differ among themselves in what they make of these. The providers should give the same outputs or
both refuse. The command prints some differences of each kind, and their numbers. Nodes run in a
process that is replaced if one ends it, with the provider that did.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import multiprocessing
import random
import re
import time
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tests.ep import onnx_backend
from tests.ep.operators import test_contrib_operators, test_operators
from tests.ep.ort_operator_tests import difference
from tests.ep.sessions import CPU, OURS, one_node, options, placement

# Of the last two, ONNX Runtime gives other numbers than ONNX's own tests, or expands the node.
LEFT_OUT = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike",
          "RandomUniform", "RandomUniformLike", *onnx_backend.CONTROL_FLOW,
            "MaxUnpool", "MeanVarianceNormalization"}  # fmt: skip
_LARGEST = 10**5
"""Elements of an input."""
_SECONDS_A_NODE = 20


def seeds(pattern=""):
    """Models of one node with plain tensors, and their inputs."""
    for case in onnx_backend.load_cases():
        node, strange = case.model.graph.node, onnx_backend.strange_types(case.model)
        if len(node) != 1 or strange or not case.data_sets or node[0].op_type in LEFT_OUT:
            continue
        arrays = [numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x)
                  for x in case.data_sets[0][0]]  # fmt: skip
        names = [i.name for i in case.model.graph.input]
        if re.search(pattern, node[0].op_type):
            yield case.model, dict(zip(names, arrays, strict=False))
    contrib = test_contrib_operators.CASES.items()
    for op_type, variants in contrib:
        for inputs, attributes, outputs in variants if re.search(pattern, op_type) else ():
            if callable(outputs):  # the padding is not defined
                continue
            made, feeds = one_node(
                op_type, inputs, attributes, outputs=outputs, opset=21, domain="com.microsoft"
            )
            yield onnx.load_from_string(made), feeds
    for op_type, opset, inputs, attributes, *outputs in test_operators.OLDER:
        if re.search(pattern, op_type) and op_type not in LEFT_OUT:
            made, feeds = one_node(
                op_type, inputs, attributes, outputs=outputs[0] if outputs else 1, opset=opset
            )
            yield onnx.load_from_string(made), feeds


def changed(model, feeds, rng):
    """A model and inputs with one to three changes, and words for these."""
    made, feeds = onnx.ModelProto.FromString(model.SerializeToString()), dict(feeds)
    node, count = made.graph.node[0], rng.choice((1, 1, 2, 3))
    told = [rng.choice(CHANGES)(node, feeds, rng) for _ in range(count)]
    del made.graph.input[:], made.graph.value_info[:]
    declared = rng.random() < 0.3
    for name, value in feeds.items():
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        made.graph.input.append(
            helper.make_tensor_value_info(name, kind, value.shape if declared else None)
        )
    names = [name for name in made.graph.node[0].output if name]
    del made.graph.output[:]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return made, feeds, "; ".join(filter(None, told))


def _number(value, rng):
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 0.5, 2.0, 1e-3, -value, value * 2))
    return rng.choice((0, 1, 2, 3, -1, -2, 5, value + 1, value - 1, -value))


def _attribute(node, feeds, rng):
    """Change an attribute that the node has."""
    if not node.attribute:
        return ""
    attribute = rng.choice(list(node.attribute))
    value = helper.get_attribute_value(attribute)
    if attribute.name == "to" or isinstance(value, (onnx.TensorProto, onnx.GraphProto)):
        return ""
    node.attribute.remove(attribute)
    if rng.random() < 0.15:
        return f"no {attribute.name}"
    if isinstance(value, bytes):
        other = rng.choice([v for v in _WORDS if v.isupper() == value.isupper()] or ["?"]).encode()
    elif isinstance(value, (int, float)):
        other = _number(value, rng)
    else:
        other = list(value)
        if rng.random() < 0.2:
            other = other[:-1] if rng.random() < 0.5 else other + other[-1:]
        elif other and not isinstance(other[0], bytes):
            place = rng.randrange(len(other))
            other[place] = _number(other[place], rng)
        if not other:
            return f"no {attribute.name}"
    node.attribute.append(helper.make_attribute(attribute.name, other))
    return f"{attribute.name}={other}"


_WORDS = ("constant", "edge", "reflect", "wrap", "linear", "nearest", "cubic", "bilinear", "zeros",
          "border", "reflection", "asymmetric", "half_pixel", "align_corners", "floor", "ceil",
          "round_prefer_ceil", "add", "mul", "max", "min", "none", "tanh", "DCR", "CRD", "mean",
          "sum", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "TF", "IDF", "TFIDF", "left",
          "right", "forward", "reverse", "bidirectional", "Relu", "Tanh", "Nope",
          "NOPE")  # fmt: skip


def _new_attribute(node, feeds, rng):
    """Set an attribute of the schema that the node lacks."""
    known = _schemas().get((node.domain, node.op_type), ())
    have = {a.name for a in node.attribute}
    names = sorted({(n, str(a.type).rpartition(".")[2]) for s in known
                    for n, a in s.attributes.items() if n not in have})  # fmt: skip
    if not names:
        return ""
    name, kind = rng.choice(names)
    values = {
        "INT": rng.choice((0, 1, 2, -1, 3)), "FLOAT": rng.choice((0.0, 1.0, -0.5, 2.0)),
        "STRING": rng.choice(_WORDS), "INTS": [rng.choice((0, 1, 2, -1)) for _ in range(2)],
        "FLOATS": [rng.choice((0.0, 0.5)) for _ in range(2)],
    }  # fmt: skip
    if kind not in values or name in {"to", "dtype"}:
        return ""
    node.attribute.append(helper.make_attribute(name, values[kind]))
    return f"{name}={values[kind]}"


def _schemas():
    from epprof_nb.ep import operator_schemas

    return operator_schemas._versions()


def _shape(node, feeds, rng):
    """Change the shape of an input."""
    name = rng.choice(list(feeds))
    value, rank = feeds[name], feeds[name].ndim
    how = rng.choice(("size", "empty", "one", "more", "less", "swap", "insert"))
    if how in {"size", "empty", "one"} and rank:
        axis = rng.randrange(rank)
        size = {"empty": 0, "one": 1}.get(how, value.shape[axis] + rng.choice((-1, 1, 2)))
        sizes = [max(size, 0) if i == axis else n for i, n in enumerate(value.shape)]
        value = np.resize(value, sizes)
    elif how == "more":
        value = value[..., None] if rng.random() < 0.5 else value[None]
    elif how == "less" and rank:
        value = value[0] if value.shape[0] else value.reshape(value.shape[1:] or (0,))
    elif how == "swap" and rank > 1:
        value = np.swapaxes(value, *rng.sample(range(rank), 2)).copy()
    else:
        value = np.concatenate([value, value]) if rank else value
    feeds[name] = np.ascontiguousarray(value).reshape(value.shape)
    return f"{name}: {value.shape}"


def _values(node, feeds, rng):
    """Change values of an input."""
    name = rng.choice(list(feeds))
    value = feeds[name].copy()
    if not value.size or value.dtype.kind not in "fiu":
        return ""
    place = rng.randrange(value.size)
    if value.dtype.kind == "f":
        other = rng.choice((0.0, -0.0, -1.0, 1e4, 0.5, 2.5, -1.5))
    else:
        ends = np.iinfo(value.dtype)
        other = rng.choice((0, 1, 2, -1, -2, 7, ends.max if value.dtype.itemsize == 1 else 9))
        other = min(max(other, ends.min), ends.max)
    value.reshape(-1)[place] = other
    feeds[name] = value
    return f"{name}[{place}]={other}"


def _type(node, feeds, rng):
    """Change the type of all inputs of one type."""
    kinds = sorted({v.dtype.str for v in feeds.values()})
    old = np.dtype(rng.choice(kinds))
    new = np.dtype(rng.choice(("f2", "f4", "f8", "i1", "u1", "i4", "i8", "i2", "u4", "?")))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in feeds.items():
            if value.dtype == old:
                feeds[name] = value.astype(new)
    return f"{old} as {new}"


def _inputs(node, feeds, rng):
    """Leave an input out."""
    names = list(feeds)
    name = rng.choice(names[1:] or names)
    if len(names) < 2:
        return ""
    node.input[list(node.input).index(name)] = ""
    while node.input and not node.input[-1]:
        del node.input[-1]
    del feeds[name]
    return f"no {name}"


CHANGES = (_attribute, _attribute, _new_attribute, _shape, _shape, _values, _type, _inputs)


def outcome(serialized, feeds, providers):
    """Outputs of a model; None and the error if it is refused, and whether at its start."""
    try:
        made = onnxruntime.InferenceSession(
            serialized, options(log_severity_level=4), providers=providers, enable_fallback=0
        )
    except Exception as error:
        return None, str(error), True
    ours = OURS in placement(made).values()
    if len(providers) > 1 and not ours:
        return None, "", True
    try:
        with np.errstate(all="ignore"):
            return made.run(None, feeds), "", ours
    except Exception as error:
        return None, str(error), False


_LACKS = ("NOT_IMPLEMENTED|NotImpl|layout_ == 0|does not support|not supported|only supports|"
          "_inlfunc_|bound to different types|conv_integer.cc:52")  # fmt: skip
"""Messages of the CPU provider about valid nodes."""


def compare(entry, made, feeds, before_cpu):
    """The kind of difference between the providers, and words for it; an empty kind if none.

    `before_cpu` is called before the CPU provider runs the node.
    """
    serialized = made.SerializeToString()
    got, why, starting = outcome(serialized, feeds, [entry, CPU])
    if got is None and starting:  # another provider has it, or nobody
        return "", "left to others"
    before_cpu()
    wanted, refused, starting = outcome(serialized, feeds, [CPU])
    if wanted is None and re.search(_LACKS, refused):
        return "", "only ours"
    if wanted is None:
        return ("accepts", _line(refused)) if got is not None else ("", "refused by both")
    if got is None:
        return "refuses", _line(why)
    words = [difference(g, w) for g, w in zip(got, wanted, strict=True)]
    told = [f"output {n} {word}" for n, word in enumerate(words) if word]
    return ("differs", "; ".join(told)) if told else ("", "equal")


def _line(text):
    text = re.sub(r".*?(Status Message: |Non-zero status code returned while )", "", text, count=1)
    return " ".join(text.split())[:230]


def _work(pipe, pattern, seed):
    from epprof_nb import ep

    warnings.simplefilter("ignore")
    entry, rng = ep.provider(), random.Random(seed)
    nodes = list(seeds(pattern))
    by_type = collections.defaultdict(list)
    for model, feeds in nodes:
        by_type[model.graph.node[0].op_type].append((model, feeds))
    types = sorted(by_type)
    while True:
        op_type = rng.choice(types)
        model, feeds = rng.choice(by_type[op_type])
        if not feeds:
            continue
        with contextlib.suppress(Exception):
            made, given, told = changed(model, feeds, rng)
            if all(v.size <= _LARGEST for v in given.values()):
                pipe.send((op_type, told, ["the kernel"]))
                before_cpu = functools.partial(pipe.send, (op_type, told, ["the CPU provider"]))
                pipe.send((op_type, told, compare(entry, made, given, before_cpu)))


def main():
    """Print differences of each kind and operator, and the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression of operators")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shown", type=int, default=2, help="nodes shown of a kind and operator")
    args = parser.parse_args()
    counts, shown = collections.Counter(), collections.Counter()
    end, seed = time.monotonic() + args.seconds, args.seed * 1000
    spawn = multiprocessing.get_context("spawn")

    def report(kind, op_type, told, what):
        shown[kind, op_type] += 1
        if shown[kind, op_type] <= args.shown:
            print(f"{op_type} {kind}: {told}: {what}", flush=True)

    while time.monotonic() < end:
        ours, theirs = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=_work, args=(theirs, args.pattern, seed), daemon=True)
        worker.start()
        theirs.close()
        seed, last, where = seed + 1, None, "the start"
        try:
            while time.monotonic() < end:
                if not ours.poll(_SECONDS_A_NODE + (60 if last is None else 0)):
                    report("hangs", *last, "no answer") if last else None
                    counts["hangs"] += 1
                    break
                op_type, told, found = ours.recv()
                last, where = (op_type, told), found[0]
                if not isinstance(found, list):
                    counts[found[0] or found[1]] += 1
                    if found[0]:
                        report(found[0], op_type, told, found[1])
        except EOFError:
            counts[f"ended by {where}"] += 1
            report(f"ended by {where}", *(last or ("", "")), "")
        worker.kill()
        worker.join()
    print(", ".join(f"{kind}: {n}" for kind, n in counts.most_common()))
    for (kind, op_type), n in sorted(shown.items()):
        print(f"  {kind} {op_type}: {n}")


if __name__ == "__main__":
    main()
