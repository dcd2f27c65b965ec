"""The pages in Chromium at a usual width: no table is clipped, and nothing is lost where a wide table is split."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from support.browser import CLIPPED, WINDOW, Browser
from test_page import NAMES, PATH, pair, report, row, scores, search, with_search  # noqa: F401  # the fixture

from aucdist.report.comparison import render_comparison_page
from aucdist.report.run import Report, render_run_page
from aucdist.report.watch import render_watch_page


def assert_fits(chromium: Browser, folder: Path, page: str) -> None:
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    chromium.open(file, width=WINDOW)
    assert chromium.evaluate("document.documentElement.scrollWidth") <= WINDOW
    assert chromium.evaluate(CLIPPED) == []


def comparison(n_runs: int) -> str:
    names = [f"kddcup99-standard-lam-0.0001-20250101-12000{i}" for i in range(n_runs)]
    spread = {key: {"value": 0.99912, "interval": [0.99861, 0.99955]} for key in NAMES}
    rates = {key: {"value": 0.05, "interval": [0.04, 0.06]} for key in ("alerts", "precision", "recall", "fpr")}
    point = rates | {"target": {"alerts": 0.05}, "rows": "test", "set_on": "out_of_fold", "threshold": 0.0}
    runs = [
        {
            "name": n,
            "run": n,
            "estimator": "PairwiseHingeClassifier",
            "solver": "all-pairs",
            "seconds": 12.3,
            "warnings": [],
            "decisions": point,
        }
        | spread
        for n in names
    ]
    pairs = [pair(a, b, 0.0001234, 0.0123, 0.0000123, 0.0002345) for a in names for b in names if a < b]
    settings = [{"setting": "model.features", "values": dict.fromkeys(names, "bins with 40 interactions")}]
    result = {"run": "c", "n_pos": 20, "n_neg": 80, "runs": runs, "differences": {"auc": pairs}}
    result |= {"same_scores": [], "settings": settings}
    return render_comparison_page(result, [(name, scores(20, 80, seed=i)) for i, name in enumerate(names)])


def test_a_comparison_of_four_runs_fits(chromium: Browser, tmp_path: Path) -> None:
    assert_fits(chromium, tmp_path, comparison(4))


@pytest.mark.parametrize("shape", [(13, 1), (13, 13), (5, 4)], ids=["curve", "two parameters", "three parameters"])
def test_the_page_of_a_search_fits(chromium: Browser, tmp_path: Path, report: Report, shape: tuple[int, int]) -> None:  # noqa: F811
    more = {} if shape != (5, 4) else {"class_weight": "balanced"}
    table = [
        row({"lam": 10.0**-i, "eta": 2.0**-k} | more, [0.91234] * 10, not_converged=1)
        for i, k in product(range(shape[0]), range(shape[1]))
    ]
    table[0]["parameters"] |= {"class_weight": None} if more else {}
    page = render_run_page(with_search(report, search(table, best=1)))
    assert_fits(chromium, tmp_path, page)


def test_a_worker_of_a_page_that_is_opened_as_a_file_works(chromium: Browser, tmp_path: Path) -> None:
    """The search of the documentation runs in one; browsers start none for files, which `iframe-worker.js` makes up for."""
    shim = Path(__file__).resolve().parents[2] / "docs" / "pages" / "iframe-worker.js"
    (tmp_path / "worker.js").write_text("addEventListener('message', (event) => postMessage(event.data + 1))")
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><body><script src='{shim.as_uri()}'></script>")
    chromium.open(page, width=WINDOW)
    chromium.messages.clear()
    answer = """new Promise((done) => {
        const worker = new Worker(new URL("worker.js", location));
        worker.addEventListener("message", (event) => done(event.data));
        worker.postMessage(41);
    })"""
    answered = chromium.call("Runtime.evaluate", expression=answer, awaitPromise=True, returnByValue=True)
    assert answered["result"]["value"] == 42
    assert chromium.messages == []


def watched(*kinds: str) -> str:
    columns = [{"name": f"pixel_{j}", "psi": 0.01 * j} for j in range(30)]
    alarms = [{"what": kind, "column": "pixel_29", "value": 0.125, "p": 1e-9} for kind in kinds]
    comparison = {"columns": columns, "alarms": alarms, "score": {"psi": 0.02}, "rare": {"share": 0.47}}
    about = {"batch": "monday", "time": "2026-11-25T03:28", "version": 1, "rows": 1797, "performance": None}
    return render_watch_page("models/digits", [about | {"comparison": comparison}])


def test_an_alarm_that_is_not_about_the_psi_has_a_mark_and_words_of_its_own() -> None:
    for page, squares in ((watched("outside"), 1), (watched("outside", "moved"), 0), (watched("moved"), 0)):
        assert page.count("<rect") == squares
        assert ("0.290, values out of range</figcaption>" in page) == ("outside the range of" in page.split("<h2>")[0])


def test_the_figures_of_a_watched_model_can_be_read(chromium: Browser, tmp_path: Path) -> None:
    page = watched("outside")
    assert "pixel_29: 12.5\u00a0% of the rows are outside the range" in page
    assert_fits(chromium, tmp_path, page)
    # The numbers are 9 pixels high in a figure of 242.
    narrowest = "Math.min(...[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width))"
    assert chromium.evaluate(narrowest) > 180


# ---- the page of a run with a search, in Chromium: no requests, no messages, enough contrast, and no overflow ----


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


def test_the_page_in_chromium(chromium: Browser, tmp_path: Path, report) -> None:  # noqa: F811
    probabilities = scores(200, 800).mapped(lambda v: 1 / (1 + 2.7**-v))
    page = tmp_path / "report.html"
    whole = replace(with_search(report, search(PATH)), probabilities=probabilities)
    page.write_text(render_run_page(whole), encoding="utf-8")
    for width, dark in ((1200, False), (1200, True), (390, False), (390, True)):
        chromium.open(page, width=width, dark=dark)
        chromium.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert chromium.evaluate("document.documentElement.scrollWidth") <= width
        assert chromium.evaluate(CONTRAST) == []
        paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(", "))) < 300) == dark
    assert chromium.evaluate("document.querySelectorAll('h1').length") == 1
    assert chromium.evaluate(TABLES) == 0
    assert chromium.evaluate("[...document.querySelectorAll('svg')].every(s => s.getBoundingClientRect().height > 50)")
    assert chromium.messages == []
