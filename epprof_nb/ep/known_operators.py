"""Inputs and attributes of ONNX Runtime's own operators that the Python kernels know.

ONNX gives an operator a new version when it adds an input or an attribute. ONNX Runtime adds them
to existing versions of its own operators. A kernel would ignore unknown inputs and attributes and
give a wrong result, so it leaves such nodes to other providers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb.ep import operator_schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.kernel_limits import Limits, StaticNode

_CONTRIB = "com.microsoft"
CHANNELS_LAST = "com.ms.internal.nhwc"
"""Domain of ONNX's operators with the channels as the last axis."""


class Known(NamedTuple):
    """The inputs and attributes of an operator that its kernel knows."""

    inputs: int
    """Number of inputs."""
    attributes: str = ""
    """Names of attributes. Limits of the kernel cover attributes that it does not support."""


_NORMALIZATION = "axis epsilon stash_type"
_MIXTURE = (
    "activation_alpha activation_beta activation_type k normalize_routing_weights swiglu_fusion "
    "swiglu_limit swiglu_limit_after_activation use_sparse_mixer"
)

OPERATORS = {
    ("", "Crop"): Known(1, "border scale"),
    ("", "LayerNormalization"): Known(3, _NORMALIZATION),
    ("", "SimplifiedLayerNormalization"): Known(2, _NORMALIZATION),
    (_CONTRIB, "Attention"): Known(
        7,
        "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
        "rotary_embedding_dim scale unidirectional",
    ),
    (_CONTRIB, "BiasGelu"): Known(2),
    (_CONTRIB, "BiasDropout"): Known(5, "seed"),
    (_CONTRIB, "FastGelu"): Known(2),
    (_CONTRIB, "FusedConv"): Known(
        4, "activation activation_params auto_pad dilations group kernel_shape pads strides"
    ),
    (_CONTRIB, "FusedGemm"): Known(
        3,
        "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
    ),
    (_CONTRIB, "FusedMatMul"): Known(2, "alpha transA transB transBatchA transBatchB"),
    (_CONTRIB, "GatherBlockQuantized"): Known(4, "bits block_size gather_axis quantize_axis"),
    (_CONTRIB, "Gelu"): Known(1),
    (_CONTRIB, "GridSample"): Known(2, "align_corners mode padding_mode"),
    (_CONTRIB, "GroupNorm"): Known(3, "activation channels_last epsilon groups"),
    (_CONTRIB, "GroupQueryAttention"): Known(
        17,
        "causal do_rotary k_norm_epsilon k_quant_type kv_cache_bit_width kv_num_heads "
        "local_window_size num_heads q_norm_epsilon qk_norm_epsilon qk_output rotary_interleaved "
        "scale sliding_window_cache smooth_softmax softcap v_quant_type",
    ),
    (_CONTRIB, "Inverse"): Known(1),
    (_CONTRIB, "MatMulNBits"): Known(6, "K N accuracy_level bits block_size weight_prepacked"),
    (_CONTRIB, "MoE"): Known(8, _MIXTURE),
    (_CONTRIB, "MultiHeadAttention"): Known(10, "mask_filter_value num_heads scale unidirectional"),
    (_CONTRIB, "QMoE"): Known(
        21,
        f"{_MIXTURE} accuracy_level block_size expert_weight_bits fc1_expert_weight_bits "
        "fc2_expert_weight_bits fc3_expert_weight_bits quant_type weights_prepacked",
    ),
    (_CONTRIB, "QuickGelu"): Known(1, "alpha"),
    (_CONTRIB, "RotaryEmbedding"): Known(
        4, "interleaved is_packed_batching num_heads rotary_embedding_dim scale"
    ),
    (_CONTRIB, "SkipLayerNormalization"): Known(5, "epsilon"),
    (_CONTRIB, "SparseAttention"): Known(
        11, "do_rotary kv_num_heads num_heads rotary_interleaved scale sparse_block_size"
    ),
    (_CONTRIB, "SkipSimplifiedLayerNormalization"): Known(4, "epsilon"),
}
"""By domain and type. Extend an entry when the kernel supports an addition or has a limit for
it."""


