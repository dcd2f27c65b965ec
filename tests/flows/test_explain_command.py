"""`aucdist explain`: contributions that add up to the scores, printed, as JSON and as files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import refused, result_of, run, sets

from aucdist.model import load_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with bins and an interaction, with landmarks, and with leaves."""
    r = np.random.default_rng(1)
    made = tmp_path_factory.mktemp("explain")
    X = r.normal(size=(100, 3)).round(3)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * r.normal(size=100) > 0.5, "yes", "no")
    frame = pd.DataFrame(X, columns=["age", "income", "constant"]).assign(clicked=y)
    frame.loc[[3, 50], "income"] = np.nan
    frame.to_csv(made / "rows.csv", index=False)
    for name, features, impute in (
        ("bins", "{map: bins, bins: 6, interactions: 1}", "keep"),
        ("nystroem", "{map: nystroem, landmarks: 8}", "mean"),
        ("leaves", "{map: leaves, trees: 2}", "keep"),
    ):
        source = f"source: {{source: {made}/rows.csv, format: csv, label: clicked, positive: 'yes', missing: keep}}"
        model = f"model={{tol: 1e-2, lam: 1e-2, features: {features}}}"
        settings = sets(f"data={{{source}, impute: {impute}}}", model, "cluster=none")
        Path(result_of("train", "digits", *settings, "--output", made / "runs")["run"]).rename(made / name)
    return made


COMPARED = ("compared_with_most_favourable", "compared_with_average")
SEEN = (
    "warning: {} of {} rows were training rows, or equal one: the model has seen them, so their scores look better than those "
    "of new rows"
)
SETTINGS = sets("label=clicked", 'positive="yes"', "missing=keep")


@pytest.mark.parametrize("below", ["", "/model"])
def test_contributions_add_up_and_the_largest_come_first(folder: Path, below: str) -> None:
    args = ("explain", f"{folder}/bins{below}", folder / "rows.csv", *SETTINGS)
    result = result_of(*args, "--rows", 5, "--top", 2)
    model = load_model(f"{folder}/bins/model")
    X = pd.read_csv(folder / "rows.csv")[["age", "income", "constant"]].to_numpy()
    assert result["rows"] == 5
    assert result["output"] is None
    for row, x in zip(result["explained"], X, strict=False):
        parts = [part["adds"] for part in row["contributions"]]
        assert len(parts) == 2
        assert abs(parts[0]) >= abs(parts[1])
        assert row["constant"] + sum(parts) + row["rest"] == pytest.approx(row["score"], abs=1e-9)
        assert row["score"] == pytest.approx(model.decision_function(x[np.newaxis])[0])
    values = {part["feature"]: part["value"] for row in result["explained"][:1] for part in row["contributions"]}
    own = dict(zip(("age", "income", "constant"), X[0], strict=True))
    for name, value in values.items():
        assert value == ([own[part] for part in name.split(" & ")] if " & " in name else own[name])
    text = run(*args, "--rows", 4, "--top", 9)[0]
    assert text.count("row ") == 4
    assert "income = (missing)" in text
    assert "age & income" in text


