"""Rules for the names of known kernels, with names from recorded profiles as examples.

`NAMES` are rules for whole names, of libraries that describe a kernel in its name. `OPERATIONS`
are rules for the template arguments of generic kernels, which name the operation there. The first
rule that matches counts. Rules are regular expressions with named groups; ``label`` refers to the
groups. Some groups are rewritten:

=============  ====================================================================
``dtype...``   by `DTYPES`
``operation``  to snake case, and by `OPERATION_WORDS`
``tile``       to sizes with ``x`` between them
``flags``      with spaces for underscores
``ops``        cut if very long
=============  ====================================================================

Patterns must not backtrack over the name, because names come from untrusted files.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `pattern` to `label`, with an example and its short name."""

    pattern: str
    label: str
    example: str
    short: str


DTYPES = {
    "float": "f32", "double": "f64", "__half": "f16", "half": "f16", "Half": "f16",
    "half_t": "f16", "BFloat16": "bf16", "__nv_bfloat16": "bf16", "bfloat16_t": "bf16",
    "tfloat32_t": "tf32", "Float8_e4m3fn": "f8e4m3", "Float8_e5m2": "f8e5m2",
    "__nv_fp8_e4m3": "f8e4m3", "__nv_fp8_e5m2": "f8e5m2", "float_e4m3_t": "f8e4m3",
    "float_e5m2_t": "f8e5m2", "complex<float>": "c64", "complex<double>": "c128",
    "complex<Half>": "c32",
    "bool": "bool", "char": "i8", "signed char": "i8", "unsigned char": "u8", "short": "i16",
    "unsigned short": "u16", "int": "i32", "unsigned int": "u32", "long": "i64",
    "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64",
    # names of NumPy's dtypes, as CuPy writes them
    "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64",
    "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bfloat16": "bf16",
    # letters of cuBLAS: inputs, accumulator, output
    "tst": "bf16", "hsh": "f16", "sss": "f32", "ddd": "f64", "qqtst": "f8e4m3",
    # dtypes of cuDNN and cuBLAS: of A and B, of the products
    "f32f32_f32f32_f32": "f32", "f32f32_tf32f32_f32": "tf32", "tf32f32_tf32f32_f32": "tf32",
    "f64f64_f64f64_f64": "f64", "f16f16_f16f32_f32": "f16", "f16f16_f16f16_f16": "f16",
    "bf16bf16_bf16f32_f32": "bf16", "i8i8_i8i32_f32": "i8",
    "bf16": "bf16", "f16": "f16", "f32": "f32", "fp16": "f16", "tf32": "tf32",
}  # fmt: skip
"""dtype as written in names, without namespaces, to its short form."""

OPERATION_WORDS = {
    "welford": "var", "norm_two": "norm", "norm_one": "norm1", "norm_zero": "norm0",
    "arg_max": "argmax", "arg_min": "argmin", "or": "any", "and": "all",
    "max_values": "amax", "min_values": "amin", "multiplies": "mul", "divides": "div",
    "plus": "add", "minus": "sub", "compare_eq": "eq", "compare_scalar": "compare",
    "max_nan": "amax", "min_nan": "amin", "index_put_with_sort": "index_put",
    "fused_adam_math": "fused_adam", "fused_sgd_math": "fused_sgd", "lp_norm": "norm",
    "pow_tensor_scalar": "pow", "pow_tensor_tensor": "pow",
    "group_norm_kernel_impl_internal": "group_norm",
}  # fmt: skip
"""Operation as named in functors to the name of the tensor operation."""

LIBRARY_NAMESPACES = (
    "at::", "c10::", "torch::", "cudnn", "cublas", "cub::", "thrust::", "at_cuda_detail::",
    "cutlass", "cask", "(anonymous namespace)",
)  # fmt: skip
"""Namespaces of libraries. Their kernels' integers and flags are details of the implementation."""

