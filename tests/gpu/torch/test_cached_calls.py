"""Loops around models with a KV cache on the GPU: their phases, without a look at the device."""

import pytest

import epprof_nb
from tests.frameworks import test_cached_calls as on_cpu

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

STEPS, PROMPT = 12, 48


def generate(model, kind):
    """A greedy loop that never waits for the device."""
    cache = on_cpu.GrowingCache() if kind == "growing" else on_cpu.FixedCache(2, 96, "cuda")
    on_cpu.greedy(model, cache, on_cpu.prompt(PROMPT, 2, "cuda"), STEPS)


@pytest.mark.parametrize("kind", ["growing", "fixed"])
def test_phases_are_found_without_synchronizing(kind):
    model = on_cpu.Decoder().cuda().eval()
    with torch.no_grad():
        generate(model, kind)
        with epprof_nb.profile(frameworks=[], detail="api") as without:
            generate(model, kind)
        with epprof_nb.profile(detail="api") as prof:
            torch.cuda.set_sync_debug_mode("error")
            try:
                generate(model, kind)
            finally:
                torch.cuda.set_sync_debug_mode("default")
    assert on_cpu.shown(prof) == on_cpu.expected(PROMPT, STEPS)
    frame = prof.by_phase()
    assert (frame["device_ns"] > 0).all()
    assert (frame["idle_ns"] <= frame["wall_ns"]).all()
    waits, copies = (
        [p.api_calls["name"].astype(str).str.contains(words).sum() for p in (without, prof)]
        for words in ("Synchronize", "Memcpy")
    )
    assert waits[0] == waits[1]
    assert copies[0] == copies[1]


def test_captured_decoding_is_marked():
    model = on_cpu.Decoder().cuda().eval()
    with torch.no_grad():
        generate(model, "growing")
        cache, ids = on_cpu.FixedCache(1, 64, "cuda"), on_cpu.prompt(1, 1, "cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(ids, cache)
        with epprof_nb.profile() as prof:
            for _ in range(8):
                with epprof_nb.phase("decode", 1):
                    graph.replay()
            torch.cuda.synchronize()
    assert on_cpu.shown(prof, "calls", "tokens") == [(0, "decode", 8, 8)]
    assert prof.by_phase()["device_ns"].sum() > 0
