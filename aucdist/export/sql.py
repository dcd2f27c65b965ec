"""Write a model as one query in standard SQL.

The query has stages, and each is a named table of its WITH clause: the columns as numbers and texts, the features and their
scaling where the score needs them, the score, and the probability. Numbers have double precision. All names and texts that come
from a model or a user are quoted, so that they cannot change the query.

The functions at the beginning write expressions that all supported systems evaluate alike: names, texts, numbers, sums, cases,
dates and scores.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aucdist.data.formats.table_options import ANY_CASE, MISSING_CATEGORY, Spelling
from aucdist.errors import InputError
from aucdist.export.portable import (
    AS_MISSING,
    REFUSE,
    Kernel,
    Linear,
    Portable,
    PortableColumn,
    TreeNode,
    Trees,
    describe_model,
    free_name,
    other_spellings,
    trees_of,
)
from aucdist.export.probability import TargetLanguage, Term, probability_of
from aucdist.maps.explain import Additive
from aucdist.model.files import as_model
from aucdist.model.linear_model import LinearModel
from aucdist.probability.links import IsotonicMap

NAME_PART = re.compile(r'"(?:[^"]|"")*"|[^".]+')
DAY_OF_EPOCH = 2440588
"""The Julian day of 1970-01-01, a Thursday. The Julian day of each Monday is a multiple of 7."""


def identifier(name: str) -> str:
    """Return a name in SQL quotes.

    Raises
    ------
    InputError
        If the name is empty or contains the character NUL.
    """
    if not name or "\0" in name:
        raise InputError(
            f"{name!r} cannot be a name in SQL: rename the column; a name must not be empty or contain NUL"
        )
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> str:
    """Return the name of a table in SQL quotes. Dots separate schema and table, except within quotes.

    Raises
    ------
    InputError
        If the text is not the name of a table.
    """
    parts = NAME_PART.findall(name)
    whole = ".".join(parts)
    if not parts or whole != name:
        raise InputError(
            f'{name!r} is not the name of a table: give clicks, sales.clicks or "a.b" (in quotes, with a dot)'
        )
    plain = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
    return ".".join(identifier(part) for part in plain)


def text(value: str) -> str:
    """Return a string in SQL quotes.

    Raises
    ------
    InputError
        If the string contains the character NUL, which strings in SQL cannot contain.
    """
    if "\0" in value:
        raise InputError(
            f"{value!r} has the character NUL, which a string in SQL cannot contain: replace it, or export to json"
        )
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """Return a number with the shortest digits that restore the same float.

    It has an exponent, so that SQL reads it as a double.
    """
    if not math.isfinite(value):
        raise InputError(f"{value} cannot be written as a number in SQL: export to json")
    digits = repr(float(value)).upper()
    digits = digits if "E" in digits else f"{digits}E0"
    return f"({digits})" if digits.startswith("-") else digits


def total(terms: Sequence[str]) -> str:
    """Return the sum of terms. It is bracketed by halves, because some systems do not accept thousands of terms in a row."""
    if len(terms) <= 4:
        between = "\n    + " if any("CASE" in term for term in terms) else " + "  # a line for each case
        return between.join(terms) if terms else number(0.0)
    middle = len(terms) // 2
    return f"({total(terms[:middle])})\n    + ({total(terms[middle:])})"


def case(cases: Iterable[tuple[str, str]], otherwise: str) -> str:
    """Return ``CASE WHEN condition THEN value ... ELSE otherwise END``. Without cases, this is `otherwise`."""
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in cases)
    return f"CASE {whens} ELSE {otherwise} END" if whens else otherwise


def one_of(expression: str, values: Iterable[str]) -> str:
    """Return the condition that an expression is equal to one of some strings."""
    return f"{expression} IN ({', '.join(text(value) for value in values)})"


def date_part(timestamp: str, part: str) -> str:
    """Return a part of a date, one of `aucdist.data.dataset.PARTS`, as a number of double precision.

    Parameters
    ----------
    timestamp : str
        The expression of a timestamp without a time zone.
    part : str
        The name of the part.
    """

    def field(name: str) -> str:
        """Return the expression that extracts a field of the timestamp."""
        return f"CAST(EXTRACT({name} FROM {timestamp}) AS DOUBLE PRECISION)"

    if part in ("year", "month"):
        return field(part.upper())
    if part == "hour":
        return f"({field('HOUR')} + {field('MINUTE')} / 6E1)"
    # The Julian day of the Gregorian calendar: years begin in March, so that leap days end them.
    early = f"FLOOR((14 - {field('MONTH')}) / 1.2E1)"
    y, m = f"({field('YEAR')} + 4800 - {early})", f"({field('MONTH')} + 12 * {early} - 3)"
    days = f"FLOOR((153 * {m} + 2) / 5E0) + 365 * {y} + FLOOR({y} / 4E0) - FLOOR({y} / 1E2) + FLOOR({y} / 4E2)"
    day = f"({field('DAY')} + {days} - 32045)"
    if part == "weekday":
        return f"({day} - 7E0 * FLOOR({day} / 7E0))"
    seconds = f"({field('HOUR')} * 3.6E3 + {field('MINUTE')} * 6E1 + {field('SECOND')})"
    return f"({day} - {DAY_OF_EPOCH}E0 + {seconds} / 8.64E4)"


MAX_PRODUCTS = 200_000
"""The largest number of landmarks times features. A larger query would have tens of megabytes."""
OPERATIONS = {
    "Add": "({} + {})", "Sub": "({} - {})", "Mul": "({} * {})", "Div": "({} / {})", "Neg": "(-{})", "Abs": "ABS({})",
    "Exp": "EXP({})", "Log": "LN({})", "Greater": "{} > {}", "Less": "{} < {}", "Where": "CASE WHEN {} THEN {} ELSE {} END",
}  # fmt: skip
BOOLEAN_TEXTS = (("true", ("true", "t", "yes")), ("false", ("false", "f", "no")))
"""Texts of booleans, and the texts that DuckDB and others read as booleans if a column has no other values."""


def to_sql(model: Any, *, table: str = "rows", ids: Sequence[str] = (), contributions: bool = False) -> str:
    """Return a query in standard SQL that gives the scores of the rows of a table.

    Parameters
    ----------
    model : estimator or LinearModel
        A fitted estimator of aucdist, or a model.
    table : str, default="rows"
        The table, which has a column for each column of the training data that the model reads. A dot stands between schema
        and table.
    ids : sequence of str, default=()
        Columns of the table that the query returns with the scores. If empty, these are the columns that the model reads.
    contributions : bool, default=False
        Whether the query returns columns ``adds_...``: what each feature and each interaction adds to the score, and the
        constant. Their sum is the score. It is equal to the last bit if a system adds them in the order of the query's
        brackets.

    Returns
    -------
    str
        A SELECT of these columns, ``score``, ``probability`` if the model has one, and ``prediction`` (1 or -1). If a column
        of the table has the same name, an underscore is appended. Rows that `aucdist score` refuses have NULL. For several
        classes the query has ``prediction``, and for each class columns such as ``score sports`` and ``probability sports``.

    Raises
    ------
    InputError
        If a name is not possible in SQL, or if SQL cannot express the model: one that hashes strings, that has too many
        landmarks, or that mixes features if contributions are asked for. For several classes, neither landmarks nor
        contributions are possible.

    Examples
    --------
    >>> import sqlite3
    >>> import numpy as np
    >>> from aucdist.data.dataset import Schema
    >>> from aucdist.data.preprocess import Preprocessor
    >>> from aucdist.model.linear_model import ClassWeights, LinearModel
    >>> from aucdist.export import to_sql
    >>> schema = Schema(("age", "income"), "clicked", ("yes",), ("no",), {})
    >>> scaling = Preprocessor((), "none", None, None)
    >>> model = LinearModel((ClassWeights(np.array([0.5, -0.5]), 0.5, {}),), schema, scaling)
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE clicks AS SELECT 1 AS id, 2.0 AS age, 4.0 AS income")
    >>> database.execute(to_sql(model, table="clicks", ids=["id"])).fetchall()  # id, score, prediction
    [(1, -0.5, -1)]
    >>> database.close()
    """
    if isinstance(ids, str):
        raise InputError(f"ids takes a list of columns, and {ids!r} is a string: give [{ids!r}]")
    model = as_model(model)
    described_classes, added = describe_model(model, "sql", contributions=contributions)
    first = described_classes[0]
    if isinstance(first.score, Kernel):
        if model.classes:
            raise InputError("the query for the landmarks of several classes would be too long: export to onnx or json")
        if first.score.landmarks.size > MAX_PRODUCTS:
            raise InputError(
                f"{len(first.score.landmarks)} landmarks of {first.score.landmarks.shape[1]} features would make the query too "
                "long: export to onnx or json, or train with fewer landmarks"
            )
    query = Query(first, table_name(table), list(ids) or [column.name for column in first.columns])
    query.read_cells()
    if first.unit_rows or first.with_logs or isinstance(first.score, Kernel):
        query.make_features()
    return query.with_scores(model, described_classes, added)


@dataclass
class Query(TargetLanguage):
    """A query under construction, stage by stage. Formulas of probabilities add stages as well, each with one more number.

    Attributes
    ----------
    described : Portable
        The description of the model.
    source : str
        The quoted name of the table, or of the last stage.
    carried : list of str
        The columns that are returned with the scores.
    stages : list of str
        The named tables of the WITH clause.
    values : list of str
        The expression of each feature's value in the last stage.
    aliases : list of str
        The names of the numbers in the last stage.
    """

    described: Portable
    source: str
    carried: list[str]
    stages: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        twice = [name for name in self.carried if self.carried.count(name) > 1]
        if twice:
            raise InputError(f"column {twice[0]!r} is named twice: name it once")
        self._names = {name.casefold() for name in self.carried}
        self._tables = {self.source.rpartition('"."')[2].strip('"').casefold()}
        self._texts: dict[int, str] = {}  # the alias of each column of categories
        self._apart = f"COUNT(*) OVER () AS {self.alias('n')}"
        self._refused: list[tuple[str, str]] = []  # the cases in which a row has no score

    def add(self, name: str, selected: dict[str, str], keep: Sequence[str] = ()) -> None:
        """Add a stage that selects the carried columns, some numbers of the last stage, and expressions by their names.

        PostgreSQL substitutes the expressions of a stage wherever the next stage names them. Over many stages, planning would
        then take minutes. It does not do this for stages that count rows, so each stage has a count. PostgreSQL and the other
        systems leave it out of the computation, because nothing uses it.
        """
        stage = free_name(name, self._tables, str.casefold)
        columns = [*(identifier(column) for column in self.carried), *keep]
        columns += [*(f"{expression} AS {alias}" for alias, expression in selected.items()), self._apart]
        self.stages.append(f"{stage} AS (\n  SELECT\n    " + ",\n    ".join(columns) + f"\n  FROM {self.source}\n)")
        self.source, self.aliases = stage, [*keep, *selected]

    def alias(self, name: str) -> str:
        """Return a name that differs from the names of all carried columns."""
        return free_name(name, self._names, str.casefold)

    def number(self, value: Any) -> str:
        """Return a number of double precision."""
        return number(value)

    def operation(self, operator: str, *parts: str, **options: Any) -> str:
        """Return an expression."""
        return OPERATIONS[operator].format(*parts)

    def kept(self, part: str, name: str) -> str:
        """Add a stage with a number, and return its name."""
        if part in self.aliases:
            return part
        alias = self.alias(name)
        self.add(f"with_{name}", {alias: part}, self.aliases)
        return alias

    def interpolated(self, points: IsotonicMap, score: str) -> str:
        """Return the probability between the points of a calibration."""
        x, p = points.scores, points.probabilities
        cases = [(f"{score} < {number(x[0])}", number(p[0]))]
        for k in np.flatnonzero(np.diff(x) > 0):
            # a slope that overflows is replaced by a step
            with np.errstate(over="ignore"):
                slope = (p[k + 1] - p[k]) / (x[k + 1] - x[k])
            rises = slope != 0 and np.isfinite(slope)
            line = f"{number(p[k])} + {number(slope)} * ({score} - {number(x[k])})" if rises else number(p[k])
            cases.append((f"{score} < {number(x[k + 1])}", line))
        return case(cases, number(p[-1]))

    def read_cells(self) -> None:
        """Add the stage that reads the columns: categories as texts, and all others as numbers."""
        selected = dict[str, str]()
        refused: list[str] = []  # the conditions under which a row has no score
        features, spelling = self.described.features, self.described.spelling
        self.values = [""] * len(features)
        for i, column in enumerate(self.described.columns):
            cell, own_features = identifier(column.name), self.described.features_by_column[i]
            if column.kind == "category":
                alias = self._texts[i] = self.alias(f"c{i}")
                selected[alias] = _category_text(cell, column, spelling.words)
                for j in own_features:
                    is_one = self.is_category(i, str(features[j].item))
                    self.values[j] = case([(is_one, number(1.0))], number(0.0))
                refused += [f"{alias} IS NULL"] * (column.if_missing == REFUSE)
                refused += [f"NOT {one_of(alias, column.values)}"] * (column.if_unknown == REFUSE)
                continue
            for j in own_features:
                feature = features[j]
                if column.kind == "date":
                    value = date_part(_converted(cell, "TIMESTAMP", spelling), str(feature.item))
                else:
                    value = _converted(cell, "DOUBLE PRECISION", spelling)
                    for absent in spelling.missing_numbers:
                        value = f"NULLIF({value}, {number(absent)})"
                if feature.fill is not None:
                    value = f"COALESCE({value}, {number(feature.fill)})"
                x = self.values[j] = self.alias(f"x{j}")
                selected[x] = value
                refused += [f"{x} IS NULL"] * feature.required + [f"{x} <= {number(-1.0)}"] * feature.logged
        self.add("cells", selected)
        # Each condition is a case of its own, because some systems do not accept thousands of conditions joined by OR.
        self._refused = [(condition, "NULL") for condition in refused]

    def is_category(self, column: int, value: str) -> str:
        """Return the condition that a column has a given category."""
        alias = self._texts[column]
        return f"{alias} IS NULL" if value == MISSING_CATEGORY else f"{alias} = {text(value)}"

    def make_features(self) -> None:
        """Add the stages that compute all features as numbers.

        They take logarithms and divide rows by their length where the model does so.
        """
        flag = self.alias("refused")
        selected = {flag: case(self._refused, "0")}
        names = [self.alias(f"f{j}") for j in range(len(self.values))]
        for j, value in enumerate(self.values):
            # log(1 + x) to full precision near 0 (after Kahan), NULL where there is none.
            if j in self.described.with_logs:
                more = f"({number(1.0)} + {value})"
                logged = f"LN({more}) * {value} / ({more} - {number(1.0)})"
                value = f"CASE WHEN {more} = {number(1.0)} THEN {value} WHEN {more} > 0 THEN {logged} END"
            selected[names[j]] = value
        self.add("features", selected)
        if self.described.unit_rows:
            square = self._add_square("lengths", names)
            length = case([(f"{square} > 0", f"SQRT({square})")], number(1.0))
            self.add("scaled", {name: f"{name} / {length}" for name in names}, [flag])
        self.values, self._texts, self._refused = names, {}, [(f"{flag} IS NULL", "NULL")]

    def _add_square(self, stage: str, names: Sequence[str]) -> str:
        """Add a stage with the sum of the squares of features, and return its name."""
        square = self.alias("square")
        self.add(stage, {square: total([f"{name} * {name}" for name in names])}, self.aliases)
        return square

    def _unless_refused(self, expression: str) -> str:
        # PostgreSQL reads numbers of bins without an exponent as decimals
        expression = f"CAST({expression} AS DOUBLE PRECISION)"
        return case(self._refused, expression)

    def score_of(self, described: Portable) -> str:
        """Return the score of rows that are not refused, from the values of the last stage."""
        score = described.score
        if isinstance(score, Kernel):
            *z, square = self.values
            terms = [number(score.constant)]
            terms += [f"{number(weight)} * {name}" for weight, name in zip(score.weights, z, strict=True) if weight]
            for landmark, amount in zip(score.landmarks, score.amounts, strict=True):
                products = [f"{number(2.0 * place)} * {name}" for place, name in zip(landmark, z, strict=True) if place]
                distance = f"{total([number(-float(landmark @ landmark)), *products])} - {square}"
                # Rounding can make a distance slightly negative, and some systems raise an error if exp underflows.
                exponent = f"GREATEST(LEAST(({distance}) / {number(score.width**2)}, 0E0), -7E2)"
                terms.append(f"{number(amount)} * EXP({exponent})")
            return total(terms)
        if isinstance(score, Trees):
            return total([number(score.constant), *map(self._tree, score.trees)])
        adds, interactions = self._adds(score)
        constant, terms = score.constant, []
        for i, features in enumerate(described.features_by_column):
            added = [(j, *adds[j]) for j in features if j in adds]
            if i not in self._texts:
                terms += [expression for _, expression, _, _ in added]
                continue
            # one CASE expression for all features of a categorical column
            constant += sum(at_zero for _, _, at_zero, _ in added)
            cases = [
                (self.is_category(i, str(described.features[j].item)), number(at_one - at_zero))
                for j, _, at_zero, at_one in added
                if at_one != at_zero
            ]
            if cases:
                terms.append(case(cases, number(0.0)))
        return total([number(constant), *terms, *interactions])

    def _adds(self, score: Linear | Additive) -> tuple[dict[int, tuple[str, float, float]], list[str]]:
        """Return what features and interactions add to the score.

        Returns
        -------
        tuple (dict, list of str)
            For each feature an expression, and the numbers that it adds at the values 0 and 1. Then an expression for each
            interaction.
        """
        if isinstance(score, Linear):
            weights = enumerate(zip(self.values, score.weights, score.centers, strict=True))
            return {
                j: (
                    f"{number(w)} * ({value} - {number(c)})" if c else f"{number(w)} * {value}",
                    w * (0.0 - c),
                    w * (1.0 - c),
                )
                for j, (value, w, c) in weights
            }, []
        adds, expressions = {}, map(self._tree, trees_of(score))
        for shape in score.shapes:
            at = [float(shape.values[np.searchsorted(shape.edges, x)]) for x in (0.0, 1.0)]
            adds[shape.feature] = (next(expressions), at[0], at[1])
        return adds, list(expressions)

    def _tree(self, node: TreeNode) -> str:
        if isinstance(node, float):
            return number(node)
        value, then, otherwise = self.values[node.feature], self._tree(node.then), self._tree(node.otherwise)
        test = f"{value} IS NOT NULL" if node.at_most == np.inf else f"{value} <= {number(node.at_most)}"
        return case([(f"{test} OR {value} IS NULL" if node.missing_to_then else test, then)], otherwise)

    def with_scores(
        self, model: LinearModel, described_classes: Sequence[Portable], contributions: Sequence[str]
    ) -> str:
        """Add the stages of contributions, scores, probabilities and the prediction, and return the whole query.

        `contributions` has the names of the contributions, and the last is that of the constant. It is empty if they are not
        returned.
        """
        if isinstance(self.described.score, Kernel):
            kernel, names = self.described.score, [self.alias(f"z{j}") for j in range(len(self.values))]
            scaled = zip(names, self.values, kernel.centers, kernel.scales, strict=True)
            centred = {z: f"({x} - {number(center)}) * {number(scale)}" for z, x, center, scale in scaled}
            # The first alias is the flag of refused rows, which is kept.
            self.add("centred", centred, self.aliases[:1])
            self.values = [*names, self._add_square("squared", names)]
        adds = [identifier(self.alias(name)) for name in contributions]
        if adds:
            terms = self.described.score
            assert isinstance(terms, Linear | Additive)
            of_features, others = self._adds(terms)
            parts = [*(expression for expression, _, _ in of_features.values()), *others, number(terms.constant)]
            self.add("parts", dict(zip(adds, map(self._unless_refused, parts), strict=True)))
        s = [self.alias(f"s{k}") for k in range(len(described_classes))]
        selected = dict.fromkeys(s, total(adds))
        for name, described, spread in () if adds else zip(s, described_classes, model.spreads, strict=True):
            score = self.score_of(described)
            selected[name] = self._unless_refused(score if spread == 1.0 else f"({score}) / {number(spread)}")
        self.add("scored", selected, adds)
        suffixes = [f" {name}" for name in model.classes] or [""]
        best, outputs = s, dict(zip(s, (f"score{suffix}" for suffix in suffixes), strict=True))
        if all(weights.probability is not None for weights in model.weights):
            best = [self.alias(f"p{k}") for k in range(len(s))]
            for k, weights in enumerate(model.weights):
                assert weights.probability is not None
                probability = probability_of(Term(self, s[k]), weights.probability).name
                probability = case([(f"{s[k]} IS NULL", "NULL")], probability)
                self.add("probable", {best[k]: probability}, [*adds, *s, *best[:k]])
            if model.classes and not model.topics:
                sums = self.alias("sums")
                self.add("summed", {sums: total(best)}, self.aliases)
                equal = number(1.0 / len(best))
                shares = {p: case([(f"{sums} > 0", f"{p} / {sums}"), (f"{sums} IS NULL", "NULL")], equal) for p in best}
                self.add("shared", shares, s)
            outputs |= dict(zip(best, (f"probability{suffix}" for suffix in suffixes), strict=True))
        quoted = identifier if model.classes else str  # names of classes need quotes
        columns = [f"{name} AS {quoted(self.alias(output))}" for name, output in outputs.items()]
        if not model.classes:
            prediction = f"CASE WHEN {s[0]} > 0 THEN 1 WHEN {s[0]} <= 0 THEN -1 END"
        elif model.topics:
            alarms = [
                case([(f"{name} > 0", text(f",{topic}"))], "''") for name, topic in zip(s, model.classes, strict=True)
            ]
            prediction = case([(f"{s[0]} IS NULL", "NULL")], f"SUBSTR({' || '.join(alarms)}, 2)")
        else:
            most = self.alias("most")
            self.add("compared", {most: _greatest(best)}, self.aliases)
            first = [(f"{value} = {most}", text(name)) for value, name in zip(best, model.classes, strict=True)]
            prediction = case(first, "NULL")
        predicted = f"{prediction} AS {self.alias('prediction')}"
        columns = [predicted, *columns] if model.classes else [*columns, predicted, *adds]
        last = "SELECT\n  " + ",\n  ".join([*map(identifier, self.carried), *columns]) + f"\nFROM {self.source}"
        return "WITH " + ", ".join(self.stages) + f"\n{last}\n"


def _greatest(values: Sequence[str]) -> str:
    """Return the largest of several values.

    It is computed by halves, because some systems do not accept hundreds of arguments.
    """
    if len(values) <= 32:
        return f"GREATEST({', '.join(values)})"
    middle = len(values) // 2
    return f"GREATEST({_greatest(values[:middle])}, {_greatest(values[middle:])})"


def _converted(cell: str, kind: str, spelling: Spelling) -> str:
    """Return a value of the table as a number or a timestamp. It is NULL where a text says that the value is missing.

    One such text may have made a system store the whole column as texts, which it cannot convert to numbers directly. Values
    that are numbers already must not be converted to text and back, because SQLite writes only 15 digits.
    """
    words = dict.fromkeys(word.lower() for word in (*ANY_CASE, *spelling.words))
    # IN is avoided, because DuckDB executes it as a join, which would take gigabytes for hundreds of columns.
    missing = f"{text('|'.join(['', *words, '']))} LIKE '%|' || LOWER(TRIM(CAST({cell} AS VARCHAR))) || '|%'"
    return case([(missing, "NULL")], f"CAST({cell} AS {kind})")


def typed_spellings(categories: Sequence[str]) -> dict[str, str]:
    """Return the texts that categories may have after a system has typed the columns of a file, with the category each one means.

    Yes and No may have become booleans, whose texts are true and false. Whole numbers may have become 1.0, or 1.0 may have
    become 1.
    """
    others = other_spellings(categories)
    for typed, spellings in BOOLEAN_TEXTS:
        spelled = [value for value in categories if value.lower() in spellings]
        if len(spelled) == 1:
            others[typed] = spelled[0]
    return {typed: value for typed, value in others.items() if typed not in categories}


def _category_text(cell: str, column: PortableColumn, words: Sequence[str]) -> str:
    """Return a value of a column of categories as text.

    It is NULL where the value is missing, or unknown and treated as missing.
    """
    value = f"TRIM(CAST({cell} AS VARCHAR))"
    typed = [(f"{value} = {text(other)}", text(category)) for other, category in typed_spellings(column.values).items()]
    value = case(typed, value)
    missing = f"LOWER({value}) IN ({', '.join(text(word) for word in (*ANY_CASE, MISSING_CATEGORY))})"
    if others := [word for word in words if word not in column.values]:
        missing = f"{missing} OR {one_of(value, others)}"
    if column.if_unknown == AS_MISSING:
        known = [value for value in column.values if value != MISSING_CATEGORY]
        return case([(missing, "NULL"), (one_of(value, known), value)], "NULL") if known else "NULL"
    return case([(missing, "NULL")], value)
