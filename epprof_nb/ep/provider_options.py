"""Options of a session's provider: ours, and the options of ONNX Runtime's CUDA provider by name.

An option of the CUDA provider either has the same effect here, or is refused with the reason. A
value that describes what this provider does anyway is accepted, too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.ep import devices
from epprof_nb.ep.graphs.session_graphs import DEFAULT_WARM_UPS, MAX_WARM_UPS
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.util.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GRAPHS = "enable_cuda_graph"
WARM_UPS = "min_num_runs_before_cuda_graph_capture"
OPTIONS = (
    "device", "device_id", "stream", "only", "nodes", "prefer_nhwc", "use_tf32", GRAPHS, WARM_UPS,
)  # fmt: skip
MEMORY_LIMIT, EXTENSION = "gpu_mem_limit", "arena_extend_strategy"
_OWN = ("device", "stream", "only", "nodes", "prefer_nhwc")
"""Options that the CUDA provider does not have."""
_BY_NAME = (MEMORY_LIMIT, EXTENSION)
"""Options with an effect that `epprof_nb.ep.provider` has no parameter for."""
_CUDA_PREFIX = "ep.cuda."
_ALIASES = {
    "prefer_nhwc_layout": "prefer_nhwc",
    "user_compute_stream": "stream",
    "arena.max_mem": MEMORY_LIMIT,
    "arena.extend_strategy": EXTENSION,
}
_CONTROL_FLOW = ("If", "Loop", "Scan")
_SWITCH = {"0": False, "false": False, "1": True, "true": True}

_UNLIMITED = 2**64 - 1
_EXTENSIONS = {
    "-1": False, "0": False, "kNextPowerOfTwo": False, "1": True, "kSameAsRequested": True,
}  # fmt: skip

_ARENA = "the sessions on a device share one arena, which chooses the sizes of its regions"
_SWITCHED = "it is a switch, 0 or 1"
_SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT", "0", "1", "2")
_SEARCHED = "it is EXHAUSTIVE, HEURISTIC or DEFAULT"
_NO_TUNING = "this provider does not tune its kernels"
# Values of the CUDA provider's other options that describe what this provider does anyway, and the
# reason why it refuses others.
_WITHOUT_EFFECT: dict[str, tuple[tuple[str, ...], str]] = {
    "ep.context_enable": (
        ("0",),
        "it requests a model with compiled nodes, and kernels in Python are not compiled",
    ),
    "has_user_compute_stream": (("0", "1"), _SWITCHED),
    "arena.initial_chunk_size_bytes": (("-1",), _ARENA),
    "arena.initial_growth_chunk_size_bytes": (("-1",), _ARENA),
    "arena.max_dead_bytes_per_chunk": (("-1",), _ARENA),
    "arena.max_power_of_two_extend_bytes": (("-1",), _ARENA),
    # The arena reuses memory in the order of a stream, also in graphs, as a memory pool does.
    "arena.use_cuda_mempool": (("0", "1"), _SWITCHED),
    "arena.cuda_mempool_release_threshold": (("0",), _ARENA),
    "arena.cuda_mempool_bytes_to_keep_on_shrink": (("0",), _ARENA),
    "do_copy_in_default_stream": (("1",), "copies run on the stream of the session"),
    # This provider does not use cuDNN, so these change nothing.
    "enable_cudnn": (("0", "1"), _SWITCHED),
    "cudnn_conv_algo_search": (_SEARCHES, _SEARCHED),
    "cudnn_conv_algo": (_SEARCHES, _SEARCHED),
    "cudnn_conv_use_max_workspace": (("0", "1"), _SWITCHED),
    "cudnn_conv1d_pad_to_nc1d": (("0", "1"), _SWITCHED),
    "fuse_conv_bias": (("0", "1"), _SWITCHED),
    "tunable_op_enable": (("0",), _NO_TUNING),
    "tunable_op_tuning_enable": (("0",), _NO_TUNING),
    "tunable_op_max_tuning_duration_ms": (("0",), _NO_TUNING),
    "sdpa_kernel": (("0",), "there is one kernel for attention"),
    "use_ep_level_unified_stream": (("0",), "each run has its own stream; set user_compute_stream"),
    "enable_skip_layer_norm_strict_mode": (("0", "1"), _SWITCHED),
    "gpu_external_alloc": (("0",), _ARENA),
    "gpu_external_free": (("0",), _ARENA),
    "gpu_external_empty_cache": (("0",), _ARENA),
}


@dataclass(frozen=True)
class ProviderOptions:
    """The checked options of one session.

    Parameters
    ----------
    device
        Number of the CUDA device; None for the host device.
    only, nodes
        Selected types of operators and names of nodes; empty for all.
    stream
        Address of the user's stream; 0 for streams of the session's own.
    prefer_nhwc
        Whether ONNX Runtime may move channels to the last axis.
    warm_ups
        Number of runs before a capture; None if graphs are off.
    use_tf32
        Whether products of float32 round their elements to TF32 on CUDA devices; None if the
        process decides.
    memory_limit
        Most bytes of the arena of the device, 0 for no limit; None leaves the limit unchanged.
    extends_exactly
        Whether the arena requests no more memory than it needs; None leaves this unchanged.
    """

    device: int | None = None
    only: tuple[str, ...] = field(default=())
    nodes: tuple[str, ...] = field(default=())
    stream: int = 0
    prefer_nhwc: bool = False
    warm_ups: int | None = None
    use_tf32: bool | None = None
    memory_limit: int | None = None
    extends_exactly: bool | None = None


def canonical(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options under our names, without those that have no effect.

    Raises
    ------
    KernelError
        If an option is unknown, given twice with different values, or has a value that this
        provider cannot follow.
    """
    given: dict[str, tuple[str, str]] = {}
    for written, value in options.items():
        name = _name(written)
        _refuse_unknown(written, name)
        other, before = given.setdefault(name, (written, str(value)))
        if before != str(value):
            raise KernelError(
                f"{other}={before} and {written}={value} are the same option. Leave one out."
            )
    for name, (written, value) in given.items():
        accepted, reason = _WITHOUT_EFFECT.get(name, ((value,), ""))
        if value not in accepted and _as_number(value) not in accepted:
            raise KernelError(
                f"{PROVIDER} cannot follow the option {written}={value}: {reason}. Leave it out."
            )
    return {n: value for n, (_, value) in given.items() if n in OPTIONS or n in _BY_NAME}


