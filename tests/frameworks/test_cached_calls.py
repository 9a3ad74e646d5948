"""Prefill and decode of models that are called with a KV cache, in loops written by hand."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

VOCABULARY, WIDTH, HEADS, LAYERS = 50, 16, 2, 3
BYTES_PER_TOKEN = 2 * LAYERS * WIDTH * 4


class GrowingCache:
    """Keys and values of each layer, longer after each call."""

    def __init__(self):
        self.layers = [None] * LAYERS

    def add(self, layer, keys, values):
        held = self.layers[layer]
        if held is not None:
            keys, values = (torch.cat(pair, 2) for pair in zip(held, (keys, values), strict=True))
        self.layers[layer] = keys, values
        return keys, values


class FixedCache:
    """Keys and values in buffers, and a number in host memory that says how many."""

    def __init__(self, batch, longest, device="cpu"):
        shape = (batch, HEADS, longest, WIDTH // HEADS)
        self.buffers = torch.zeros(LAYERS, 2, *shape, device=device)
        self.length = 0

    def add(self, layer, keys, values):
        end = self.length + keys.shape[2]
        buffer = self.buffers[layer]
        buffer[0, :, :, self.length : end], buffer[1, :, :, self.length : end] = keys, values
        if layer == LAYERS - 1:
            self.length = end
        return buffer[0, :, :, :end], buffer[1, :, :, :end]


class Tuples:
    """Caches of older models: a new tuple from each call."""

    def __init__(self, past):
        self.past, self.present = past, []

    def add(self, layer, keys, values):
        if self.past is not None:
            keys = torch.cat([self.past[layer][0], keys], 2)
            values = torch.cat([self.past[layer][1], values], 2)
        self.present.append((keys, values))
        return keys, values


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x, cache, number):
        heads = self.project(x).reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
        query, keys, values = heads.permute(2, 0, 3, 1, 4)
        keys, values = cache.add(number, keys, values)
        mixed = nn.functional.scaled_dot_product_attention(query, keys, values)
        return x + mixed.transpose(1, 2).reshape(x.shape)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids, cache):
        x = self.embedding(ids)
        for number, layer in enumerate(self.layers):
            x = layer(x, cache, number)
        return x @ self.embedding.weight.T


class TupleDecoder(Decoder):
    def forward(self, input_ids, past_key_values=None):
        cache = Tuples(past_key_values)
        return super().forward(input_ids, cache), tuple(cache.present)


def greedy(model, cache, ids, steps):
    for _ in range(steps):
        ids = model(ids, cache)[:, -1:].argmax(-1)


def prompt(length=7, batch=1, device="cpu"):
    return torch.zeros(batch, length, dtype=torch.int64, device=device)


def shown(prof, *columns):
    names = ["generation", "phase", *(columns or ("calls", "tokens", "past_tokens"))]
    return list(prof.by_phase()[names].itertuples(index=False, name=None))


def expected(length, steps, generation=0, past=0):
    return [
        (generation, "prefill", 1, length, past),
        (generation, "decode", steps - 1, steps - 1, past + length),
    ]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Decoder().eval()


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("kind", ["growing", "fixed"])
def test_a_greedy_loop(model, kind, batch):
    cache = GrowingCache() if kind == "growing" else FixedCache(batch, 32)
    with epprof_nb.profile() as prof:
        greedy(model, cache, prompt(7, batch), 6)
    assert shown(prof) == expected(7, 6)
    frame = prof.by_phase()
    assert frame["model"].tolist() == ["Decoder"] * 2
    assert frame["batch"].tolist() == [batch] * 2
    held = [7, 12] if kind == "growing" else [32, 32]
    assert frame["cache_bytes"].tolist() == [batch * n * BYTES_PER_TOKEN for n in held]


def test_the_loop_of_a_module_around_the_model(model):
    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, ids):
            greedy(self.model, GrowingCache(), ids, 4)

    generator = Generator()
    with epprof_nb.profile() as prof:
        generator(prompt())
    assert shown(prof) == expected(7, 4)
    assert prof.by_phase()["model"].tolist() == ["Generator.model"] * 2


@pytest.mark.parametrize("name", ["past_key_values", "kv_cache", "memory"])
def test_the_cache_may_be_any_argument(name):
    scope = {"Decoder": Decoder}
    exec(  # the name is part of the signature
        "class Named(Decoder):\n"
        f"    def forward(self, ids, *, {name}=None, scale=1.0):\n"
        f"        return super().forward(ids, {name})\n",
        scope,
    )
    model, cache, ids = scope["Named"](), GrowingCache(), prompt()
    with epprof_nb.profile() as prof:
        for _ in range(3):
            ids = model(ids, **{name: cache}, scale=2.0)[:, -1:].argmax(-1)
    assert shown(prof) == expected(7, 3)


def test_tuples_of_older_models():
    model, ids, past = TupleDecoder(), prompt(5, 2), None
    with epprof_nb.profile() as prof:
        for _ in range(4):
            logits, past = model(ids, past_key_values=past)
            ids = logits[:, -1:].argmax(-1)
    assert shown(prof) == expected(5, 4)
    assert prof.by_phase()["cache_bytes"].tolist() == [2 * n * BYTES_PER_TOKEN for n in (5, 8)]


def test_a_call_whose_cache_nobody_uses_is_no_prefill():
    model = TupleDecoder()
    with epprof_nb.profile() as prof:
        model(prompt())
    assert prof.by_phase().empty


def test_a_prompt_in_chunks(model):
    cache = GrowingCache()
    with epprof_nb.profile() as prof:
        for length in (4, 4, 2):
            model(prompt(length), cache)
        greedy(model, cache, prompt(1), 3)
    assert shown(prof) == [(0, "prefill", 3, 10, 0), (0, "decode", 3, 3, 10)]


@pytest.mark.parametrize("length", [5, 20])
def test_a_cache_that_is_emptied_for_the_next_prompt(model, length):
    cache = FixedCache(1, 64)
    with epprof_nb.profile() as prof:
        for _ in range(2):
            greedy(model, cache, prompt(length), 4)
            cache.length = 0
    assert shown(prof) == expected(length, 4) + expected(length, 4, generation=1)


def test_the_next_turn_of_a_chat(model):
    cache = GrowingCache()
    with epprof_nb.profile() as prof:
        greedy(model, cache, prompt(7), 4)
        greedy(model, cache, prompt(20), 4)
    assert shown(prof) == expected(7, 4) + expected(20, 4, generation=1, past=10)


@pytest.mark.parametrize("kind", ["growing", "fixed"])
def test_a_cache_from_before_the_profile(model, kind):
    cache = GrowingCache() if kind == "growing" else FixedCache(1, 32)
    greedy(model, cache, prompt(7), 4)
    with epprof_nb.profile() as prof:
        greedy(model, cache, prompt(1), 3)
    assert shown(prof) == [(0, "decode", 3, 3, 10)]


def test_beams_with_a_cache_each(model):
    caches = [GrowingCache() for _ in range(3)]
    with epprof_nb.profile() as prof:
        for ids in (prompt(7), prompt(1), prompt(1)):
            for cache in caches:
                model(ids, cache)
    assert shown(prof) == [row for i in range(3) for row in expected(7, 3, generation=i)]


def test_speculative_decoding(model):
    """The draft model proposes four tokens, of which the other one accepts two."""
    draft, proposals, steps = Decoder(), 4, 3
    ours, theirs = FixedCache(1, 64), FixedCache(1, 64)
    with epprof_nb.profile() as prof:
        model(prompt(9), ours)
        draft(prompt(9), theirs)
        for _ in range(steps):
            greedy(draft, theirs, prompt(1), proposals)
            model(prompt(proposals + 1), ours)
            theirs.length = ours.length = ours.length - 2
    assert shown(prof) == [
        (0, "prefill", 1, 9, 0),
        (0, "decode", steps, 5 * steps, 9),
        (1, "prefill", 1, 9, 0),
        (1, "decode", 4 * steps, 4 * steps, 9),
    ]


def test_calls_of_a_draft_model_are_not_joined_to_those_of_the_target():
    """Caches in tuples, which both models make anew and cut to the same lengths."""
    draft, target = TupleDecoder(), TupleDecoder()

    def cut(past, end):
        return tuple((k[:, :, :end], v[:, :, :end]) for k, v in past)

    with torch.no_grad(), epprof_nb.profile() as prof:
        _, ours = target(prompt(9))
        _, theirs = draft(prompt(9))
        for i in range(3):
            for _ in range(4):
                _, theirs = draft(prompt(1), theirs)
            _, ours = target(prompt(5), ours)
            ours, theirs = cut(ours, 12 + 3 * i), cut(theirs, 12 + 3 * i)
    rows = [row[1:4] for row in shown(prof)]
    assert ("decode", 3, 15) in rows
    assert rows.count(("prefill", 1, 9)) == 2
    assert sum(calls for phase, calls, _ in rows if phase == "decode") == 3 + 12


def test_proposals_are_taken_back_in_another_cache(model):
    """The first proposals are all accepted, and no call processes a single token."""
    cache = GrowingCache()
    with epprof_nb.profile() as prof:
        model(prompt(15), cache)
        for wrong in (0, 0, 2, 1):
            model(prompt(5), cache)
            end = cache.layers[0][0].shape[2] - wrong
            shorter = GrowingCache()
            shorter.layers = [(k[:, :, :end], v[:, :, :end]) for k, v in cache.layers]
            cache = shorter
    assert shown(prof) == [(0, "prefill", 1, 15, 0), (0, "decode", 4, 20, 15)]


def test_branches_of_a_search_continue_copies_of_a_cache(model):
    cache = GrowingCache()
    with torch.no_grad(), epprof_nb.profile() as prof:
        model(prompt(9), cache)
        for _ in range(3):
            greedy(model, deepcopy(cache), prompt(1), 4)
    frame = prof.by_phase()
    assert frame["phase"].tolist() == ["prefill"] + ["decode"] * 3
    assert frame["past_tokens"].tolist() == [0, 9, 9, 9]


def reordered(past):
    return tuple((k[[0, 0, 1]], v[[0, 0, 1]]) for k, v in past)


def cut(past):
    return tuple((k[:, :, -8:].clone(), v[:, :, -8:].clone()) for k, v in past)


@pytest.mark.parametrize("changed", [reordered, cut])
def test_a_loop_that_changes_the_tuples(changed):
    model, past, ids = TupleDecoder(), None, prompt(9, 3)
    with torch.no_grad(), epprof_nb.profile() as prof:
        for _ in range(6):
            logits, past = model(ids, past)
            ids, past = logits[:, -1:].argmax(-1), changed(past)
    held = 8 if changed is cut else 9
    assert shown(prof) == [(0, "prefill", 1, 9, 0), (0, "decode", 5, 5, held)]


def test_the_prompt_of_a_search_has_one_sequence():
    model, ids = TupleDecoder(), prompt(1, 3)
    with torch.no_grad(), epprof_nb.profile() as prof:
        _, past = model(prompt(9))
        past = tuple((k.repeat(3, 1, 1, 1), v.repeat(3, 1, 1, 1)) for k, v in past)
        for _ in range(4):
            _, past = model(ids, past)
            past = reordered(past)
    assert shown(prof, "batch", "tokens") == [(0, "prefill", 1, 9), (0, "decode", 3, 4)]


def test_keys_and_values_in_two_lists_or_stacked():
    class Lists(TupleDecoder):
        def forward(self, ids, k_cache=None, v_cache=None):
            pairs = None if k_cache is None else list(zip(k_cache, v_cache, strict=True))
            logits, past = super().forward(ids, pairs)
            return logits, [keys for keys, _ in past], [values for _, values in past]

    class Stacked(TupleDecoder):
        def forward(self, ids, past=None):
            logits, made = super().forward(ids, past)
            return logits, torch.stack([torch.stack(pair) for pair in made])

    for model in (Lists(), Stacked()):
        caches, ids = (), prompt(7)
        with torch.no_grad(), epprof_nb.profile() as prof:
            for _ in range(5):
                logits, *caches = model(ids, *caches)
                ids = logits[:, -1:].argmax(-1)
        assert shown(prof) == expected(7, 5)


def test_a_window_into_the_cache_of_a_prompt_that_ran_before():
    model, past, ids = TupleDecoder(), None, prompt(9)
    with torch.no_grad(), epprof_nb.profile() as prof:
        unused = model(ids)
        for _ in range(4):
            logits, past = model(ids, past)
            ids = logits[:, -1:].argmax(-1)
            past = tuple((k[:, :, -8:], v[:, :, -8:]) for k, v in past)
    assert shown(prof) == [(0, "prefill", 1, 9, 0), (0, "decode", 3, 3, 8)]
    assert unused is not None


def test_windows_of_generations_that_alternate_are_in_no_row():
    model = TupleDecoder()
    with torch.no_grad(), epprof_nb.profile() as prof:
        pasts = [cut(model(prompt(9))[1]) for _ in range(2)]
        for _ in range(3):
            pasts = [cut(model(prompt(1), past)[1]) for past in pasts]
    frame = prof.by_phase()
    assert "6 calls" in frame.attrs["note"]
    assert len(frame) == 0


def test_calls_of_two_threads(model):
    from threading import Barrier, Thread

    barrier = Barrier(2)

    def generate(length):
        cache, ids = GrowingCache(), prompt(length)
        for _ in range(4):
            barrier.wait(60)
            ids = model(ids, cache)[:, -1:].argmax(-1)

    with epprof_nb.profile() as prof:
        threads = [Thread(target=generate, args=(length,)) for length in (5, 8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    frame = prof.by_phase()
    assert frame["calls"].tolist() == [1, 3, 1, 3]
    assert sorted(frame["tokens"][::2]) == [5, 8]


@pytest.mark.parametrize("wrapped", ["compiled", "parallel"])
def test_models_in_a_wrapper(wrapped):
    model = TupleDecoder()
    wrapper = (
        torch.compile(model, backend="eager", dynamic=True)
        if wrapped == "compiled"
        else nn.DataParallel(model)
    )
    ids, past = prompt(5), None
    wrapper(ids, past_key_values=None)
    with epprof_nb.profile() as prof:
        for _ in range(3):
            logits, past = wrapper(ids, past_key_values=past)
            ids = logits[:, -1:].argmax(-1)
    assert shown(prof) == expected(5, 3)


def test_layers_with_a_cache_of_their_model_are_no_models(model):
    class Private(nn.Module):
        """A model whose callers do not see its cache."""

        def __init__(self):
            super().__init__()
            self.decoder, self.cache = model, GrowingCache()

        def forward(self, ids):
            x = self.decoder.embedding(ids)
            for number, layer in enumerate(self.decoder.layers):
                x = layer(x, self.cache, number)
            return x

    private = Private()
    with epprof_nb.profile() as prof:
        private(prompt())
        private(prompt(1))
    frame = prof.by_phase()
    assert frame.empty
    assert "epprof_nb.phase" in frame.attrs["note"]


def test_an_error_in_a_call_leaves_it_out(model):
    cache = GrowingCache()
    with epprof_nb.profile() as prof:
        model(prompt(7), cache)
        with pytest.raises(IndexError):
            model(prompt(1) + VOCABULARY, cache)
        greedy(model, cache, prompt(1), 2)
    assert shown(prof) == [(0, "prefill", 1, 7, 0), (0, "decode", 2, 2, 7)]


@dataclass
class Odd:
    """A cache whose attributes raise."""

    layers: object = None

    @property
    def shape(self):
        raise RuntimeError("no")


def test_caches_of_any_kind_raise_nothing():
    class Takes(nn.Module):
        def forward(self, ids, cache=None):
            return ids

    model = Takes()
    loop = []
    loop.append(loop)
    with epprof_nb.profile():
        for cache in (Odd(), Odd(layers=loop), loop, {}, {"a": {1: None}}, object(), len, "x", 3):
            assert model(prompt(), cache) is not None


class Ops(TorchDispatchMode):
    """The operators that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["growing", "fixed"])
