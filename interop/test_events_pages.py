"""Each of TensorBoard's pages, opened in Chromium, shows what package tfevents wrote for it."""

import pytest
from harness import pages, timeseries
from harness.browser import Browser
from harness.tensorboard import OURS


@pytest.fixture(scope="module")
def browser(chromium_path):
    with Browser(chromium_path) as browser:
        yield browser


@pytest.fixture(scope="module", params=["data-server", OURS])
def board(request, kinds_boards):
    return kinds_boards(request.param)


@pytest.fixture
def show(browser, board):
    return lambda page, query="": pages.show(browser, board.url, page, query)


def wait_for_chart(browser, host, selector, count):
    """Waits for parts of what a chart of a kind draws: charts keep them in a tree of their own."""
    pages.wait_for(browser, selector, f"e.getRootNode().host && e.getRootNode().host.tagName == '{host}'", count)


def test_scalars(browser, show):
    show("scalars")
    pages.wait_for_text(browser, "tag: scalar", "v1", "v2")
    wait_for_chart(browser, "VZ-LINE-CHART2", "line.tick-mark", 4)


def test_time_series(browser, board):
    timeseries.show(browser, board.url, "^scalar$|^histogram$")
    cards = timeseries.wait_for_cards(browser, ["scalar", "histogram"])
    corners = [len(timeseries.points(path)) for path in cards["scalar"] if path]
    assert corners.count(2) >= 2, "two runs have a scalar of two points each"


def test_histograms(browser, show):
    show("histograms")
    pages.wait_for_text(browser, "tag: histogram", "tag: buckets")
    pages.wait_for(browser, "vz-histogram-timeseries", count=4)
    wait_for_chart(browser, "VZ-HISTOGRAM-TIMESERIES", "path:not(.domain)", 4)


def test_images(browser, show):
    show("images")
    pages.wait_for_text(browser, "tag: picture/image/0", "tag: picture/image/1", "tag: film", "sample: 2 of 2")
    # Four PNGs (two of them one value) and an animation, all decoded.
    pages.wait_for(browser, "img", "e.complete && e.naturalWidth == 8 && e.naturalHeight == 6", 5)


def test_audio(browser, show):
    show("audio")
    pages.wait_for_text(browser, "tag: audio", "v1", "v2")
    # 80 samples of one clip, 40 frames of the other, at 8000 a second.
    for seconds in (0.01, 0.005):
        pages.wait_for(browser, "audio", f"Math.abs(e.duration - {seconds}) < 0.001")


def test_text(browser, show):
    show("text")
    pages.wait_for_text(browser, "tag: text", "tag: table", "some", "words", "one", "two")
    pages.wait_for(browser, "em", "e.textContent == 'words'")
    pages.wait_for(browser, "td", "e.textContent.trim() == '2'")


def test_graphs(browser, show):
    show("graphs")
    pages.wait_for_text(browser, "Run (2)")
    pages.wait_for(browser, "g.node text, g.node title", "e.textContent.includes('node_of_v1')")


def test_hparams(browser, show):
    show("hparams")
    pages.wait_for_text(browser, "rate", "0.25000", "1.5000", "Number of matching session groups: 2")
    pages.wait_for_text(browser, "tuned", "0.75000", "2.5000")  # the values that were written last


def test_pr_curves(browser, show):
    show("pr_curves")
    pages.wait_for_text(browser, "curve", "v2 is at step 1")
    wait_for_chart(browser, "VZ-LINE-CHART2", "line.tick-mark", 10)


def test_projector(browser, show):
    show("projector")
    pages.wait_for_text(browser, "Points: 4", "Dimension: 3")


def test_distributions(browser, show):
    show("distributions")
    pages.wait_for_text(browser, "histogram", "buckets")
    pages.wait_for(browser, "vz-distribution-chart", count=4)


def test_mesh(browser, show):
    show("mesh")
    pages.wait_for_text(browser, "mesh", "v2")


def test_custom_scalars(browser, show):
    show("custom_scalars")
    wait_for_chart(browser, "VZ-LINE-CHART2", "line.tick-mark", 4)
