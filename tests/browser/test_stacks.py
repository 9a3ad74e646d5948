"""The tree of Python stacks in a browser: its widths, library frames, and the way to the source."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.helpers.settling import settled
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

pytestmark = pytest.mark.browser


def training():
    rows, (forward, item) = stack_rows(
        "In[5]:2 In[3]:train:2 src/model.py:forward:2 lib/nn.py:linear:9",
        "In[5]:2 In[3]:train:3",
    )
    prof = profile(
        ops=[op(1, "In[5]", 0, 100_000, op_type="cell"), line(2, 2, 0, 90_000, 1, cell="In[5]")],
        activities=[
            kernel(10_000, 40_000, 2, correlation_id=1, name="gemm", stack_id=forward),
            kernel(40_000, 50_000, 2, correlation_id=2, name="gemm", stack_id=forward),
        ],
        api_calls=[
            call(5_000, 6_000, correlation_id=1, op_id=2, stack_id=forward),
            call(7_000, 8_000, correlation_id=2, op_id=2, stack_id=forward),
            call(9_000, 60_000, correlation_id=3, op_id=2, stack_id=item,
                 name="cuStreamSynchronize"),
        ],
        info={"cell": "In[5]", "wall_ns": 100_000},
        sources={
            "In[5]": "%%gpuprofile\nl = train(10)\n",
            "In[3]": "def train(n):\n    y = forward(x)\n    return y.item()\n",
            "src/model.py": "def forward(x):\n    return linear(x)\n",
        },
    )  # fmt: skip
    return with_stacks(prof, rows)


@pytest.fixture
def page(shown):
    page = shown(training())
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=stack_tree]")
    page.wait_for_selector(".ep-icicle canvas")
    settled(page)
    return page


def _has_names(page, names):
    table = page.locator(".ep-tree")
    if table.get_attribute("open") is None:
        table.locator("summary").click()
    expect(table.locator("tbody th")).to_have_text(names)


def test_the_tree_has_the_users_frames_and_those_of_libraries_on_request(page):
    shown = ["session", "<module> (In[5]:2)", "train (In[3]:2)", "forward (model.py:2)", "gemm"]
    _has_names(page, shown)
    page.click("text=library frames")
    expect(page.locator("text=library frames")).to_have_attribute("aria-pressed", "true")
    settled(page)
    _has_names(page, [*shown[:-1], "linear (nn.py:9)", "gemm"])


def test_widths_are_device_time_launches_or_waits(page):
    measures = page.locator(".ep-icicle-head .ep-switch button")
    assert measures.all_inner_texts() == ["device time", "launches", "waits"]
    page.click("[data-measure=waits]")
    settled(page)
    _has_names(page, ["session", "<module> (In[5]:2)", "train (In[3]:3)"])


@pytest.mark.parametrize("by", ["pointer", "keyboard"])
def test_a_click_on_a_frame_leads_to_its_line_in_the_source(page, by):
    if by == "pointer":
        page.click(".ep-icicle canvas", position={"x": 200, "y": 3 * 20 + 10})
    else:
        page.focus(".ep-icicle-stage")
        for _ in range(4):
            page.keyboard.press("ArrowDown")
    line = page.locator(".ep-node-details .ep-code")
    expect(line).to_have_text("return linear(x)")
    if by == "pointer":
        line.click()
    else:
        page.keyboard.press("Tab")
        expect(line).to_be_focused()
        page.keyboard.press("Enter")
    row = page.locator(".ep-source tr:focus")
    expect(row).to_contain_text("return linear(x)")
    assert row.get_attribute("data-line") == "2"


def test_a_frame_leads_to_what_it_launched_or_waited_for(page):
    page.click(".ep-icicle canvas", position={"x": 200, "y": 2 * 20 + 10})
    page.click("text=show in the timeline")
    panel = page.locator(".ep-panel:visible")
    expect(panel).to_contain_text("2 train")
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-measure=waits]")
    page.click(".ep-icicle canvas", position={"x": 200, "y": 2 * 20 + 10})
    page.click("text=show in the timeline")
    expect(panel).to_contain_text("1 train")
    panel.get_by_title("Next of these").click()
    expect(panel).to_contain_text("cuStreamSynchronize")


def test_each_row_by_line_selects_its_events(page):
    page.click("[data-by=line]")
    rows = page.locator(".ep-table-place tbody tr")
    expect(rows).to_have_count(4)
    found = ["1 l = train(10)", "2 y = forward(x)", "1 return y.item()", "2 return linear(x)"]
    for number, text in enumerate(found):
        rows.nth(number).click()
        expect(page.locator(".ep-panel:visible")).to_contain_text(text)
        page.keyboard.press("Escape")
        page.click("[role=tab][data-tab=breakdown]")


def test_a_line_of_a_file_selects_what_it_launched(page):
    page.click("[role=tab][data-tab=source]")
    page.locator("[data-cell='src/model.py'] tr.ep-ran").click()
    expect(page.locator("[role=tab][data-tab=timeline]")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".ep-viewer")).to_contain_text("times line 2 of src/model.py")


def test_an_event_shows_the_line_that_launched_it(shown):
    page = shown(training())
    page.locator(".ep-timeline").focus()
    page.keyboard.press("/")
    page.keyboard.type("gemm")
    page.keyboard.press("Enter")
    expect(page.locator(".ep-viewer")).to_contain_text("forward (model.py:2)")


def test_a_frame_that_called_itself_is_one_box_and_others_scroll(shown):
    rows, (direct, mutual) = stack_rows(
        "a.py:main:1 " + "a.py:walk:3 " * 900 + "a.py:leaf:9",
        "a.py:main:2 " + "a.py:odd:5 a.py:even:7 " * 60 + "a.py:leaf:9",
    )
    prof = profile(
        activities=[
            kernel(0, 40_000, correlation_id=1, name="gemm", stack_id=direct),
            kernel(40_000, 60_000, correlation_id=2, name="relu", stack_id=mutual),
        ],
    )
    page = shown(with_stacks(prof, rows))
    assert len(prof.by_stack()) > 1_000  # the table has a row for each frame
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=stack_tree]")
    canvas = page.locator(".ep-icicle canvas")
    canvas.wait_for()
    settled(page)
    assert canvas.bounding_box()["height"] < 800
    page.click(".ep-icicle canvas", position={"x": 100, "y": 2 * 20 + 10})
    details = page.locator(".ep-icicle .ep-panel")
    expect(details).to_contain_text("walk (a.py:3) \N{MULTIPLICATION SIGN}900")
    page.click(".ep-icicle canvas", position={"x": 100, "y": 4 * 20 + 10})
    expect(details).to_contain_text("gemm")
    page.focus(".ep-icicle-stage")
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    expect(details).to_contain_text("main (a.py:2)")
    for _ in range(122):
        page.keyboard.press("ArrowDown")
    expect(details).to_contain_text("relu")
    settled(page)
    # The box is in view, and where the pointer finds it.
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 50, box["y"] + box["height"] - 10)
    expect(page.locator(".ep-icicle .ep-tip")).to_contain_text("relu")