def test_nothing_is_read_from_a_device(model, kind):
    """Tensors on the meta device have no values, and no operator runs but the model's own."""

    def generate():
        device = "meta"
        cache = GrowingCache() if kind == "growing" else FixedCache(2, 32, device)
        with Ops() as ops:
            positions = torch.arange(7, device=device)
            for ids in (prompt(7, 2, device), *[prompt(1, 2, device)] * 3):
                placed(ids, cache, cache_position=positions)
                positions = positions[-1:] + 1
        return ops.names

    class Placed(Decoder):
        def forward(self, ids, cache, cache_position):
            return super().forward(ids, cache)

    placed = Placed().to("meta")
    plain = generate()
    with epprof_nb.profile() as prof:
        assert generate() == plain
    assert shown(prof) == expected(7, 4)


def test_a_buffer_without_a_number_in_host_memory(model):
    """The tokens are counted; a long prompt afterwards may continue or not."""

    class Buffers(FixedCache):
        @property
        def length(self):
            return int(self.on_device[0])

        @length.setter
        def length(self, value):
            self.on_device = torch.tensor([value, 0])

    cache = Buffers(1, 64)
    with epprof_nb.profile() as prof:
        greedy(model, cache, prompt(7), 4)
        cache.length = 0
        greedy(model, cache, prompt(20), 4)
    frame = prof.by_phase()
    assert frame["past_tokens"].isna().tolist() == [False, False, True, True]
    assert frame["past_tokens"].tolist()[:2] == [0, 7]
    assert frame["tokens"].tolist() == [7, 3, 20, 3]
    cache = Buffers(1, 64)
    with epprof_nb.profile() as prof:
        greedy(model, cache, prompt(7), 4)
        cache.length = 0
        cache.buffers.zero_()
        greedy(model, cache, prompt(20), 4)
    assert shown(prof) == expected(7, 4) + expected(20, 4, generation=1)
