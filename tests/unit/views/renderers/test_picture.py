"""The static picture: its pixels, and packages that it does not import."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from epprof_nb.testing import synthetic_profile
from epprof_nb.util import palette
from epprof_nb.views.renderers import pixel_canvas
from epprof_nb.views.renderers import png as png_renderer
from epprof_nb.views.renderers.pixel_canvas import Canvas, blend, fit, text_width
from epprof_nb.views.renderers.png import as_png, as_pngs
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import activity, kernel, line, op, profile


def image(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png))


def rgb(png: bytes, page: str = "#ffffff"):
    """Pixels of a picture on a page."""
    drawn = image(png).convert("RGBA")
    below = Image.new("RGBA", drawn.size, page)
    below.alpha_composite(drawn)
    return np.asarray(below.convert("RGB"))


BUSY = "#4095c5"
"""The shade of `palette.KERNEL` that says when the device was busy, on white."""


def spans(pixels, colour: str) -> set[tuple[int, int]]:
    """First and last + 1 column of each run of a colour, of all rows of pixels."""
    wanted = (pixels == [int(colour[i : i + 2], 16) for i in (1, 3, 5)]).all(axis=2)
    found = set()
    for row in np.unique(wanted, axis=0):
        edges = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
        found |= set(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    return found


@pytest.mark.parametrize("ops", [[], [line(1, 1, 0, 784)]], ids=["empty", "host only"])
def test_a_profile_without_a_device_is_never_busy(ops):
    pixels = rgb(as_png(ViewModel(profile(ops, info={"wall_ns": 784}))))
    assert spans(pixels, BUSY) == set()


def test_events_are_drawn_where_their_times_say():
    work = profile(
        [line(1, 1, 0, 784), op(2, "", 100, 600, 1)],
        [kernel(200, 400, 2), kernel(500, 700, 2), activity("memcpy", 300, 650, 1, stream_id=9)],
        info={"wall_ns": 784},
    )
    pixels = rgb(as_png(ViewModel(work)))
    left = 164  # one pixel per nanosecond
    assert {(left + 200, left + 400), (left + 500, left + 700)} <= spans(pixels, palette.KERNEL)
    assert spans(pixels, palette.COPY) == {(left + 300, left + 650)}
    # An op is separated from the next one by a pixel.
    assert (left + 100, left + 599) in spans(pixels, palette.OPS[1])
    # Busy from the first start to the last end.
    assert spans(pixels, BUSY) == {(left + 200, left + 700)}


def test_a_rectangle_of_several_events_is_fainter_the_more_of_it_is_idle():
    starts = range(0, 1_000_000, 100)
    work = profile([], [kernel(start, start + 20) for start in starts], info={"wall_ns": 10**6})
    pixels = rgb(as_png(ViewModel(work)))
    assert not spans(pixels[:-30], palette.KERNEL)  # the bars are below
    colours = {tuple(colour) for colour in pixels.reshape(-1, 3).tolist()}
    # Pillow rounds down.
    red, green, blue = bytes.fromhex(blend(palette.KERNEL, 0.35 + 0.65 / 4)[1:])
    assert any(np.abs(np.subtract(colour, (red, green, blue))).max() <= 1 for colour in colours)


def test_the_picture_has_a_palette_and_is_small():
    png = as_png(ViewModel(synthetic_profile(activities=15_000)))
    assert image(png).mode == "P"
    assert image(png).width == 960
    assert len(png) < 20_000


def test_text_blends_with_what_is_below_it():
    drawn = Canvas(120, 30)
    drawn.rectangle(60, 0, 60, 30, "#c9e0f0")
    drawn.text(2, 15, "MMMMMMMMMMMMMM", 12, "#000000")
    pixels = rgb(drawn.png())[10:20, :110]
    for half, below in ((pixels[:, :60], 0xFF), (pixels[:, 60:], 0xC9)):
        assert half.min() == 0
        shades = np.unique(half[..., 0])
        assert len(shades) > 3
        assert shades.max() == below


def luminance(colours):
    shares = np.asarray(colours, float) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_the_picture_is_the_same_on_a_light_and_on_a_dark_page():
    """JupyterLab's dark theme has pages of #111111; an untrusted output has no style of its own."""
    png = as_png(ViewModel(synthetic_profile(activities=3000)))
    light, dark = rgb(png), rgb(png, "#111111")
    assert (light == dark).all()
    # On a light page, nothing surrounds the texts.
    assert (light[:60] == 255).all(axis=2).mean() > 0.6
    for text in (palette.TEXT, png_renderer._FAINT):
        low = luminance(list(bytes.fromhex(text[1:])))
        assert 1.05 / (low + 0.05) >= 4.5
        assert (light == list(bytes.fromhex(text[1:]))).all(axis=2).any()


def test_the_picture_without_its_notes_is_the_rest_of_it():
    whole, body = map(rgb, as_pngs(ViewModel(synthetic_profile(activities=3000))))
    assert 20 < len(whole) - len(body) < 200
    assert (whole[len(whole) - len(body) :] == body).all()


def test_a_full_palette_loses_shades_of_text_only():
    drawn = Canvas(256, 20)
    for i in range(254):  # the background and the plate are colours, too
        drawn.rectangle(i, 0, 1, 20, f"#{i:02x}80ff")
    plain = rgb(drawn.png())
    drawn.text(0, 10, "text on many colours", 11, "#1b2430")
    pixels = rgb(drawn.png())
    assert (pixels[0] == plain[0]).all()
    assert (pixels != plain).any()


@pytest.mark.parametrize("text", ["short", "a much longer name of an op", "W" * 500, "", "\x00\n"])
def test_a_text_is_shortened_to_its_room(text):
    for width in (0, 5, 24, 90, 400):
        shown = fit(text, 11, width)
        assert text_width(shown, 11) <= width
        if shown and shown != text:
            assert "…" in shown or shown == " ".join(text.split())
    assert fit("short", 11, 400) == "short"


def test_the_font_has_the_signs_of_the_summary(monkeypatch):
    def drawn(text: str) -> bytes:
        return bytes(pixel_canvas._font(11).getmask(text))

    missing = drawn("\ue123")
    assert all(drawn(sign) != missing for sign in "µ·\N{MULTIPLICATION SIGN}…>")
    # Without Matplotlib's fonts and those of the system, Pillow's own font remains.
    pixel_canvas._font.cache_clear()
    monkeypatch.setattr(pixel_canvas, "find_spec", lambda _: None)
    monkeypatch.setattr(pixel_canvas, "_FONT", "no-such-font.ttf")
    assert text_width("stream 7", 11) > 20
    pixel_canvas._font.cache_clear()


def test_the_output_of_a_cell_imports_neither_matplotlib_nor_pandas():
    code = (
        "import sys; from epprof_nb.testing import synthetic_profile; "
        "profile = synthetic_profile(activities=2000); "
        "profile.info['repeats'] = [[0, 1_000_000], [1_000_000, 3_000_000]]; "
        "text = profile._repr_mimebundle_()['text/plain']; assert '2 repeats' in text, text; "
        "print({'matplotlib', 'pandas'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
