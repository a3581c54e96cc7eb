"""TensorBoard's Time Series page in a browser: opening it, and reading off what it draws."""

import json
import urllib.parse

# As a user would set them in the page: one plain line a card, nothing clipped, no panel in the way.
_SETTINGS = {
    "scalarSmoothing": 0,
    "ignoreOutliers": False,
    "stepSelectorEnabled": False,
    "timeSeriesSettingsPaneOpened": False,
    "sideBarWidthInPercent": 12,
}

# {tag: the paths that its card draws}, for every card on the page; a curve of one point is drawn as a dot, which is given
# as a path of one corner.
_CARDS = """(() => {
  const cards = {};
  for (const card of document.querySelectorAll('card-view')) {
    const name = card.querySelector('.heading tb-truncated-path');
    const drawn = card.querySelectorAll('.series-view > svg path, .series-view > svg circle, tb-histogram svg path');
    const path = e => e.tagName == 'circle' ? `M${e.getAttribute('cx')},${e.getAttribute('cy')}` : e.getAttribute('d') || '';
    if (name) cards[name.title] = [...drawn].filter(e => e.style.display != 'none').map(path);
  }
  return cards;
})()"""


def show(browser, url, tags="."):
    """Opens the page with a card for every tag that matches the regular expression, in one list.

    The charts are SVG, because what WebGL draws cannot be asked for.
    """
    browser.open(f"{url}/data/environment")  # any page of the server will do: settings belong to its address
    browser.wait_for(f"location.href.startsWith({json.dumps(url)}) && document.readyState == 'complete'", "answer")
    browser.evaluate(f"localStorage.setItem('_tb_global_settings', {json.dumps(json.dumps(_SETTINGS))})")
    browser.open(f"{url}/?forceSVG=true&tagFilter={urllib.parse.quote(tags)}#timeseries")


def cards(browser):
    """{tag: paths} of the cards drawn so far; a card out of sight draws nothing."""
    return browser.evaluate(_CARDS)


def wait_for_cards(browser, tags):
    """Waits until each of the tags has a card in which something is drawn; returns all cards."""
    drawn = f"Object.entries({_CARDS}).filter(([, paths]) => paths.some(p => p)).map(([tag]) => tag)"
    wanted = json.dumps(sorted(tags))
    browser.wait_for(f"(drawn => {wanted}.every(tag => drawn.includes(tag)))({drawn})", f"charts of {wanted}")
    return cards(browser)


def points(path):
    """The corners of a drawn line: [(x, y), ...] of an SVG path made of M and L only."""
    corners = path.replace("M", " ").replace("L", " ").split()
    return [tuple(map(float, corner.split(","))) for corner in corners]
