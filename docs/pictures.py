"""The pictures of reports and of the page of `aucdist watch` in the documentation, drawn by Chromium.

    python docs/pictures.py [NAME ...]     draw them again (all, or those named)

They need the folder of data sets, AUCDIST_DATA. A picture keeps those of its words that the sources of the pages had when it was
drawn.
`tests/test_docs.py` says which picture has words that are no longer there: draw it again.
"""

import base64
import contextlib
import io
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, PngImagePlugin

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "pages"
SOURCES = ROOT / "aucdist" / "report"
PICTURES = {
    "report": (PAGES / "report.png", 1100, 1975),
    "report-shapes": (PAGES / "images" / "report-shapes.png", 1000, 1816),
    "watch": (PAGES / "watch.png", 1300, 1480),
}
"""The file of each picture, and its size."""
GUIDE = PAGES / "how-to" / "report.md"
"""The page whose first configuration makes the picture `report`."""
SHAPES = """
name: credit-default
data: {name: credit-default, test: {fraction: 0.2, seed: 0}}
model:
  estimator: PairwiseHingeClassifier
  features: {map: auto, readable: true}
operating_point: {fpr: 0.05}
"""
"""The configuration of the picture `report-shapes`."""
LEFT_OUT = {
    "report-shapes": """[...document.querySelectorAll("section")].some(
      s => s.querySelector("ol.bars") || (s.remove(), false))"""
}
"""The front page has the head of the report and the shapes, and no room for the sections between them."""
WORDS = """[...document.querySelectorAll("h1, h2, p, li, dt, dd, figcaption, th")]
  .filter(e => e.checkVisibility() && e.getBoundingClientRect().bottom < %d).map(e => e.innerText).join(" | ")"""


def phrases(text: str) -> set[str]:
    """Return all that four neighbouring words of a text say."""
    words = re.findall("[A-Za-z]+", text)
    return {" ".join(four) for four in zip(words, words[1:], words[2:], words[3:], strict=False)}


def phrases_of_sources() -> set[str]:
    """Return the phrases in the templates and in the code of the pages."""
    files = [file for file in SOURCES.iterdir() if file.suffix in (".html", ".py")]
    return set().union(*(phrases(file.read_text(encoding="utf-8")) for file in files))


def gone(name: str) -> list[str]:
    """Return the phrases in a picture that the sources no longer have."""
    with Image.open(PICTURES[name][0]) as picture:
        return sorted(set(picture.info["words"].split("\n")) - phrases_of_sources())


def page_of(name: str) -> Path:
    """Make a page in the current folder."""
    from support.runs import load_train
    from watched_year import Silent, year

    from flows.train.run import train

    if name == "watch":
        for _ in year("covtype by area", 100, Path()):
            pass
        page = Path("store", "watch", "index.html")
        page.write_text(
            page.read_text(encoding="utf-8").replace("Watching store", "Watching models/cover"), encoding="utf-8"
        )
        return page.absolute()
    guide = GUIDE.read_text(encoding="utf-8").split("```yaml\n")[1].partition("```")[0]
    Path("run.yaml").write_text({"report": guide, "report-shapes": SHAPES}[name], encoding="utf-8")
    return Path(str(train(load_train("run.yaml", [], "runs"), Silent())["run"]), "report.html").absolute()


def draw(name: str, profile: Path) -> None:
    """Draw a picture, with its words."""
    from support.browser import browser

    file, width, height = PICTURES[name]
    with browser(profile) as chromium:
        chromium.open(page_of(name), width=width)
        chromium.evaluate(LEFT_OUT.get(name, "0"))
        words = phrases(chromium.evaluate(WORDS % height)) & phrases_of_sources()
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = chromium.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
    about = PngImagePlugin.PngInfo()
    about.add_text("words", "\n".join(sorted(words)), zip=True)
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        picture.convert("RGB").quantize(256).save(file, pnginfo=about, optimize=True)


if __name__ == "__main__":
    sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "infra")]
    os.environ["PREFECT_API_URL"] = ""
    for name in sys.argv[1:] or PICTURES:
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            draw(name, Path(folder) / "profile")
        print(name)