def are_for_cuda(options: Iterable[str]) -> bool:
    """Return whether an option is one of ONNX Runtime's CUDA provider, by its name."""
    return any(name.removeprefix(_CUDA_PREFIX) not in _OWN for name in options)


def _as_number(value: str) -> str:
    """Return a switch as ONNX Runtime writes it: str(True) is the text "True"."""
    return str(int(_SWITCH[value.lower()])) if value.lower() in _SWITCH else value


def _refuse_unknown(written: str, name: str) -> None:
    known = (*OPTIONS, *_BY_NAME, *_ALIASES, *_WITHOUT_EFFECT)
    if name in known:
        return
    question = did_you_mean(name, known)
    raise KernelError(
        f"{PROVIDER} has no option {written!r}{f'; {question}' if question else '.'} Its options "
        f"are {', '.join(OPTIONS)}; epprof_nb.ep.provider() returns them. It also takes "
        "options of ONNX Runtime's CUDA provider, such as device_id and user_compute_stream."
    )


def check(options: Mapping[str, Any], chosen: int | None) -> ProviderOptions:
    """Return the options of a session, checked.

    Parameters
    ----------
    options
        Options as the user has written them.
    chosen
        The CUDA device that ONNX Runtime has chosen for the session; None for the host device.

    Raises
    ------
    KernelError
        If an option is unknown or its value is wrong.
    """
    named = canonical(options)
    devices.check(named, chosen)
    only, nodes = _selection(named, "only"), _selection(named, "nodes")
    _check_types(only)
    written = {_name(text): text for text in options}
    stream = _stream(named, chosen, written)
    prefer_nhwc = _is_on(named, "prefer_nhwc", written)
    use_tf32 = _is_on(named, "use_tf32", written) if "use_tf32" in named else None
    return ProviderOptions(
        chosen, only, nodes, stream, prefer_nhwc, _warm_ups(named, written), use_tf32,
        _memory_limit(named, chosen, written), _extends_exactly(named, written),
    )  # fmt: skip


