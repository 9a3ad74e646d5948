"""A small canvas for pictures of a profile: rectangles, text, and a PNG with a palette.

NumPy holds the colour of each pixel as a code, and Pillow draws the text and writes the file. This
is many times faster than a Matplotlib figure, which takes longer than the rest of the output of a
cell.

The background is white, because front ends that remove styles show the picture on a light or a dark
page, and no colour of text contrasts by 4.5 with both.
"""

from __future__ import annotations

import functools
import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from epprof_nb.util.format import shorten, with_glyphs

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray

_FONT = "DejaVuSans.ttf"
_SHADES = 4
"""Shades of antialiased text on each background."""
_MAX_COLOURS = 256
_PAPER = "#ffffff"


class Canvas:
    """A picture in colours of a palette; lengths are in pixels from the upper left corner.

    Parameters
    ----------
    width, height
        Size in pixels.

    Notes
    -----
    Colours are written as ``#rrggbb``.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._colours: dict[str, int] = {_PAPER: 0}
        self._pixels = np.zeros((height, width), np.uint8)
        self._text: dict[str, Image.Image] = {}

    def code(self, colour: str) -> int:
        """Return the code of a colour, for `paint`."""
        return self._colours.setdefault(colour, len(self._colours))

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Fill a rectangle, which is at least one pixel wide and high."""
        left, top = round(x), round(y)
        right, bottom = max(round(x + width), left + 1), max(round(y + height), top + 1)
        self._pixels[top:bottom, left:right] = self.code(colour)

    def paint(self, x: int, y: int, codes: npt.NDArray[np.uint8], where: BoolArray) -> None:
        """Copy colour codes to a rectangle of the shape of `codes` where the mask is True."""
        height, width = codes.shape
        np.copyto(self._pixels[y : y + height, x : x + width], codes, where=where)

    def text(
        self, x: float, y: float, text: str, size: int, colour: str, *, anchor: str = "lm"
    ) -> None:
        """Write a line of text; `anchor` as in Pillow, such as ``"lm"`` for left and middle."""
        mask = self._text.get(colour)
        if mask is None:
            mask = self._text[colour] = Image.new("L", (self.width, self.height))
        pen, shown = ImageDraw.Draw(mask), with_glyphs(text)
        pen.text((x, y), shown, 255, _font(size), anchor)

    def png(self, top: int = 0) -> bytes:
        """Return the picture as a PNG file, from row `top` of its pixels on."""
        pixels = self._pixels[top:].copy()
        palette: list[tuple[int, ...]] = [ImageColor.getrgb(colour) for colour in self._colours]
        for colour, mask in self._text.items():
            ink = np.asarray(mask)[top:].astype(np.uint16)
            rows, columns = np.nonzero(ink > 255 // (2 * _SHADES))
            shade = (ink[rows, columns] * _SHADES + 127) // 255
            keys = pixels[rows, columns] * np.uint16(_SHADES + 1) + shade
            used, position = np.unique(keys, return_inverse=True)
            new = np.empty(len(used), np.uint8)
            for i, key in enumerate(used.tolist()):
                below, share = palette[key // (_SHADES + 1)], key % (_SHADES + 1) / _SHADES
                mixed = _mixed(ImageColor.getrgb(colour), below, share)
                if mixed not in palette and len(palette) < _MAX_COLOURS:
                    palette.append(mixed)
                new[i] = _nearest(mixed, palette)
            pixels[rows, columns] = new[position]
        image = Image.fromarray(pixels)
        image.putpalette([channel for entry in palette for channel in entry])
        file = io.BytesIO()
        # Level 9 takes three times as long.
        image.save(file, "PNG", compress_level=8)
        return file.getvalue()


def blend(colour: str, share: float) -> str:
    """Return a colour that covers a share (0 to 1) of white, for the background of text."""
    mixed = _mixed(ImageColor.getrgb(colour), ImageColor.getrgb(_PAPER), share)
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _mixed(above: tuple[int, ...], below: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(round(a * share + b * (1 - share)) for a, b in zip(above, below, strict=True))


def _nearest(colour: tuple[int, ...], palette: list[tuple[int, ...]]) -> int:
    """Return the position of a colour in the palette, or of the most similar one."""
    if colour in palette:
        return palette.index(colour)
    return int((np.subtract(palette, colour) ** 2).sum(axis=1).argmin())


def text_width(text: str, size: int) -> float:
    """Return the width of a line of text in pixels."""
    return _font(size).getlength(with_glyphs(text))


def fit(text: str, size: int, width: float) -> str:
    """Shorten a text in the middle to at most `width` pixels; empty if nothing fits."""
    limit = min(len(text), int(width))  # visible characters are at least one pixel wide
    if limit == len(text) and text_width(text, size) <= width:
        return text
    while limit > 1:
        shown = shorten(text, limit)
        length = text_width(shown, size)
        if length <= width:
            return shown
        limit = min(limit - 1, int(len(shown) * width / length))
    return ""


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return Matplotlib's font; Pillow's own lacks some of the characters.

    Matplotlib is not imported, which would take longer than the picture.
    """
    spec = find_spec("matplotlib")
    folders = (spec and spec.submodule_search_locations) or ()
    for folder in folders:
        path = Path(folder) / "mpl-data" / "fonts" / "ttf" / _FONT
        if path.is_file():
            return ImageFont.truetype(path, size)
    try:
        return ImageFont.truetype(_FONT, size)  # among the fonts of the system
    except OSError:
        return ImageFont.load_default(size)
