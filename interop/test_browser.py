"""What the user sees: TensorBoard's page in Chromium draws the curves."""

import pytest
from harness import events, timeseries
from harness.browser import Browser

TAGS = ("accuracy", "loss", "global_step/sec")


@pytest.fixture(scope="module")
def cards(chromium_path, digits_board):
    with Browser(chromium_path) as browser:
        timeseries.show(browser, digits_board.url)
        return timeseries.wait_for_cards(browser, TAGS)


@pytest.mark.parametrize("tag", TAGS)
def test_page_draws_every_point_of_the_curve(cards, digits, tag):
    runs = [events.scalars(events.read_dir(run)) for run in (digits.logdir, digits.logdir / "eval")]
    written = sorted(len(scalars[tag]) for scalars in runs if tag in scalars)
    lines = [timeseries.points(path) for path in cards[tag] if path]
    assert sorted(map(len, lines)) == written, f"{tag}: points of each run, drawn and written"
    for line in lines:
        assert [x for x, _ in line] == sorted({x for x, _ in line}), f"{tag}: the line runs back"


def test_loss_is_drawn_falling(cards):
    corners = timeseries.points(max(cards["loss"], key=len))
    assert corners[-1][1] > corners[0][1], "SVG counts y downwards: a falling loss ends lower"
