"""The dashboard for Grafana asks for metrics that are there, with labels that they have."""

import json
import re
from pathlib import Path

import pytest
from support.web_server import scraped as of_prometheus

from aucdist.engine.dask import local_client
from aucdist.engine.workers import RUN_FIGURES, put_figures

FILE = Path(__file__).resolve().parents[2] / "infra" / "grafana" / "aucdist.json"
WORDS = {"sum", "by", "rate", "deriv"}  # of PromQL, as far as the dashboard uses it


@pytest.fixture(scope="module")
def board():
    return json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def scraped():
    """The labels of each metric that a scheduler and its workers show, each of them scraped as Prometheus does."""
    labels_of = {}
    with local_client(1) as client:
        put_figures(client, "a-run", dict.fromkeys(RUN_FIGURES, 1.0), {"fit": 1.0})
        client.submit(sum, [1]).result()
        workers = client.scheduler_info()["workers"]
        ports = [worker["services"]["dashboard"] for worker in workers.values()]
        for url in [client.dashboard_link.rpartition("/")[0], *(f"http://127.0.0.1:{port}" for port in ports)]:
            for name, labels, _ in of_prometheus(f"{url}/metrics"):
                labels_of.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return labels_of


def expressions(board):
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def test_every_metric_and_label_exists(board, scraped):
    for expr in expressions(board):
        selectors = re.findall(r"(\w+)\{([^}]*)\}", expr)
        for name, selector in selectors:
            labels = set(re.findall(r"(\w+)\s*(?:=~|!=|=)", selector))
            assert labels <= scraped[name], expr
        bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)", "", expr)
        names = set(re.findall(r"[a-z_]\w+", bare)) - WORDS
        assert names, expr
        assert names <= set(scraped), expr


def test_legends_name_labels_that_are_there(board, scraped):
    added_by_prometheus = {"instance", "job"}
    for panel in board["panels"]:
        for target in panel["targets"]:
            by = re.search(r"by \(([^)]*)\)", target["expr"])
            name = next(n for n in re.findall(r"\w+", target["expr"]) if n in scraped)
            there = {part.strip() for part in by[1].split(",")} if by else scraped[name] | added_by_prometheus
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= there, target


def test_every_figure_of_ours_is_shown(board):
    shown = " ".join(expressions(board))
    assert not [name for name in (*RUN_FIGURES, "aucdist_stage_seconds") if not re.search(rf"\b{name}\b", shown)]


def test_panels_are_sound(board):
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)


def test_it_names_no_source_of_anybodys_own(board):
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert variables["source"]["type"] == "datasource"
    sources = {target["datasource"]["uid"] for panel in board["panels"] for target in panel["targets"]}
    assert sources == {"${source}"}
    metric = re.fullmatch(r"label_values\((\w+), run\)", variables["run"]["query"]["query"])[1]
    assert metric == "aucdist_stage_seconds"
