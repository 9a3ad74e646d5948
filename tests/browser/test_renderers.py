"""WebGL2 and Canvas2D draw the same picture, to the nanosecond, and one steps in for the other."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view import View, write_html
from tests.browser.notebooks import LIVE, in_lab, notebook, run_all
from tests.browser.pixels import (
    COPY,
    KERNEL,
    RENDERERS,
    WHITE,
    click,
    drawn_by,
    lane_y,
    picture,
    pixel,
    ready,
    width,
    with_renderer,
    x_at,
)

pytestmark = pytest.mark.browser

MS, S = 1_000_000, 1_000_000_000
FAINTEST = 0.35  # opacity of what covers almost nothing of its rectangle

# Keeps the page's WebGL contexts where a test can lose them.
KEEP_CONTEXTS = """
  window.contexts = [];
  const getContext = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    const context = getContext.call(this, kind, ...rest);
    if (kind === "webgl2" && context && !contexts.includes(context)) contexts.push(context);
    return context;
  };
"""


def kernels(start, duration, length: int) -> Profile:
    """A profile of one cell `length` ns long, with these kernels on one stream."""
    start, duration = np.asarray(start, np.int64), np.asarray(duration, np.int64)
    count = len(start)
    ops = Table(
        OPS,
        {
            "op_id": np.array([1]),
            "parent_op_id": np.array([-1]),
            "name": CategoryColumn.of(["In[1]"]),
            "op_type": CategoryColumn.of(["cell"]),
            "category": CategoryColumn.of(["cell"]),
            "thread_id": np.array([77]),
            "start_ns": np.array([0]),
            "end_ns": np.array([length]),
            "duration_ns": np.array([length]),
            "count": np.ones(1, np.int64),
            "status": CategoryColumn.constant("complete", 1),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.constant("kernel", count),
            "name": CategoryColumn.constant("k", count),
            "device_id": np.zeros(count, np.int64),
            "stream_id": np.full(count, 7),
            "start_ns": start,
            "end_ns": start + duration,
            "duration_ns": duration,
            "correlation_id": np.arange(count),
            "op_id": np.ones(count, np.int64),
            "attribution": CategoryColumn.constant("stack", count),
            "thread_id": np.full(count, 77),
        },
    )
    info = {"wall_ns": length, "cell": "In[1]", "devices": [{"device_id": 0, "name": "GPU"}]}
    return Profile({"ops": ops, "activities": activities}, info, {})


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("activities", [300, 60_000])
def test_both_renderers_draw_the_same(shown, activities, theme):
    profile = synthetic_profile(activities=activities)
    one, other = (picture(shown(profile, name, theme=theme)) for name in RENDERERS)
    apart = np.abs(one - other).max(axis=2)
    # Only where kinds of different height share a pixel does the one show more of both.
    assert apart.mean() < 1.5
    assert (apart > 48).mean() < 0.015
    # Something is drawn at all: the lanes are not one colour.
    assert len(np.unique(one[60:].reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("renderer", RENDERERS)
def test_nanoseconds_stand_in_place_in_a_profile_of_ten_seconds(shown, renderer):
    # Around the middle, where the W key zooms: 3 ns, then 7 ns, in a window of 20.
    middle = 5 * S
    page = shown(kernels([middle - 5, middle + 1], [3, 7], 10 * S), renderer)
    page.mouse.move(0, 0)
    page.locator(".ep-timeline").focus()
    for _ in range(90):
        page.keyboard.press("w")
    page.wait_for_timeout(200)
    y = lane_y(page, "stream 7") + 6
    whole = width(page)

    def at(ns: float) -> tuple[int, int, int]:
        return pixel(page, whole * (ns + 10) / 20, y)

    for edge, inside in ((-5, 0.15), (-2, -0.15), (1, 0.15), (8, -0.15)):
        assert at(edge + inside) == KERNEL
        assert at(edge - inside) == WHITE
    assert at(-9) == at(-0.5) == at(9.5) == WHITE


@pytest.mark.parametrize("renderer", RENDERERS)
def test_dense_thin_events_are_as_faint_as_they_cover_little(shown, renderer):
    # 2 of every 10 us for the first half, nothing in the second, then one short kernel alone.
    start = [*range(0, 50 * MS, 10_000), 75 * MS]
    page = shown(kernels(start, [2_000] * len(start), 100 * MS), renderer)
    y = lane_y(page, "stream 7") + 4
    share = FAINTEST + (1 - FAINTEST) * 0.2
    expected = np.array(WHITE) + share * (np.array(KERNEL) - np.array(WHITE))
    for ms in (5, 20.3, 33.7, 45):
        assert np.abs(np.array(pixel(page, x_at(page, ms), y)) - expected).max() < 26
    assert pixel(page, x_at(page, 57.3), y) == WHITE
    # Alone, even what is far thinner than a pixel shows in full.
    near = [pixel(page, x_at(page, 75) + dx, y) for dx in (-1, 0, 1, 2)]
    assert min(red for red, _, _ in near) < 140
    assert WHITE in near


@pytest.mark.parametrize("renderer", RENDERERS)
def test_copies_are_hatched_and_kinds_differ_in_height(shown, profile, renderer):
    page = shown(profile, renderer)
    copies = lane_y(page, "stream 13")
    colours = {pixel(page, x_at(page, 84) + dx, copies + 2) for dx in range(12)}
    assert COPY in colours
    assert any(blue > 90 for _, _, blue in colours)  # the hatching's lines
    stream = lane_y(page, "stream 7")
    column = [pixel(page, x_at(page, 47), stream - 8 + dy) for dy in range(2, 18)]
    kernel = [pixel(page, x_at(page, 43), stream - 8 + dy) for dy in range(2, 18)]
    assert kernel.count(KERNEL) > 12
    assert WHITE in column[:6]  # a set leaves its row's upper part free


WEBGL_BY = """() => {
  const gl = document.createElement("canvas").getContext("webgl2");
  return gl.getParameter(gl.getExtension("WEBGL_debug_renderer_info").UNMASKED_RENDERER_WEBGL);
}"""


def test_webgl_is_chosen_where_a_gpu_draws_it_else_canvas2d(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    in_software = "SwiftShader" in page.evaluate(WEBGL_BY)
    assert drawn_by(page) == ("canvas2d" if in_software else "webgl")
    page.evaluate("document.documentElement.dataset.renderer = 'webgl'")
    click(page, 25, lane_y(page, "stream 7"))
    assert drawn_by(page) == "webgl"


@pytest.mark.parametrize("wish", [{"contrast": "more"}, {"forced_colors": "active"}])
@pytest.mark.parametrize("renderer", RENDERERS)
def test_high_contrast_has_colours_of_its_own(browser, page_file, tmp_path, renderer, wish):
    path = tmp_path / "page.html"
    path.write_text(with_renderer(page_file.read_text(), renderer))
    with browser.new_context(viewport={"width": 1100, "height": 760}, **wish) as context:
        page = context.new_page()
        page.goto(path.as_uri())
        ready(page)
        y = lane_y(page, "stream 7") + 6
        assert pixel(page, x_at(page, 43), y) == (0, 69, 124)
        # Asked for while the page is open, it comes at once.
        page.emulate_media(contrast="no-preference", forced_colors="none")
        page.wait_for_timeout(150)
        assert pixel(page, x_at(page, 43), y) == KERNEL


def test_a_lost_context_costs_no_picture(browser, profile, tmp_path):
    plain = tmp_path / "plain.html"
    write_html(profile, plain)
    path = tmp_path / "webgl.html"
    path.write_text(with_renderer(plain.read_text(), "webgl"))
    context = browser.new_context(viewport={"width": 1100, "height": 760})
    page = context.new_page()
    page.add_init_script(KEEP_CONTEXTS)
    page.goto(path.as_uri())
    ready(page)
    assert drawn_by(page) == "webgl"
    y = lane_y(page, "stream 7") + 6

    page.evaluate("window.lost = contexts[0].getExtension('WEBGL_lose_context')")
    page.evaluate("lost.loseContext()")
    page.wait_for_timeout(150)
    assert drawn_by(page) == "canvas2d"
    assert pixel(page, x_at(page, 22), y) == KERNEL
    assert pixel(page, x_at(page, 65), y - 6) == WHITE
    # And it goes on: zoomed in at the middle, a set and then idle.
    page.mouse.move(0, 0)
    page.locator(".ep-timeline").focus()
    for _ in range(8):
        page.keyboard.press("w")
    page.wait_for_timeout(100)
    assert pixel(page, x_at(page, 90), y - 2) == WHITE

    page.evaluate("lost.restoreContext()")
    page.wait_for_timeout(100)
    page.keyboard.press("0")
    page.wait_for_timeout(500)
    assert drawn_by(page) == "webgl"
    assert pixel(page, x_at(page, 22), y) == KERNEL
    context.close()


def test_many_timelines_on_a_page_all_have_their_picture(browser, profile, tmp_path):
    many = 24
    html = View(profile).mimebundle()["text/html"]
    path = tmp_path / "notebook.html"
    # The frame's page is a quoted attribute.
    asked = html.replace(
        "id=&quot;epprof&quot;", "id=&quot;epprof&quot; data-renderer=&quot;webgl&quot;"
    )
    assert asked != html
    path.write_text("\n".join([asked] * many))
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    warnings = []
    context.on("console", lambda message: warnings.append(message.text))
    context.add_init_script(KEEP_CONTEXTS)
    page = context.new_page()
    page.goto(path.as_uri())
    alive = 0
    for i in range(many):
        page.locator("iframe").nth(i).scroll_into_view_if_needed()
        frame = page.frames[i + 1]
        frame.wait_for_selector(".ep-timeline canvas[data-drawn-by=webgl]")
        alive = max(alive, sum(_contexts(frame) for frame in page.frames[1:]))
    # Those that were scrolled away have given theirs back, and kept their picture.
    assert alive <= 12
    assert not [text for text in warnings if "Too many active WebGL contexts" in text]
    for frame in page.frames[1:]:
        y = lane_y(frame, "stream 7") + 6
        assert pixel(frame, x_at(frame, 22), y) == KERNEL
    context.close()


def test_in_a_notebook_what_is_scrolled_away_leaves_the_gpu(opened, lab):
    _, folder = lab
    page = in_lab(opened, lab, notebook(folder, "two.ipynb", LIVE, LIVE))
    page.evaluate("document.documentElement.dataset.renderer = 'webgl'")
    run_all(page)
    first, second = (
        page.locator(".epprof-output .ep-live").nth(i).locator(".ep-timeline canvas").first
        for i in range(2)
    )
    first.wait_for(timeout=60_000)
    second.wait_for(timeout=60_000)
    for seen, unseen in ((first, second), (second, first)):
        seen.scroll_into_view_if_needed()
        page.wait_for_timeout(600)
        assert seen.get_attribute("data-drawn-by") == "webgl"
        assert unseen.get_attribute("data-drawn-by") == "canvas2d"
    # The picture stays.
    blue = first.evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let blue = 0;
          for (let i = 0; i < data.length; i += 4) if (data[i] === 0 && data[i + 2] === 178) blue++;
          return blue;
        }"""
    )
    assert blue > 1000


def _contexts(frame) -> int:
    return frame.evaluate("(window.contexts ?? []).filter((gl) => !gl.isContextLost()).length")