LIBRARY_KERNELS = (
    r"(?:regular|vector)_fft|postprocess_kernel$|trsm_|kernel_trsm|gem[mv]|dot_kernel|getrf_|ipiv_"
    r"|implicit_convolve|RNN_|nhwc|nchw|gen_sequenced|batch_norm_|softmax_warp_"
)
"""Kernels of libraries without a namespace."""

IGNORED_CLASSES = {
    "policy_hub", "NullType", "identity", "__identity", "identity_decomposer_t", "ScanTileState",
    "streaming_context_t", "empty_problem_init_t", "VSMemHelper", "HostConfigPlaceholder", "EPT",
    "OffsetCalculator", "TrivialOffsetCalculator", "HermitianSymmetryOffsetCalculator", "array",
    "cublasGemvTensorStridedBatched", "cublasGemvTensorBatched", "curandStateXORWOW", "tuple",
}  # fmt: skip
"""Classes among the template arguments of libraries' kernels that do not help a reader."""

_AT = "at::native::"
_TIB = "at::TensorIteratorBase&"

NAMES: tuple[Rule, ...] = (
    # cuBLAS: types, tile, depth and stages, cluster, raster order, ..., layouts of A, B and C
    Rule(
        r"nvjet(?P<arch>_sm\d+)?_(?P<dtype>[a-z]+)_(?P<tile>\d+x\d+)_\d+x(?P<stages>\d+)_\d+x\d+"
        r"(?:_2cta)?_[a-z](?:_bz)?(?:_coop[AB])?(?:_algo\d+)?_?(?P<flags>\w*?)_?(?P<layout>[NT]{3})$",
        "nvjet{arch} {tile}x{stages} {layout} [{dtype} {flags}]",
        "nvjet_sm90_tst_64x64_64x13_2x1_v_bz_splitK_NNT",
        "nvjet_sm90 64x64x13 NNT [bf16 splitK]",
    ),
    # cuBLAS and cuDNN
    Rule(
        r"(?P<arch>sm\d+)_xmma_gemm_(?P<dtype>(?:[a-z]+\d+){2}_(?:[a-z]+\d+){2}_[a-z]+\d+)_"
        r"(?P<layout>[nt]{2})_n_tilesize(?P<tile>\d+x\d+x\d+)_\w*?execute_"
        r"(?P<flags>split_k_)?\w*kernel__5x_cu\w+$",
        "{arch}_xmma_gemm {tile} {layout} [{dtype} {flags}]",
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_"
        "alignc4_execute_split_k_kernel__5x_cublas",
        "sm80_xmma_gemm 64x64x8 nn [f32 split k]",
    ),
    Rule(
        r"(?P<arch>sm\d+)_xmma_(?P<pass>[fdw](?:prop|grad))_\w*?implicit_gemm_"
        r"(?P<flags>(?:indexed_)?(?:wo_smem_)?)"
        r"(?P<dtype>(?:[a-z]+\d+){2}_(?:[a-z]+\d+){2}_[a-z]+\d+)_[a-z]+_(?P<layout>n\w\w\w)_"
        r"tilesize(?P<tile>\d+x\d+x\d+)_\w*kernel__5x_cudnn$",
        "{arch}_xmma_{pass} {tile} {layout} [{dtype} {flags}]",
        "sm90_xmma_dgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize"
        "64x128x64_warpgroupsize1x1x1_g1_strided_execute_kernel__5x_cudnn",
        "sm90_xmma_dgrad 64x128x64 nhwc [bf16 indexed]",
    ),
    Rule(
        r"cudnn_generated_fort_native_sdpa_(?P<arch>sm\d+)_(?P<kind>\w+?)_(?:wgmma_)?f16_"
        r"(?:knob_\d+_)?(?P<tile>\d+x\d+x\d+)_\w*kernel\d+_\d+$",
        "cudnn_sdpa_{arch}_{kind} {tile}",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_"
        "cga1x1x1_kernel0_0",
        "cudnn_sdpa_sm90_flash_fprop 64x128x64",
    ),
    Rule(
        r"(?P<arch>ampere|turing|volta|maxwell|hopper)_(?P<dtype>[a-z]+\d+)_(?P<mma>s\d+)?gemm_"
        r"[a-z]+\d+_(?P<tile>\d+x\d+)(?P<middle>_\w*?)??_(?P<layout>[nt]{2})(?:_v\d+)?$",
        "{arch}_{mma}gemm {tile} {layout} [{dtype}]",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
        "ampere_s16816gemm 128x64 tn [bf16]",
    ),
    Rule(
        r"(?P<arch>ampere|turing|volta|maxwell)_(?P<gemm>[sdczh]gemm)_(?P<tile>\d+x\d+)_"
        r"(?P<flags>\w*?)_?(?P<layout>[nt]{2})$",
        "{arch}_{gemm} {tile} {layout} [{flags}]",
        "ampere_sgemm_128x64_nn",
        "ampere_sgemm 128x64 nn",
    ),
    # CUTLASS
    Rule(
        r"(?:void )?cutlass\w*::Kernel2?<cutlass_(?P<arch>\d+_)?(?P<kind>tensorop|simt)_"
        r"(?P<gemm>[a-z0-9_]*?gemm)(?P<dtype_relu>(?:_relu|_gelu)?)(?:_(?P<dtype>[a-z]+\d+))?_"
        r"(?P<tile>\d+x\d+_\d+)x\d+_(?P<layout>[nt]{2})_\w*>",
        "cutlass_{arch}{kind}_{gemm} {tile} {layout} [{dtype}]",
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>"
        "(cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4::Params)",
        "cutlass_80_tensorop_s1688gemm 64x64x16 nn",
    ),
    Rule(
        r"(?:void )?cutlass\w*::Kernel2?<cutlass_tensorop_(?:[a-z]+\d+_)?(?P<mma>s\d+)"
        r"(?P<pass>fprop|dgrad|wgrad)_(?:optimized|analytic|few_channels|fixed_channels)_"
        r"(?P<dtype>[a-z]+\d+)_(?P<tile>\d+x\d+_\d+)x\d+_(?P<layout>n[a-z]+)_(?P<flags>\w*?)_?align\d+>",
        "cutlass_{mma}{pass} {tile} {layout} [{dtype} {flags}]",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816dgrad_optimized_bf16_64x64_"
        "32x10_nhwc_unity_stride_align8>(cutlass_tensorop_bf16_s16816dgrad_optimized_bf16_64x64_"
        "32x10_nhwc_unity_stride_align8::Params)",
        "cutlass_s16816dgrad 64x64x32 nhwc [bf16 unity stride]",
    ),
    # The demangler gives up on some of cuDNN's names.
    Rule(
        r"_ZN\d+cutlass\w{0,12}?6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblock"
        r"\d+ImplicitGemm(?P<kind>Multistage|Pipelined)INS_4gemm9GemmShapeILi(?P<m>\d+)ELi(?P<n>\d+)"
        r"ELi(?P<k>\d+)EEENS4_\d+Conv2d(?P<pass>Fprop|Dgrad|Wgrad)",
        "cutlass ImplicitGemmConvolution {m}x{n}x{k} [{pass} {kind}]",
        "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblock"
        "22ImplicitGemmMultistageINS_4gemm9GemmShapeILi64ELi64ELi32EEENS4_52Conv2dWgradOutput"
        "GradientTileAccessIteratorOptimizedINS_11MatrixShapeILi64ELi32EEENS_10tfloat32_tE",
        "cutlass ImplicitGemmConvolution 64x64x32 [Wgrad Multistage]",
    ),
    Rule(  # input, output and accumulator; log2 of the length; logarithm; mask
        r"void (?:at::native::)?\(anonymous namespace\)::softmax_warp_(?P<pass>forward|backward)<"
        r"(?P<dtype>[\w:]+), (?P<dtype_out>[\w:]+), [\w:]+, \d+, true, ",
        "softmax_warp_{pass} [log {dtype}->{dtype_out}]",
        "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 9, "
        "true, false>(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)",
        "softmax_warp_forward [log bf16]",
    ),
    # FlashAttention: head dimension, rows of Q, rows of K and V
    Rule(
        r"(?:void )?\w*flash\w*::(?P<base>flash_\w+)<(?:true, |false, )?Flash_\w+_traits<"
        r"(?P<head>\d+), (?P<tile>\d+, \d+), (?:\d+, )+(?:(?:true|false), )+(?P<dtype>[\w:]+)",
        "{base} {tile} [{dtype} head {head}]",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, "
        "false, cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, "
        "false, true, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)",
        "flash_fwd_kernel 128x128 [bf16 head 64]",
    ),
    # Triton: a kernel of torch.compile; and the suffix of specialised arguments
    Rule(
        r"triton_(?P<kind>poi|per|red|tem|for|mix|spl)_fused_(?P<ops>\w+?)_(?P<number>\d+)$",
        "triton_{kind}_fused_{number} [{ops}]",
        "triton_poi_fused__to_copy_add_mul_pow_tanh_view_11",
        "triton_poi_fused_11 [to_copy_add_mul_pow_tanh_view]",
    ),
    Rule(
        r"(?P<base>[A-Za-z_]\w*?)_0d1d[\dcde]*$",
        "{base}",
        "matmul_kernel_0d1d2d3de4de5de6de7c8de9c10de11c",
        "matmul_kernel",
    ),
    # CuPy: dtypes of the inputs and of the output; scalars are written with Python's types
    Rule(
        r"(?P<base>cupyx?_\w+?)__(?P<dtype>[a-z]+\d*)(?:_[a-z]+\d*)*_(?P<dtype_out>[a-z]+\d+|bool)$",
        "{base} [{dtype}->{dtype_out}]",
        "cupy_multiply__float32_float_float32",
        "cupy_multiply [f32]",
    ),
    # NCCL
    Rule(
        r"nccl(?:Dev)?Kernel_(?P<operation>[A-Z][A-Za-z]+)_(?P<reduction>Sum|Prod|MinMax|SumPostDiv"
        r"|PreMulSum|Max|Min)_(?P<dtype>[a-z]+\d+)_(?P<algorithm>[A-Z_]+?)_(?P<protocol>LL128|LL|SIMPLE)",
        "nccl_{operation} [{reduction} {dtype} {algorithm}]",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        "nccl_all_reduce [Sum bf16 RING]",
    ),
)  # fmt: skip
"""Rules for whole names; they match from the beginning."""

