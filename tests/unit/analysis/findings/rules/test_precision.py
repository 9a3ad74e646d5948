"""Findings on kernels in double precision, and on products in float32."""

import pytest

from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile

F64 = (
    "sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x16_stage3_warpsize2x2x1_tensor16x8x8_"
    "execute_kernel__5x_cublas"
)
F32 = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_"
    "alignc4_execute_kernel__5x_cublas"
)
TF32 = (
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_"
    "k_off_kernel__5x_cublas"
)
BF16 = "nvjet_sm90_tst_64x64_64x13_2x1_v_bz_splitK_NNT"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<{0}>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<{0}>, std::array<char*, 3ul>)"
)
SIMT = "cutlass_80_simt_sgemm_64x64_8x5_nn_align1"
SOURCE = "a = load()\nb = a @ w\nc = b + 1\n"


def program(*work, rounds=5, host=10 * US):
    """Rounds that launch kernels of (line, name, ns)."""
    ops, kernels, calls, now, done = [], [], [], 0, 0
    for _ in range(rounds):
        for at, name, ns in work:
            number = len(calls) + 1
            ops.append(line(number, at, now, now + host))
            calls.append(call(now, now + host, correlation_id=number, op_id=number))
            now += host
            start = max(now, done)
            done = start + ns
            kernels.append(kernel(start, done, number, name=name, correlation_id=number,
                                  thread_id=1))  # fmt: skip
    return profile(ops, kernels, calls, info=info(max(now, done)), sources={"In[1]": SOURCE})


def test_double_precision_is_named_with_its_line():
    prof = program((2, F64, 4 * MS), (3, ADD.format("double"), MS))
    (found,) = of_kind(prof, "precision")
    assert found.text == (
        "Kernels with 100 % of the GPU time (25.0 ms) compute in double precision (float64), most "
        "of them of line 2 (`b = a @ w`)."
    )
    assert "`.float()`" in found.remedy
    assert "Results change" in found.remedy
    cured = program((2, TF32, MS), (3, ADD.format("float"), MS // 2))
    assert found.gain_ns == pytest.approx(prof.info["wall_ns"] - cured.info["wall_ns"], rel=0.01)
    assert found.low_ns < found.gain_ns < found.high_ns
    assert not of_kind(cured, "precision")


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (F32, 1),
        (f"void cutlass::Kernel2<{SIMT}>({SIMT}::Params)", 1),
        ("ampere_sgemm_128x64_nn", 1),
        ("void dgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(double*, double const*)", 1),
        ("cupy_add__float64_float64_float64", 1),
        (TF32, 0),
        (BF16, 0),
        (ADD.format("float"), 0),
        ("void reduce_kernel<int>(int*)", 0),
        ("", 0),
    ],
)  # fmt: skip
def test_kernels_are_told_by_their_names(name, count):
    found = of_kind(program((2, name, 2 * MS)), "precision")
    assert len(found) == count


def test_few_precise_kernels_and_a_busy_host_are_no_finding():
    assert not of_kind(program((2, F64, MS // 20), (3, BF16, MS)), "precision")
    # The host takes longer than the device.
    assert not of_kind(program((2, F64, MS // 20), host=2 * MS), "precision")


def test_the_host_device_has_no_tensor_cores():
    prof = program((2, "cupy_add__float64_float64_float64", MS))
    prof.info["devices"] = [{"device_id": 0, "name": "host", "kind": "host"}]
    assert not of_kind(prof, "precision")