def _name(written: str) -> str:
    """Return our name of an option."""
    short = written.removeprefix(_CUDA_PREFIX)
    return _ALIASES.get(short, short)


def selected_names(options: Mapping[str, str], option: str) -> Any:  # noqa: ANN401
    """Return the value of the option ``only`` or ``nodes``, a list of names if valid."""
    try:
        return json.loads(options.get(option, "[]"))
    except ValueError:
        return [options[option]]


_AS_JSON = """; write several names as a JSON list: '["Softplus", "Gelu"]'."""


def _selection(options: Mapping[str, str], option: str) -> tuple[str, ...]:
    names = selected_names(options, option)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise KernelError(f"{option}={options[option]!r} is not a JSON list of names{_AS_JSON}")
    # No operator has such a name; a node may.
    if option == "only" and names == [options.get(option)] and set(names[0]) & {*",[ "}:
        raise KernelError(f"{option}={names[0]!r} is not a name{_AS_JSON}")
    if option in options and not names:
        raise KernelError(f"{option}= is empty, so no node would be taken over. Leave it out.")
    return tuple(names)


def _check_types(only: Iterable[str]) -> None:
    if not set(only) - {*_CONTROL_FLOW}:
        return
    known = {*_CONTROL_FLOW, *(k.declaration.op_type for k in REGISTRY.kernels())}
    missing = sorted({*only} - known)
    if missing:
        question = did_you_mean(missing[0], known)
        meant = f"; {question} Otherwise define" if question else ". Define"
        raise KernelError(
            f"only={list(only)!r}: there is no kernel for {', '.join(missing)}{meant} it with "
            "@epprof_nb.ep.kernel first."
        )


def _stream(options: Mapping[str, str], device: int | None, written: Mapping[str, str]) -> int:
    text = options.get("stream", "0")
    try:
        address = int(text, 0)
    except ValueError:
        address = -1
    if address < 0:
        raise KernelError(f"{written['stream']}={text!r} is not the address of a CUDA stream.")
    if address and device is None:
        raise KernelError(
            f"{written['stream']}= is the address of a CUDA stream; the host device has none."
        )
    return address


def _memory_limit(
    options: Mapping[str, str], device: int | None, written: Mapping[str, str]
) -> int | None:
    text = options.get(MEMORY_LIMIT)
    if text is None:
        return None
    if not text.isdecimal() or int(text) > _UNLIMITED:
        raise KernelError(f"{written[MEMORY_LIMIT]}={text!r} is not a number of bytes.")
    limit = int(text) % _UNLIMITED
    if limit and device is None:
        raise KernelError(
            f"{written[MEMORY_LIMIT]}={text}: the host device uses the memory of the process, "
            "without an arena that could be limited. Leave it out."
        )
    return limit


def _extends_exactly(options: Mapping[str, str], written: Mapping[str, str]) -> bool | None:
    text = options.get(EXTENSION)
    if text is not None and text not in _EXTENSIONS:
        raise KernelError(
            f"{written[EXTENSION]}={text!r} is neither kNextPowerOfTwo nor kSameAsRequested."
        )
    return None if text is None else _EXTENSIONS[text]


def _is_on(options: Mapping[str, str], option: str, written: Mapping[str, str]) -> bool:
    text = options.get(option, "0")
    if text.lower() not in _SWITCH:
        raise KernelError(f"{written[option]}={text!r} is neither 0 nor 1.")
    return _SWITCH[text.lower()]


def _warm_ups(options: Mapping[str, str], written: Mapping[str, str]) -> int | None:
    text = options.get(WARM_UPS, str(DEFAULT_WARM_UPS))
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MAX_WARM_UPS:
        raise KernelError(
            f"{written[WARM_UPS]}={text} is out of range. It is 1 to {MAX_WARM_UPS}: ONNX "
            "Runtime gives up if no graph was captured in eight runs."
        )
    return number if _is_on(options, GRAPHS, written) else None
