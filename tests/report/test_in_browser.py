"""The page of a run with a search, in Chromium: no requests, no messages, enough contrast, and no overflow."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.browser import browser, installed
from test_page import history, report, scores  # noqa: F401  # the fixture
from test_search_section import PATH, search

from aucdist.report.run import render_run_page

CONTRAST = """
(() => {
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const over = ([r, g, b, a = 1], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const behind = e => {
    const layers = [];
    for (; e; e = e.parentElement) layers.push(colour(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest("style, title, desc, defs")) continue;
    const style = getComputedStyle(e), back = behind(e);
    const ink = e.closest("svg") ? style.fill : style.color;
    const [one, two] = [light(over(colour(ink), back)), light(back)].sort((a, b) => b - a);
    if ((one + 0.05) / (two + 0.05) < 4.5) poor.push(e.tagName + " " + e.textContent.trim().slice(0, 40));
  }
  return poor;
})()
"""

TABLES = """
[...document.querySelectorAll("table")].filter(t => !t.querySelector("th[scope=row]")
  || [...t.querySelectorAll("th")].some(h => !h.hasAttribute("scope"))).length
"""


@pytest.mark.skipif(installed() is None, reason="there is no Chromium here (Debian: apt-get install chromium)")
def test_the_page_in_chromium(tmp_path: Path, report) -> None:  # noqa: F811
    probabilities = scores(200, 800).mapped(lambda v: 1 / (1 + 2.7**-v))
    page = tmp_path / "report.html"
    whole = replace(report, search=search(PATH), probabilities=probabilities, history=history(30))
    page.write_text(render_run_page(whole), encoding="utf-8")
    with browser(tmp_path / "profile") as chromium:
        for width, dark in ((1200, False), (1200, True), (390, False), (390, True)):
            chromium.open(page, width=width, dark=dark)
            chromium.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert chromium.evaluate("document.documentElement.scrollWidth") <= width
            assert chromium.evaluate(CONTRAST) == []
            paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, paper[4:-1].split(", "))) < 300) == dark
        assert chromium.evaluate("document.querySelectorAll('h1').length") == 1
        assert chromium.evaluate(TABLES) == 0
        assert chromium.evaluate(
            "[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 50)"
        )
        assert chromium.messages == []
