"""Formulae of the documentation: TeX between dollar signs becomes MathML."""

import re
from xml.etree import ElementTree

import pytest
from support.printed import DOCS, script

formulae = script("formulae")


@pytest.mark.parametrize(
    ("tex", "inner"),
    [
        ("x_i^2", "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>"),
        ("w^*", "<msup><mi>w</mi><mo>\N{ASTERISK OPERATOR}</mo></msup>"),
        (r"\sum_{i} a", "<munder><mo>\N{N-ARY SUMMATION}</mo><mrow><mi>i</mi></mrow></munder><mi>a</mi>"),
        (r"\frac{1}{n_+}", "<mfrac><mrow><mn>1</mn></mrow><mrow><msub><mi>n</mi><mo>+</mo></msub></mrow></mfrac>"),
        (r"a \le \text{at most}", "<mi>a</mi><mo>\N{LESS-THAN OR EQUAL TO}</mo><mtext>at\N{NO-BREAK SPACE}most</mtext>"),
    ],
)  # fmt: skip
def test_a_formula_is_mathml(tex: str, inner: str) -> None:
    assert formulae.mathml(tex) == f"<math><mrow>{inner}</mrow></math>"


@pytest.mark.parametrize("tex", ["{x", "x}", r"\unknown"])
def test_a_faulty_formula_is_an_error(tex: str) -> None:
    with pytest.raises(ValueError, match=r"lacks|too many|not known"):
        formulae.mathml(tex)


def test_code_and_prices_are_left() -> None:
    text = "`$x$` costs $5 and $6\n\n```sh\necho $HOME $x$\n```\n"
    assert formulae.with_formulae(text) == text


def test_the_formulae_of_all_pages_are_well_formed() -> None:
    count = 0
    for file in (DOCS / "pages").rglob("*.md"):
        for formula in re.findall(r"<math.*?</math>", formulae.with_formulae(file.read_text(encoding="utf-8"))):
            ElementTree.fromstring(formula)
            assert "|" not in formula, "it would end a cell of a table"
            count += 1
    assert count > 20
