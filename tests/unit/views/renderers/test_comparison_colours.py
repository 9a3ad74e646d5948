"""The colours of verdicts on the pages that show them."""

import re

from epprof_nb.analysis.compare.compare_sides import compare
from epprof_nb.views.renderers.comparison_output import as_html
from tests.helpers.repeated import repeated

RULE = re.compile(r"([^{}]*)\.epprof-compare \.epprof-(slower|faster)\{color:(#\w{6})")


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def test_verdicts_are_legible_on_light_and_dark_pages():
    result = compare([repeated({"a": 1_000_000})], [repeated({"a": 2_000_000})])
    found = {(page.strip(), name): colour for page, name, colour in RULE.findall(as_html(result))}
    pages = {"": "#ffffff", '[data-jp-theme-light="false"]': "#111111", ".vscode-dark": "#1f1f1f"}
    assert found.keys() == {(page, name) for page in pages for name in ("slower", "faster")}
    for (page, _), colour in found.items():
        assert contrast(colour, pages[page]) >= 4.5