def test_the_rows_with_the_highest_scores_are_explained(folder: Path, tmp_path: Path) -> None:
    args = ("explain", folder / "bins", folder / "rows.csv", *SETTINGS, "--highest", 4)
    X = pd.read_csv(folder / "rows.csv")[["age", "income", "constant"]].to_numpy()
    scores = load_model(f"{folder}/bins/model").decision_function(X)
    for row, place in zip(
        result_of(*args, "--reasons", 2)["reasons"], np.argsort(-scores, kind="stable")[:4], strict=True
    ):
        assert (row["row_id"], row["score"]) == (place, pytest.approx(scores[place]))
    run(*args, "--output", tmp_path / "t.csv")
    assert pd.read_csv(tmp_path / "t.csv")["score"].to_numpy() == pytest.approx(-np.sort(-scores)[:4])
    (tmp_path / "t.csv").write_text("notes of somebody")
    assert "t.csv already exists" in refused(*args, "--output", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "notes of somebody"
    run(*args, "--output", tmp_path / "t.csv", "--force")
    assert len(pd.read_csv(tmp_path / "t.csv")) == 4
    assert "give one of them" in refused(*args, "--rows", 4)


def test_copied_columns_are_those_of_the_row_in_whatever_file_it_is(folder: Path, tmp_path: Path) -> None:
    table = pd.read_csv(folder / "rows.csv").assign(code=[f"c{i}" for i in range(100)])
    for part in range(3):
        table[40 * part : 40 * part + 40].to_csv(tmp_path / f"rows-{part}.csv", index=False)
    args = ("explain", folder / "bins", f"{tmp_path}/rows-*.csv", *SETTINGS, "--copy", "code", "--copy", "code")
    assert [row["code"] for row in result_of(*args, "--rows", 45)["explained"]] == table["code"][:45].tolist()
    for row in result_of(*args, "--highest", 20, "--reasons", 1)["reasons"]:
        assert row["code"] == f"c{row['row_id']}"


def test_explain_writes_all_rows_to_the_output(folder: Path, tmp_path: Path) -> None:
    frame, counted = pd.read_csv(folder / "rows.csv"), (100, 100)
    for name, read in (("t.csv", pd.read_csv), ("t.parquet", pd.read_parquet)):
        said, _ = run("explain", folder / "bins", folder / "rows.csv", *SETTINGS, "--output", tmp_path / name)
        first, warned, missing = said.splitlines()[-3:]
        assert (first.endswith(f"{name}: 100 rows"), missing) == (True, "missing values: income 2")
        assert warned == SEEN.format(*counted)
        table = read(tmp_path / name)
        assert list(table)[:3] == ["row_id", "score", "flagged"]
        assert table["flagged"].tolist() == (table["score"] > 0).tolist()
        assert list(table)[-1] == "constant_"  # a feature has the name of the constant
        assert table["constant_"].nunique() == 1
        np.testing.assert_allclose(table.iloc[:, 3:].sum(axis=1), table["score"], atol=1e-9)
    model = load_model(f"{folder}/bins/model")
    X = frame[["age", "income", "constant"]].to_numpy()
    np.testing.assert_allclose(table["score"], model.decision_function(X))


@pytest.mark.parametrize("name", ["nystroem", "leaves"])
def test_what_mixes_all_features_cannot_be_explained(folder: Path, name: str) -> None:
    args = ("explain", folder / name, folder / "rows.csv", *SETTINGS)
    for more in ((), ("--reasons", 2)):
        assert "terms: use features='bins' or none, or features={'map': 'auto', 'readable': True} in place" in refused(
            *args, *more
        )


def test_an_interaction_is_a_reason_of_its_own(folder: Path) -> None:
    args = ("explain", folder / "bins", folder / "rows.csv", *SETTINGS, "--rows", 100, "--reasons", 3)
    features = {part["feature"] for row in result_of(*args)["reasons"] for part in row["compared_with_average"]}
    assert {"age", "age & income"} <= features


def linear_run(folder: Path, scale: str) -> tuple[str, pd.DataFrame]:
    """Return a run of a linear model of two numbers and a column of categories, and its rows."""
    r = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"age": r.integers(20, 60, 300), "job": r.choice(["a", "b", "c"], 300), "sum": r.normal(size=300)}
    )
    score = 0.1 * frame["age"] + (frame["job"] == "b") - frame["sum"] + r.normal(size=300)
    frame.assign(bad=np.where(score > 5.5, "yes", "no")).to_csv(folder / "rows.csv", index=False)
    source = f"{{source: {folder}/rows.csv, format: csv, label: bad, categorical: [job]}}"
    settings = sets(f"data={{source: {source}, scale: {scale}}}", "model={lam: 1e-2}", "cluster=none")
    return str(result_of("train", "digits", *settings, "--output", folder / "runs")["run"]), frame


def test_reasons_of_a_linear_model_compare_with_the_average_row(tmp_path: Path) -> None:
    run_of_model, frame = linear_run(tmp_path, "standard")
    model, args = load_model(f"{run_of_model}/model"), ("explain", run_of_model, tmp_path / "rows.csv", "--rows", 300)
    raised, lowered = (result_of(*args, "--reasons", 3, *more)["reasons"] for more in ((), ("--lower",)))
    weights = dict(zip(model.schema.feature_names, model.coef, strict=True))
    X = pd.DataFrame(
        {
            name: frame[name] if name in frame else frame["job"] == name.removeprefix("job=")
            for name in model.schema.feature_names
        }
    ).astype(float)
    adds = (X - X.mean()) / X.std(ddof=0) * weights
    expected = pd.DataFrame({"age": adds["age"], "job": adds.filter(like="job=").sum(axis=1), "sum": adds["sum"]})
    for i, (up, down) in enumerate(zip(raised, lowered, strict=True)):
        assert "compared_with_most_favourable" not in up
        added = {part["feature"]: part["adds"] for part in up["compared_with_average"] + down["compared_with_average"]}
        assert added == pytest.approx(expected.loc[i].to_dict())
    values = {part["feature"]: part["value"] for part in raised[0]["compared_with_average"]}
    assert all(frame[name][0] == value for name, value in values.items())
    text = run(*args[:3], "--rows", 1, "--reasons", 1)[0]
    assert "compared with the average row: " in text
    assert "most favourable" not in text
    run(*args, "--reasons", 1, "--output", tmp_path / "a.csv")
    assert list(pd.read_csv(tmp_path / "a.csv")) == ["row_id", "score", "flagged", "compared_with_average"]


