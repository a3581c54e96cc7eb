"""TensorBoard's pages in a browser: most of them keep what they show in shadow trees, some in frames."""

import json

# Finds everything that matches a selector, wherever in the page it is, and collects all text.
_DEEP = """(() => {
  const roots = [document];
  for (let i = 0; i < roots.length; i++) {
    for (const element of roots[i].querySelectorAll('*')) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      if (element.tagName === 'IFRAME' && element.contentDocument) roots.push(element.contentDocument);
    }
  }
  const all = selector => roots.flatMap(root => [...root.querySelectorAll(selector)]);
  const visible = node => node.parentElement && !['STYLE', 'SCRIPT', 'NOSCRIPT'].includes(node.parentElement.tagName)
      && node.parentElement.checkVisibility();
  const text = () => {
    const words = [];
    for (const root of roots) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        if (visible(walker.currentNode)) words.push(walker.currentNode.textContent);
      }
    }
    return words.join(' ').replace(/\\s+/g, ' ');
  };
  return ({ all, text })
})()"""


def show(browser, url, page, query=""):
    """Opens one page; the browser may have shown another one before."""
    browser.open("about:blank")
    browser.wait_for("location.href == 'about:blank'", "empty page")
    browser.open(f"{url}/?{query}#{page}")


def wait_for_text(browser, *words):
    wanted = json.dumps(words)
    browser.wait_for(f"(shown => {wanted}.every(word => shown.includes(word)))({_DEEP}.text())", f"text {wanted}")


def wait_for(browser, selector, condition="true", count=1):
    """Waits for so many elements that meet a condition on `e`."""
    found = f"{_DEEP}.all({json.dumps(selector)}).filter(e => {condition}).length"
    browser.wait_for(f"{found} >= {count}", f"{count} of {selector} with {condition}")


def click(browser, selector, condition="true"):
    wait_for(browser, selector, condition)
    browser.evaluate(f"{_DEEP}.all({json.dumps(selector)}).find(e => {condition}).click()")


def text(browser):
    return browser.evaluate(f"{_DEEP}.text()")