OPERATIONS: tuple[Rule, ...] = (
    Rule(
        r"\b(?P<dtype_out>bfloat16|float16)_copy_kernel_cuda\(",
        "copy {dtype}->{dtype_out}",
        f"void {_AT}vectorized_elementwise_kernel<8, {_AT}bfloat16_copy_kernel_cuda({_TIB})::"
        "{lambda(float)#1}, std::array<char*, 2ul> >(int)",
        "vectorized_elementwise_kernel [copy f32->bf16]",
    ),
    Rule(  # the dtype that is read is known only at run time
        r"\bdirect_copy_kernel_cuda\((?=.*LoadWithCast)",
        "copy to {dtype}",
        f"void {_AT}unrolled_elementwise_kernel<{_AT}direct_copy_kernel_cuda({_TIB})::"
        "{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}, "
        "std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "
        f"TrivialOffsetCalculator<1, unsigned int>, {_AT}memory::LoadWithCast<1>, "
        f"{_AT}memory::StoreWithCast<1> >(int)",
        "unrolled_elementwise_kernel [copy to f32]",
    ),
    Rule(
        r"\bdirect_(?P<operation>copy)_kernel_cuda\(",
        "{operation} {dtype}",
        f"void {_AT}elementwise_kernel<128, 4, {_AT}gpu_kernel_impl_nocast<{_AT}"
        f"direct_copy_kernel_cuda({_TIB})::{{lambda()#3}}::operator()() const::"
        "{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>"
        f"({_TIB})::{{lambda(int)#1}}>(int)",
        "elementwise_kernel [copy bf16]",
    ),
    Rule(
        r"\bwhere_kernel_impl\b.{0,200}?\{lambda\(bool, (?P<dtype>[^,)]+)",
        "where {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<8, {_AT}(anonymous namespace)::"
        "where_kernel_impl(at::TensorIterator&)::{lambda()#1}::operator()() const::{lambda()#2}::"
        "operator()() const::{lambda(bool, c10::Half, c10::Half)#1}, std::array<char*, 4ul> >(int)",
        "vectorized_elementwise_kernel [where f16]",
    ),
    Rule(
        r"\b(?P<operation>index|flip|roll|index_put)_kernel_impl<OpaqueType<(?P<bytes>\d+)>",
        "{operation} {bytes} bytes",
        f"void {_AT}index_elementwise_kernel<128, 4, {_AT}gpu_index_kernel<{_AT}"
        f"index_kernel_impl<{_AT}OpaqueType<2> >({_TIB}, c10::ArrayRef<long>)::"
        f"{{lambda(char*, char const*, long)#1}}>({_TIB})::{{lambda(int)#1}}>(long)",
        "index_elementwise_kernel [index 2 bytes]",
    ),
    Rule(
        r"\bOpaqueType<(?P<bytes>\d+)u?>, unsigned int, \d+, \d+, \d+",
        "{bytes} bytes",
        f"void {_AT}(anonymous namespace)::CatArrayBatchedCopy<{_AT}(anonymous namespace)::"
        "OpaqueType<2u>, unsigned int, 4, 64, 64>(int)",
        "CatArrayBatchedCopy [2 bytes]",
    ),
    Rule(
        r"\b_cuda_scatter_(?P<operation>gather)_internal_kernel<false, OpaqueType<(?P<bytes>\d+)>",
        "{operation} {bytes} bytes",
        f"void {_AT}_scatter_gather_elementwise_kernel<128, 8, {_AT}"
        f"_cuda_scatter_gather_internal_kernel<false, {_AT}OpaqueType<2>, long>::operator()<{_AT}"
        "TensorAssign>(at::TensorIterator&)::{lambda(int)#1}>(int)",
        "_scatter_gather_elementwise_kernel [gather 2 bytes]",
    ),
    Rule(
        r"\b_cuda_(?P<operation>scatter)_gather_internal_kernel<true, OpaqueType<(?P<bytes>\d+)>",
        "{operation} {bytes} bytes",
        f"void {_AT}_scatter_gather_elementwise_kernel<128, 8, {_AT}"
        f"_cuda_scatter_gather_internal_kernel<true, {_AT}OpaqueType<8>, long>::operator()<{_AT}"
        "TensorAssign>(at::TensorIterator&)::{lambda(int)#1}>(int)",
        "_scatter_gather_elementwise_kernel [scatter 8 bytes]",
    ),
    # Optimizers over lists of tensors
    Rule(
        r"TensorList\w*Metadata<[\w, ]+>, \w+OpList\w*Functor<(?P<dtype>[\w ]+)[\w, ]*>, "
        r"(?P<operation>[a-z]\w+)<",
        "{operation} lists {dtype}",
        f"void {_AT}(anonymous namespace)::multi_tensor_apply_kernel<{_AT}(anonymous namespace)::"
        f"TensorListMetadata<2>, {_AT}(anonymous namespace)::BinaryOpListAlphaFunctor<float, 2, 2, "
        "0>, std::plus<float>, float>(int)",
        "multi_tensor_apply_kernel [add lists f32]",
    ),
    Rule(
        r"TensorList\w*Metadata<[\w, ]+>, PointwiseOp\w*Functor<(?P<dtype>[\w ]+)[\w, ]*>, "
        r"(?P<operation>[a-z]\w+)<",
        "addc{operation} {dtype}",
        f"void {_AT}(anonymous namespace)::multi_tensor_apply_kernel<{_AT}(anonymous namespace)::"
        f"TensorListMetadata<3>, {_AT}(anonymous namespace)::PointwiseOpScalarFunctor<float, 3, 3, "
        "0>, std::multiplies<float>, float>(int)",
        "multi_tensor_apply_kernel [addcmul f32]",
    ),
    Rule(
        r"TensorList\w*Metadata<[\w, ]+>, \w+Op(?:Scalar\w*)?Functor<(?P<dtype>[\w ]+)[\w, ]*>, "
        r"(?P<operation>[A-Za-z]\w*?)(?:Functor)?<",
        "{operation} {dtype}",
        f"void {_AT}(anonymous namespace)::multi_tensor_apply_kernel<{_AT}(anonymous namespace)::"
        f"TensorListMetadata<2>, {_AT}(anonymous namespace)::UnaryOpFunctor<float, 2, 1, 1>, {_AT}"
        "Sqrt<float> >(int)",
        "multi_tensor_apply_kernel [sqrt f32]",
    ),
    Rule(
        r"TensorList\w*Metadata<\d+>, (?P<operation>\w+?)Functor<(?P<dtype>[\w ]+)",
        "{operation} {dtype}",
        f"void {_AT}(anonymous namespace)::multi_tensor_apply_kernel<{_AT}(anonymous namespace)::"
        f"FusedOptimizerTensorListMetadata<4>, {_AT}(anonymous namespace)::FusedAdamMathFunctor"
        f"<float, 4, ({_AT}ADAM_MODE)1, false>, float const*, double>(int)",
        "multi_tensor_apply_kernel [fused_adam f32]",
    ),
    # Reductions
    Rule(
        r"\bfunc_wrapper_t<(?P<dtype>[\w ]+), (?P<operation>sum|prod|nansum)_functor<",
        "{operation} {dtype}",
        f"void {_AT}reduce_kernel<128, 4, {_AT}ReduceOp<c10::BFloat16, {_AT}func_wrapper_t<"
        f"c10::BFloat16, {_AT}sum_functor<c10::BFloat16, float, c10::BFloat16>::operator()"
        "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, c10::BFloat16, 4, 8> >"
        "(int)",
        "reduce_kernel [sum bf16]",
    ),
    Rule(
        r"\bReduceOp<(?P<dtype>[\w ]+), (?P<operation>\w+?)Ops<",
        "{operation} {dtype}",
        f"void {_AT}reduce_kernel<512, 1, {_AT}ReduceOp<c10::Half, {_AT}ArgMaxOps<float>, "
        "unsigned int, long, 4, 4> >(int)",
        "reduce_kernel [argmax f16]",
    ),
    Rule(
        r"\bReduceOp<(?P<dtype>[\w ]+), func_wrapper_t<[\w ]+, "
        r"(?P<operation>\w+?)(?:_kernel_\w+\(|Functor<)",
        "{operation} {dtype}",
        f"void {_AT}reduce_kernel<512, 1, {_AT}ReduceOp<float, {_AT}func_wrapper_t<float, {_AT}"
        "MaxNanFunctor<float> >, unsigned int, float, 4, 4> >(int)",
        "reduce_kernel [amax f32]",
    ),
    # Elementwise functors
    Rule(
        r"\bFillFunctor<(?P<dtype>[^>]+)>",
        "fill {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<4, {_AT}FillFunctor<unsigned char>, "
        "std::array<char*, 1ul> >(int)",
        "vectorized_elementwise_kernel [fill u8]",
    ),
    Rule(
        r"\bCUDAFunctorOn(?:Self|Other)_(?P<operation>\w+)<(?P<dtype>[^>]+)>",
        "{operation} scalar {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<2, {_AT}CUDAFunctorOnSelf_add<long>, "
        "std::array<char*, 2ul> >(int)",
        "vectorized_elementwise_kernel [add scalar i64]",
    ),
    Rule(
        r"\bCUDAFunctor_(?P<operation>\w+)<(?P<dtype>[^>]+)>",
        "{operation} {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<8, {_AT}CUDAFunctor_add<c10::BFloat16>, "
        "std::array<char*, 3ul> >(int)",
        "vectorized_elementwise_kernel [add bf16]",
    ),
    Rule(
        r"\bBinaryFunctor<(?P<dtype>[\w ]+), [\w ]+, [\w ]+, "
        r"(?P<operation>\w+?)(?:Functor<|_kernel_impl<|_kernel_cuda\()",
        "{operation} {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<4, {_AT}BinaryFunctor<float, float, float, "
        f"{_AT}binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)",
        "vectorized_elementwise_kernel [mul f32]",
    ),
    Rule(
        r"\b[AB]UnaryFunctor<(?P<dtype>[\w ]+), [\w ]+, [\w ]+, "
        r"(?P<operation>\w+?)(?:Functor<|_kernel_impl<|_kernel_cuda\()",
        "{operation} scalar {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<8, {_AT}AUnaryFunctor<c10::BFloat16, "
        f"c10::BFloat16, c10::BFloat16, {_AT}binary_internal::MulFunctor<float> >, "
        "std::array<char*, 2ul> >(int)",
        "vectorized_elementwise_kernel [mul scalar bf16]",
    ),
    Rule(
        r"^(?P<dtype>[\w ]+), \d+, (?:\w+<[\w ]+, [\w ]+, CUDAGeneratorImpl\*, )?"
        r"(?P<operation>\w+?)_kernel<CUDAGeneratorImpl\*",
        "{operation} {dtype}",
        f"void {_AT}(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, "
        f"{_AT}templates::cuda::normal_and_transform<float, float, at::CUDAGeneratorImpl*, {_AT}"
        "templates::cuda::normal_kernel<at::CUDAGeneratorImpl*>(at::TensorBase const&, double)"
        "::{lambda()#1}>::{lambda(int, float)#1}>(int)",
        "distribution_elementwise_grid_stride_kernel [normal f32]",
    ),
    Rule(
        r"\b(?:launch_)?(?P<operation>[a-z]\w*?)(?:_kernel_impl|_kernel_cuda|_cuda_out|_cuda_kernel"
        r"|_scalar|_kernel)(?:<[^()]*>)?\(",
        "{operation} {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<4, {_AT}tanh_backward_kernel_cuda({_TIB})::"
        "{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::"
        "{lambda(float, float)#1}, std::array<char*, 3ul> >(int)",
        "vectorized_elementwise_kernel [tanh_backward f32]",
    ),
    Rule(
        r"\b(?P<operation>[A-Z]\w*?)(?:CUDA)?Kernel(?:CUDA)?Impl(?:Internal)?(?:<[^()]*>)?\(",
        "{operation} {dtype}",
        f"void {_AT}vectorized_elementwise_kernel<8, {_AT}GeluCUDAKernelImpl({_TIB}, "
        f"{_AT}GeluType)::{{lambda()#2}}::operator()() const::{{lambda()#3}}::operator()() const::"
        "{lambda(c10::Half)#1}, std::array<char*, 2ul> >(int)",
        "vectorized_elementwise_kernel [gelu f16]",
    ),
    Rule(
        r"\b(?P<operation>[a-z]\w+)\([^()]*\)::\{lambda",
        "{operation} {dtype}",
        f"void {_AT}(anonymous namespace)::unrolled_elementwise_kernel_for_multi_outputs<3, {_AT}"
        "(anonymous namespace)::batch_norm_update_stats_and_invert(at::Tensor const&, double)::"
        "{lambda()#1}::operator()() const::{lambda()#2}::operator()() const::"
        "{lambda(float, float)#1}, std::array<char*, 7ul> >(int)",
        "unrolled_elementwise_kernel_for_multi_outputs [batch_norm_update_stats_and_invert f32]",
    ),
)
"""Rules for the template arguments, without their namespaces; they match anywhere."""