def test_a_linear_model_of_features_that_are_not_standardised_knows_no_average_row(tmp_path: Path) -> None:
    args = ("explain", linear_run(tmp_path, "maxabs")[0], tmp_path / "rows.csv")
    assert "with `features: bins` or `scale: standard`" in refused(*args, "--reasons", 1)
    assert "contributions" in result_of(*args, "--rows", 1)["explained"][0]


def test_a_queue_names_the_columns_with_missing_and_unknown_values(tmp_path: Path) -> None:
    run_of_model, frame = linear_run(tmp_path, "standard")
    frame["job"] = frame["job"].astype(object)
    frame.loc[:1, "job"] = ["new", "other"]
    frame.to_csv(tmp_path / "new.csv", index=False)
    args = ("explain", run_of_model, tmp_path / "new.csv", "--set", "unknown=ignore", "--output", tmp_path / "q.csv")
    assert run(*args)[0].splitlines()[1:] == [
        SEEN.format(298, 300),
        "unknown values, which no training row had: job 2",
    ]


def test_a_reason_names_the_unknown_category_or_the_missing_value(tmp_path: Path) -> None:
    run_of_model, frame = linear_run(tmp_path, "standard")
    frame["job"] = ["other", None, "", *frame["job"][3:]]
    frame.to_csv(tmp_path / "new.csv", index=False)
    reading = sets("unknown=ignore", "missing=keep")
    args = ("explain", run_of_model, tmp_path / "new.csv", *reading, "--rows", 4, "--reasons", 3)
    for more in ((), ("--copy", "job"), ("--copy", "age")):
        both = [result_of(*args, *more, *lower)["reasons"] for lower in ((), ("--lower",))]
        values = [
            [
                part["value"]
                for part in up["compared_with_average"] + down["compared_with_average"]
                if part["feature"] == "job"
            ]
            for up, down in zip(*both, strict=True)
        ]
        assert values == [["other (unknown)"], ["(missing)"], ["(missing)"], [frame["job"][3]]]
        assert list(both[0][0]) == ["row_id", *more[1:], "score", "flagged", "compared_with_average"]
    printed = "".join(run(*args, *lower)[0] for lower in ((), ("--lower",)))
    assert "job = other (unknown) (" in printed
    assert "job = (missing) (" in printed


def test_reasons_are_what_raises_a_score_most(tmp_path: Path) -> None:
    r = np.random.default_rng(3)
    n = 400
    frame = pd.DataFrame({"age": r.integers(20, 60, n), "job": r.choice(["a", "b", "c"], n), "sum": r.normal(size=n)})
    frame.loc[::9, "sum"] = np.nan
    score = 0.1 * frame["age"] + (frame["job"] == "b") + frame["sum"].fillna(1.0) + r.normal(size=n)
    frame["bad"] = np.where(score > 5.5, "yes", "no")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    reading = "format: csv, label: bad, positive: 'yes', missing: keep, categorical: [job]"
    data = f"data={{source: {{source: {tmp_path}/rows.csv, {reading}}}, impute: keep}}"
    settings = sets(data, "model={lam: 1e-2, features: {map: bins, bins: 6}}", "cluster=none")
    folder = result_of("train", "digits", *settings, "--output", tmp_path / "runs")["run"]
    args = ("explain", folder, tmp_path / "rows.csv", "--rows", n)
    reasons = result_of(*args, "--reasons", 3)["reasons"]
    model = load_model(f"{folder}/model")
    compared = [row["compared_with_most_favourable"] for row in reasons]
    assert {part["feature"] for parts in compared for part in parts} == {"age", "job", "sum"}
    assert min(part["adds"] for parts in compared for part in parts) > 0.0  # the most favourable value is no reason
    totals = np.array([sum(part["adds"] for part in parts) for parts in compared])
    scores = np.array([row["score"] for row in reasons])
    # All three columns are shown, so the sums differ from the scores by what the best row has.
    np.testing.assert_allclose(scores - totals, (scores - totals)[0], atol=1e-9)
    average = model.reasons(frame).above_average
    assert np.abs(average[["age", "job"]].mean(axis=0)).max() < 0.05
    assert "compared with the average row: " in run(*args[:3], "--rows", 2, "--reasons", 1)[0]
    copied = ("--copy", "age", "--copy", "job")
    run(*args, "--reasons", 2, *copied, "--output", tmp_path / "a.csv")
    written, best = pd.read_csv(tmp_path / "a.csv"), reasons[0]["compared_with_most_favourable"]
    assert list(written) == ["row_id", "age", "job", "score", "flagged", *COMPARED]
    table = pd.read_csv(tmp_path / "rows.csv")
    assert written["age"].tolist() == table["age"].tolist()
    assert written["job"].tolist() == table["job"].tolist()
    for part in reasons[1]["compared_with_most_favourable"]:  # the first row has a missing number
        assert part["value"] == (
            table["job"][1] if part["feature"] == "job" else pytest.approx(frame[part["feature"]][1])
        )
    assert {part["value"] for part in best if part["feature"] == "sum"} == {None}
    assert written["compared_with_most_favourable"][0].startswith(best[0]["feature"])
    assert f"row 0, age {table['age'][0]}, job {table['job'][0]}: score " in run(*args, "--reasons", 1, *copied)[0]
    assert "the output already has a column 'row_id'" in run(*args, "--copy", "row_id", code=2)[1]
    assert "unknown column in `--copy`: 'ag'. Did you mean 'age'?" in run(*args, "--copy", "ag", code=2)[1]
    # What raises a score and what lowers it are the ends of the same range, which is that of the column.
    lowered = result_of(*args, "--reasons", 3, "--lower")["reasons"]
    for name in ("age", "job", "sum"):
        up, down = (
            [
                sum(part["adds"] for part in row["compared_with_most_favourable"] if part["feature"] == name)
                for row in rows
            ]
            for rows in (reasons, lowered)
        )
        np.testing.assert_allclose(np.subtract(up, down), max(up), atol=1e-9)
        assert max(down) <= 0.0 < -min(down)
    assert "give --reasons too" in run(*args, "--lower", code=2)[1]


