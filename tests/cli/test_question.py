"""The language of questions: whatever a column or a value is called, what was written is what is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyorder.cli.question import (
    Among,
    Asked,
    Compared,
    Is,
    QuestionPart,
    Within,
    parse_evidence,
    parse_names,
    parse_question,
    write_question,
)
from anyorder.errors import InputError

WORDS = st.text(min_size=0, max_size=12) | st.sampled_from(
    ["in", "a in (b", "a..b", "..", ".", "<=50K", "O'Brien", '"', "''", "x=", "|"]
)
ENDS = st.tuples(st.none() | WORDS, st.none() | WORDS).filter(lambda ends: ends != (None, None))
WANTED = st.tuples(st.just(Is), st.tuples(WORDS)) | st.tuples(st.just(Within), ENDS)
WANTED |= st.tuples(st.just(Compared), st.tuples(st.sampled_from(["<", ">", "!="]), WORDS))
WANTED |= st.tuples(st.just(Among), st.tuples(st.lists(WORDS, min_size=1, max_size=3).map(tuple)))
NAMES = st.lists(WORDS, min_size=1, max_size=5, unique=True)


@given(NAMES, st.data())
def test_what_was_written_is_what_is_read(names, data):
    cut = data.draw(st.integers(1, len(names)))
    wanted = [data.draw(WANTED if place >= cut else st.none() | WANTED) for place in range(len(names))]
    parts = [QuestionPart(name, kind and kind[0](*kind[1])) for name, kind in zip(names, wanted, strict=True)]
    asked = Asked(tuple(parts[:cut]), tuple(parts[cut:]))
    assert parse_question(write_question(asked)) == asked


@given(st.text(max_size=30) | st.text("ab=|,.()\"' in<>!", max_size=20))
def test_any_text_is_read_or_refused_with_a_reason(text):
    try:
        asked = parse_question(text)
    except InputError:
        return
    assert parse_question(write_question(asked)) == asked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("income", Asked((QuestionPart("income"),))),
        ("income|age=39", Asked((QuestionPart("income"),), (QuestionPart("age", Is("39")),))),
        (
            " income , age | city = New York ",
            Asked((QuestionPart("income"), QuestionPart("age")), (QuestionPart("city", Is("New York")),)),
        ),
        ("income=<=50K", Asked((QuestionPart("income", Is("<=50K")),))),
        ("hours per week=30.5 .. 40", Asked((QuestionPart("hours per week", Within("30.5", "40")),))),
        ("a=..-3", Asked((QuestionPart("a", Within(None, "-3")),))),
        ("a=2020-01-01..", Asked((QuestionPart("a", Within("2020-01-01", None)),))),
        ("a | b=1.., c=2", Asked((QuestionPart("a"),), (QuestionPart("b", Within("1", None)), QuestionPart("c", Is("2"))))),
        ("city in (Oslo, 'Washington, D.C.')", Asked((QuestionPart("city", Among(("Oslo", "Washington, D.C."))),))),
        ("born in in(Oslo)", Asked((QuestionPart("born in", Among(("Oslo",))),))),
        ('\'a | b\'="he said ""no"""', Asked((QuestionPart("a | b", Is('he said "no"')),))),
        ("name=O'Brien | größe='1..2'", Asked((QuestionPart("name", Is("O'Brien")),), (QuestionPart("größe", Is("1..2")),))),
        ("note=''", Asked((QuestionPart("note", Is("")),))),
        ("income=>50K | age>60", Asked((QuestionPart("income", Is(">50K")),), (QuestionPart("age", Compared(">", "60")),))),
        ("a>=1, b <= 2", Asked((QuestionPart("a", Within("1", None)), QuestionPart("b", Within(None, "2"))))),
        ("a<-1, b != 'x y'", Asked((QuestionPart("a", Compared("<", "-1")), QuestionPart("b", Compared("!=", "x y"))))),
    ],
)
def test_the_grammar(text, expected):
    assert parse_question(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a column at place 1"),
        ("income |", "expected the name of a column at place 9"),
        ("income | age=", "expected a value after = at place 14"),
        ("income | age", r"'age' is given without a value. Write age=..., age=low..high, age>low or age in \(a, b\)"),
        ("a | b=1 | c=2", r'more than one "\|"'),
        ("a | city in (Oslo", r'a "\)" is missing'),
        ("a | city in ()", "expected a value between the brackets"),
        ("a | city in (Oslo) or so", "'or so' after the bracket is not understood"),
        ("a | city='Oslo", "the quote ' at place 10 is not closed"),
        ("a | city='Oslo' x", "'x' after 'Oslo' is not understood"),
        ("a | age >", "expected a value after > at place 10"),
        ("a | age > 30 .. 40 | b", "more than one"),
        ("a, b | a=3", "'a' stands 2 times. Name every column once"),
        ("a=..", "expected a value after .. at place 5"),
    ],
)
def test_what_cannot_be_read_is_explained(text, message):
    with pytest.raises(InputError, match=message):
        parse_question(text)


def test_evidence_and_names():
    assert parse_evidence(["city=Oslo", "age=3..4, sex=F"]) == (
        QuestionPart("city", Is("Oslo")),
        QuestionPart("age", Within("3", "4")),
        QuestionPart("sex", Is("F")),
    )
    assert parse_names(["a, 'b, c'", "d"]) == ["a", "b, c", "d"]
    with pytest.raises(InputError, match=r"Got 'a=3'; expected names of columns only, such as a\."):
        parse_names(["a=3"])
    with pytest.raises(InputError, match="a meaning in `anyorder ask` only"):
        parse_evidence(["a=3 | b=4"])
    with pytest.raises(InputError, match="'a' is given without a value"):
        parse_evidence(["a"])


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(
    ("sign", "wanted"),
    [
        (">", Compared(">", "4000")),
        ("<", Compared("<", "4000")),
        ("!=", Compared("!=", "4000")),
        ("≠", Compared("!=", "4000")),
        (">=", Within("4000", None)),
        ("≥", Within("4000", None)),
        ("<=", Within(None, "4000")),
        ("≤", Within(None, "4000")),
        ("=", Is("4000")),
        ("==", Is("4000")),
    ],
)
def test_every_comparison_with_and_without_blanks(sign, wanted, blank):
    text = f"body_mass_g{blank}{sign}{blank}4000"
    assert parse_question(text).targets == (QuestionPart("body_mass_g", wanted),)
    assert parse_question(f"species | {text}").given == (QuestionPart("body_mass_g", wanted),)
