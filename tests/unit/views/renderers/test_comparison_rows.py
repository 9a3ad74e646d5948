"""Names of rows of a comparison: the place of a line stays whole when its text is cut."""

from epprof_nb.views.renderers.comparison_rows import Row


def test_the_place_of_a_line_stays_whole_and_its_text_is_cut():
    place = "launch_all_layers (decoder_model.py:1234):"
    row = Row(f"{place} launch({'projection, ' * 20})", (), "", place=place)
    assert row.short_name(80).startswith(f"{place} launch(")
    assert len(row.short_name(80)) == 80


def test_a_place_that_is_too_long_keeps_its_line():
    place = f"{'f' * 300_000} (model.py:12):"
    row = Row(f"{place} launch(x)", (), "", place=place)
    assert "(model.py:12): " in row.short_name(48)
    assert len(row.short_name(48)) <= 48
    assert Row("a / b", (), "").short_name(48) == "a / b"