_FLAG_NAMES = (
    "align_corners allowzero antialias causal ceil_mode center_point_box count_include_pad "
    "detect_negative detect_positive do_rotary exclude_outside exclusive fmod interleaved inverse "
    "is_causal keepdims largest layout linear_before_reset noop_with_empty_axes onesided periodic "
    "reverse rotary_interleaved saturate select_last_index sorted storage_order training_mode "
    "transA transB transBatchA transBatchB unidirectional upper"
)
_FLAGS = frozenset(_FLAG_NAMES.split())
"""Attributes that are 0 or 1. Providers read other values differently."""

_WORDS = {
    "Cast": {"round_mode": "up down nearest"},
    "CastLike": {"round_mode": "up down nearest"},
    "Gelu": {"approximate": "none tanh"},
    "NegativeLogLikelihoodLoss": {"reduction": "none sum mean"},
    "Resize": {"keep_aspect_ratio_policy": "stretch not_larger not_smaller"},
    "ScatterElements": {"reduction": "none add mul max min"},
    "ScatterND": {"reduction": "none add mul max min"},
    "SoftmaxCrossEntropyLoss": {"reduction": "none sum mean"},
    "TensorScatter": {"mode": "linear circular"},
}
"""Words that an attribute may be, if providers read other words differently."""


INVALID = "one of its attributes has a value that the operator lacks"


def limits_of_values(op_type: str, domain: str) -> Limits:
    """Return the limit of an operator with flags or words; none of an operator without them."""
    words = {name: known.split() for name, known in _WORDS.get(op_type, {}).items()}
    names = {
        name
        for version in operator_schemas.versions(op_type, domain)
        for name in version.attributes
    }
    flags = _FLAGS & names
    if not (flags or words):
        return {}

    def is_invalid(node: StaticNode) -> bool:
        given = node.attrs
        return any(given.get(name, 0) not in (0, 1) for name in flags) or any(
            given.get(name, known[0]) not in known for name, known in words.items()
        )

    return {INVALID: is_invalid}


def known(op_type: str, domain: str) -> Known | None:
    """Return the entry for a kernel of the package; None for operators that only ONNX changes."""
    if domain != CHANNELS_LAST:
        return OPERATORS.get((domain, op_type))
    versions = operator_schemas.versions(op_type, "")
    names = {name for version in versions for name in version.attributes}
    return Known(max(len(version.inputs) for version in versions), " ".join(sorted(names)))


def limits_beyond(op_type: str, domain: str, known: Known | None) -> Limits:
    """Return a limit for each input and attribute that the installed release has beyond `known`.

    Parameters
    ----------
    op_type, domain
        The operator.
    known
        The entry for its kernel; None if the kernel knows everything.

    Returns
    -------
    limits
        Each holds for a node with the input, or with a non-default value of the attribute.
    """
    found: dict[str, Callable[[StaticNode], bool]] = {}
    if known is None:
        return found
    for version in operator_schemas.versions(op_type, domain):
        for number, parameter in enumerate(version.inputs[known.inputs :], known.inputs):
            found[f"it has {parameter.name}, which the kernel does not know"] = _has_input(number)
        for name, attribute in version.attributes.items():
            if name not in known.attributes.split():
                reason = f"{name} is set, which the kernel does not know"
                found[reason] = _is_set(name, operator_schemas.default_of(attribute))
    return found


def _has_input(number: int) -> Callable[[StaticNode], bool]:
    return lambda node: node.has_input(number)


def _is_set(name: str, default: Any) -> Callable[[StaticNode], bool]:  # noqa: ANN401
    return lambda node: name in node.attrs and node.attrs[name] != default
