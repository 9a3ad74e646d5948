"""Short names of kernels: every rule by its example, names of other kinds, hostile names."""

import pytest

from epprof_nb.data import kernel_names
from epprof_nb.data.kernel_name_rules import NAMES, OPERATIONS
from epprof_nb.data.kernel_names import short_name
from epprof_nb.util.cpp_names import parse
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.queries.search import matching_rows
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import activity, kernel, profile

RULES = [*NAMES, *OPERATIONS]


@pytest.mark.parametrize("rule", RULES, ids=[rule.short for rule in RULES])
def test_each_rule_explains_its_example(rule):
    assert short_name(rule.example) == rule.short
    assert short_name(rule.short) == rule.short


@pytest.mark.parametrize("rule", RULES, ids=[rule.short for rule in RULES])
def test_no_rule_is_redundant(rule, monkeypatch):
    """Without the rule, its example has another short name."""
    for rules in ("_NAMES", "_OPERATIONS"):
        others = [(pattern, r) for pattern, r in getattr(kernel_names, rules) if r is not rule]
        monkeypatch.setattr(kernel_names, rules, others)
    assert short_name.__wrapped__(rule.example) != rule.short


SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<float, float, float, "
    "at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue, long, 5>(float*)"
)
WARP_SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, "
    "false>(float*, float const*, int, int, int, bool const*, int, bool)"
)
CUB = (
    "void cub::CUB_300102_SM_900::detail::reduce::DeviceReduceKernel<cub::CUB_300102_SM_900"
    "::detail::reduce::policy_hub<float, unsigned int, cuda::std::__4::plus<void> >::"
    "Policy1000, float*, unsigned int, cuda::std::__4::plus<void>, float, "
    "cuda::std::__4::identity>(float*)"
)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void tiled<float, 4, true>(int*)", "tiled [f32 4 true]"),
        ("void my::(anonymous namespace)::tiled<my::Op<int> >(int*)", "tiled [Op]"),
        ("a::b::plain(float*, int)", "plain"),
        (SOFTMAX, "cunn_SoftMaxForwardReg [f32 LogSoftMaxForwardEpilogue]"),
        (WARP_SOFTMAX, "softmax_warp_forward [f32]"),
        (CUB, "DeviceReduceKernel [f32 plus]"),
    ],
)
def test_kernels_without_a_rule_keep_their_dtypes_and_classes(name, short):
    assert short_name(name) == short


@pytest.mark.parametrize(
    "name",
    ["raw_add", "", "memcpy HtoD", "load batch (3)", "matmul (512, 512)", "a<b", "f)(", "<>", "()",
     "operator+(int)", "Stream Wait", "reduction_prod_kernel", "my_norm_pass1", "λ<int>>",
     "x" * 30_000 + "<float>()"],
)  # fmt: skip
def test_other_names_stay_as_they_are(name):
    assert short_name(name) == name


HOSTILE = [
    "void at::native::" * 1000 + "f<float>()",
    "void f<" + "at::native::" * 1500 + ">()",
    "void f<" + "TensorListMetadata<" * 900 + ">" * 900 + ">()",
    "void f<" + "where_kernel_impl {lambda(bool, " * 500 + ">()",
    "void f<" + "direct_copy_kernel_cuda(" * 700 + ">()",
    "void f<" + "a" * 18_000 + ">()",
    "void f<" + "a_kernel" * 2_000 + ">()",
    "nvjet_" + "a_1x1_" * 3_000,
    "triton_poi_fused_" + "_1" * 9_000 + "x",
    "cupy_" + "__f" * 6_000 + "!",
    "sm90_xmma_gemm_" + "_execute_" * 2_000,
    "k_0d1d" + "2d" * 9_000 + "!",
    "ampere_f32_gemm_f32_1x1" + "_a" * 9_000,
    "void f<" + "{lambda(" * 2_000 + ">()",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_rule_hangs_on_a_hostile_name(name):
    short = short_name.__wrapped__(name)
    assert short == name or len(short) < len(name)


def test_parse_splits_only_outside_brackets():
    function = parse("void a<b, c>::f<g<h, (E)1>, k(int)::{lambda(x, y)#1}>(int, q<r>)")
    assert (function.base, function.namespace) == ("f", "a<b, c>")
    assert function.arguments == ("g<h, (E)1>", "k(int)::{lambda(x, y)#1}")
    assert parse("f<a->b, (c)>(d)").arguments == ("a->b", "(c)")


FULL = [
    f"void reduce_kernel<{threads}, at::native::ReduceOp<float, at::native::MeanOps<float>>>(int)"
    for threads in (128, 512)
]


def two_kernels():
    return profile(
        activities=[
            kernel(0, 10, name=FULL[0]),
            kernel(20, 50, name=FULL[1]),
            kernel(60, 61, name="raw_add"),
            activity("memcpy", 70, 80, name="HtoD"),
        ]
    )


def test_activities_have_a_short_name_beside_the_full_one():
    frame = two_kernels().activities
    assert frame["name"].tolist() == [*FULL, "raw_add", "HtoD"]
    assert frame["short_name"].tolist() == ["reduce_kernel [mean f32]"] * 2 + ["raw_add", "HtoD"]
    assert frame.columns.get_loc("short_name") == frame.columns.get_loc("name") + 1
    empty = profile().activities
    assert empty["short_name"].dtype.name == "category"


def test_by_kernel_groups_by_full_or_by_short_name():
    by_name = two_kernels().by_kernel()
    assert by_name["name"].tolist() == [FULL[1], FULL[0], "raw_add"]
    assert by_name["short_name"].tolist() == ["reduce_kernel [mean f32]"] * 2 + ["raw_add"]
    by_short = two_kernels().by_kernel(by="short_name")
    assert by_short["short_name"].tolist() == ["reduce_kernel [mean f32]", "raw_add"]
    assert by_short["names"].tolist() == [2, 1]
    assert by_short["device_ns"].tolist() == [40, 1]
    assert "name" not in by_short
    assert by_short["device_ns"].sum() == by_name["device_ns"].sum()


def test_an_unknown_grouping_is_an_error():
    with pytest.raises(ValueError, match="'name' or 'short_name', not 'shorter'"):
        two_kernels().by_kernel(by="shorter")


def test_search_finds_a_kernel_by_its_full_and_its_short_name():
    view_model = ViewModel(two_kernels())
    for pattern in (r"reduce_kernel \[mean", "at::native"):
        assert matching_rows(view_model, pattern)["act"].tolist() == [0, 1]
    assert matching_rows(view_model, "raw_add")["act"].tolist() == [2]


def test_views_get_the_short_names():
    view_model = ViewModel(two_kernels())
    header, columns = query_window(view_model, WindowQuery(0, 100))
    names = [header["names"][code] for code in columns["act.name"].tolist()]
    assert names == [*FULL, "raw_add", "HtoD"]
    shown = [header["short_names"].get(code) for code in columns["act.name"].tolist()]
    assert shown == ["reduce_kernel [mean f32]"] * 2 + [None, None]
    tree = icicle(view_model)
    labels = {tree["names"][at]: text for at, text in tree["short_names"].items()}
    assert labels == dict.fromkeys(FULL, "reduce_kernel [mean f32]")
