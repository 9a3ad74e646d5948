"""Findings on kernels that copy what need not move: layouts, and arrays that grow."""

import numpy as np
import pytest

from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile

TO_NHWC = (
    "void cudnn::ops::nchwToNhwcKernel<__nv_bfloat16, __nv_bfloat16, float, false, true, "
    "(cudnnKernelDataType_t)0>(cudnn::ops::nchw2nhwc_params_t<float>, __nv_bfloat16 const*)"
)
TO_NCHW = TO_NHWC.replace("nchwToNhwcKernel", "nhwcToNchwKernel")
CONV = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64"
CAT = (
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::"
    "(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64>()"
)
SOURCE = "for i in range(n):\n    keys = cat([keys, new[i]])\n    z = conv(z)\n"


def program(*work):
    """Kernels of (line, name, ns), each launched in 5 us."""
    ops, kernels, calls, now, done = [], [], [], 0, 0
    for number, (at, name, ns) in enumerate(work, 1):
        ops.append(line(number, at, now, now + 5 * US))
        calls.append(call(now, now + 5 * US, correlation_id=number, op_id=number))
        now += 5 * US
        done = max(now, done)
        kernels.append(kernel(done, done + ns, number, name=name, correlation_id=number,
                              thread_id=1))  # fmt: skip
        done += ns
    return profile(ops, kernels, calls, info=info(done), sources={"In[1]": SOURCE})


def convolutions(*names):
    return program(*[(3, name, MS) for _ in range(5) for name in names])


def test_kernels_that_only_change_the_layout_are_found():
    prof = convolutions(TO_NHWC, CONV, TO_NCHW)
    (found,) = of_kind(prof, "layout")
    assert found.text == (
        "10 kernels with 67 % of the GPU time (10.0 ms) only change the layout between NCHW and "
        "NHWC, most of them in line 3 (`z = conv(z)`): convolutions on tensor cores need NHWC."
    )
    assert "torch.channels_last" in found.remedy
    true = prof.info["wall_ns"] - convolutions(CONV).info["wall_ns"]
    assert found.gain_ns == pytest.approx(true, rel=0.01)
    assert found.evidence_rows(prof).tolist() == [i for i in range(15) if i % 3 != 1]


@pytest.mark.parametrize("names", [(CONV,), ("transpose_nchw",), ("nhwcAddPaddingKernel",)])
def test_other_kernels_of_convolutions_are_no_layout_changes(names):
    assert not of_kind(convolutions(*names), "layout")


def test_one_conversion_of_the_input_is_needed():
    assert not of_kind(program((3, TO_NHWC, MS), (3, CONV, MS)), "layout")


def grown(times, name=CAT):
    return program(*[(2, name, int(ns)) for ns in times])


def noise(n, spread):
    return np.random.default_rng(0).normal(0, spread, n)


def test_a_cache_that_grows_by_concatenation_is_found():
    # From 4,096 to 4,160 rows: the growth of 1.5 % is hardly more than the noise.
    times = 100 * US * (1 + 0.015 * np.linspace(0, 1, 64) + noise(64, 0.004))
    prof = grown(times)
    (found,) = of_kind(prof, "growing array")
    assert found.text.startswith(
        "Line 2 (`keys = cat([keys, new[i]])`) concatenates arrays 64 times"
    )
    assert "write the new elements into a slice" in found.remedy
    assert found.gain_ns == pytest.approx(times.sum(), rel=0.06)


@pytest.mark.parametrize(
    "times",
    [
        100 * US * (1 + noise(64, 0.004)),
        [100 * US] * 64,
        100 * US * np.linspace(2, 1, 64),
        100 * US * np.linspace(1, 2, 9),
    ],
    ids=["noise", "constant", "shrinking", "few"],
)
def test_concatenations_that_do_not_grow_are_no_finding(times):
    assert not of_kind(grown(times), "growing array")


def test_other_kernels_that_grow_are_no_concatenations():
    assert not of_kind(grown(100 * US * np.linspace(1, 2, 64), name=CONV), "growing array")