def test_the_reasons_of_a_queue_tell_its_rows_apart(tmp_path: Path) -> None:
    """Rows of one pattern have the same largest reasons: these stand above the rows, and each row has what few others have."""
    r = np.random.default_rng(5)
    n = 3000
    frame = pd.DataFrame({"fault": r.choice(["me", "you"], n), "kind": r.choice(["a", "b", "c"], n)})
    frame = frame.assign(age=r.normal(size=n), sum=r.normal(size=n))
    score = 5 * (frame["fault"] == "me") + 4 * (frame["kind"] == "b") + 0.3 * frame["age"] + 0.2 * frame["sum"]
    frame["bad"] = np.where(score + r.logistic(size=n) > 8.5, "yes", "no")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    source = f"{{source: {tmp_path}/rows.csv, format: csv, label: bad, positive: 'yes', categorical: [fault, kind]}}"
    settings = sets(f"data={{source: {source}}}", "model={lam: 1e-3, features: bins}", "cluster=none")
    folder = result_of("train", "digits", *settings, "--output", tmp_path / "runs")["run"]
    args = ("explain", folder, tmp_path / "rows.csv", "--highest", 20, "--reasons", 2)
    result = result_of(*args)
    assert [(part["feature"], part["value"], part["rows"]) for part in result["queue"]] == [
        ("fault", "me", 20),
        ("kind", "b", 20),
    ]
    for row in result["reasons"]:
        assert [part["feature"] for part in row["compared_with_average"]] == ["fault", "kind"]
        assert {part["feature"] for part in row["rare_in_queue"]} <= {"age", "sum"}
        assert row["flagged"] is (row["score"] > 0)
    printed = run(*args)[0].splitlines()
    assert sum(line.startswith("all of the 20 rows: fault = me (+") for line in printed) == 1
    assert sum(line.startswith("  of these, the reasons that few rows of the queue share: ") for line in printed) == 20
    run(*args, "--output", tmp_path / "q.csv")
    table = pd.read_csv(tmp_path / "q.csv")
    assert list(table) == ["row_id", "score", "flagged", *COMPARED, "rare_in_queue"]
    assert table["compared_with_average"].str.replace(r" \(.*?\)", "", regex=True).nunique() == 1
    assert table["rare_in_queue"].nunique() > 15
    lowered = result_of(*args, "--lower")
    assert all(part["adds"] < 0.0 for row in lowered["reasons"] for part in row["rare_in_queue"])
    assert "queue" not in result_of(*args[:3], "--rows", 1)


def test_rows_that_are_new_are_not_called_training_rows(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "rows.csv")
    frame.assign(age=frame["age"] + 7.5).to_csv(tmp_path / "new.csv", index=False)
    for name, known in ((tmp_path / "new.csv", 0), (folder / "rows.csv", 100)):
        result = result_of("explain", folder / "bins", name, *SETTINGS, "--rows", 100)
        scored = result_of("score", folder / "bins", name, tmp_path / f"scored-{known}", *SETTINGS)
        assert result["training_rows"] == scored["training_rows"] == [100, known]
        for command in ("explain", "score"):
            args = (tmp_path / f"printed-{known}",) if command == "score" else ("--rows", 100)
            said = run(command, folder / "bins", name, *args, *SETTINGS)[0]
            assert ("were training rows" in said) == bool(known)
            assert (SEEN.format(100, 100) in said) == bool(known)
