"""What is learned from confirmed documents: measured on others, kept as data, read without trust."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

from duly.apps.documents.classification.classifier import Active, classify
from duly.apps.documents.classification.evaluation import Judged, as_csv, measured
from duly.apps.documents.classification.tfidf_model import Model, ModelRefused
from duly.apps.documents.classification.training import LEAST_EACH, Example, TooFew, Trained, train
from tests.apps.documents.classification.samples import samples

_FEW = ("invoice", "reminder", "letter")


def examples(*, letters: str = "letter", count: int = 8, seed: int = 1) -> list[Example]:
    """Of three types; letters may go by a name of the org's own."""
    return [
        Example(one.pages, one.name, letters if one.doc_type == "letter" else one.doc_type)
        for one in samples(count, seed)
        if one.doc_type in _FEW
    ]


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train(examples(letters="house_notice"))


def test_a_type_that_the_rules_get_wrong_is_learned(trained: Trained) -> None:
    assert trained.is_better
    assert trained.ruled.classes["house_notice"].recall == 0
    assert trained.learned.classes["house_notice"].recall >= 0.9
    active = Active(trained.model.version, trained.model)
    for one in examples(letters="house_notice", count=2, seed=99):
        said = classify(one.pages, one.name, active)
        assert (said.doc_type, said.review) == (one.doc_type, False)


def test_the_terms_that_decided_are_named_where_they_stand(trained: Trained) -> None:
    [one, *_] = [one for one in examples(letters="house_notice", seed=7) if one.doc_type == "house_notice"]
    said = classify(one.pages, one.name, Active("model-x", trained.model))
    assert said.model_version == "model-x"
    assert len(said.evidence) >= 3
    for term in said.evidence:
        assert term.text in " ".join(one.pages[term.page - 1].split())
        assert term.term.split()[0] in term.text.lower()


def test_what_a_model_cannot_know_is_left_to_the_rules(trained: Trained) -> None:
    active = Active(trained.model.version, trained.model)
    strange = [one for one in samples(2, seed=3) if one.doc_type not in _FEW]
    for one in strange:
        assert classify(one.pages, one.name, active).doc_type == one.doc_type


def test_rules_that_are_as_good_stay_in_use() -> None:
    assert not train(examples()).is_better


def test_the_same_labels_make_the_same_model_in_any_order(trained: Trained) -> None:
    again = train(reversed(examples(letters="house_notice")))
    assert again.model == trained.model
    assert again.learned == trained.learned


@pytest.mark.parametrize(
    "few",
    [
        [],
        examples()[: LEAST_EACH * 2],
        [one for one in examples(count=20) if one.doc_type == "invoice"],
        examples(count=1) * 30,  # copies are one
    ],
)
def test_too_few_labels_teach_nothing(few: Sequence[Example]) -> None:
    with pytest.raises(TooFew, match="it takes 30 documents and 2 such types"):
        train(few)


def test_a_model_is_kept_as_plain_data_and_says_the_same_again(trained: Trained) -> None:
    data = trained.model.data
    assert json.loads(data)["labels"] == list(trained.model.labels)
    again = Model.read(data, hashlib.sha256(data).hexdigest())
    one = examples(seed=4)[0]
    assert again.scores(one.counts) == trained.model.scores(one.counts)


def _changed(data: bytes, **changes: object) -> bytes:
    return json.dumps(json.loads(data) | changes).encode()


def test_what_is_not_the_model_that_was_trained_is_refused(trained: Trained) -> None:
    data = trained.model.data
    sha256 = hashlib.sha256(data).hexdigest()
    with pytest.raises(ModelRefused, match="not what was trained"):
        Model.read(_changed(data, temperature=2.0), sha256)
    for wrong in (
        b"\x80\x04\x95not a pickle either",
        _changed(data, labels=["one", "two"]),
        _changed(data, labels=["a b", "c", "d"]),
        _changed(data, temperature=0),
        _changed(data, idf={}),
        data.replace(b'"format":1', b'"format":2'),
        data.replace(b'"temperature":', b'"temperature":1e999,"x":'),
    ):
        with pytest.raises(ModelRefused, match="no model"):
            Model.read(wrong, hashlib.sha256(wrong).hexdigest())


def test_a_matrix_adds_up(trained: Trained) -> None:
    for measure in (trained.ruled, trained.learned):
        assert (
            sum(sum(row.values()) for row in measure.matrix.values()) == measure.documents == trained.examples
        )
        assert {label: sum(row.values()) for label, row in measure.matrix.items()} == {
            label: figures.support for label, figures in measure.classes.items() if figures.support
        }
    judged = [Judged("a", "a", 0.9), Judged("a", "b", 0.7), Judged("b", "b", 1.0), Judged("c", "b", 0.2)]
    figures = measured(judged)
    assert figures.matrix == {"a": {"a": 1, "b": 1}, "b": {"b": 1}, "c": {"b": 1}}
    assert (figures.accuracy, figures.macro_f1) == (0.5, 0.3889)
    b = figures.classes["b"]
    assert (b.precision, b.recall, b.f1, b.support) == (0.3333, 1.0, 0.5, 1)
    assert as_csv({"rules": figures}).decode().splitlines() == [
        "classifier,actual,predicted,documents", "rules,a,a,1", "rules,a,b,1", "rules,b,b,1", "rules,c,b,1",
    ]  # fmt: skip


def test_saying_what_a_document_is_takes_no_heavy_library() -> None:
    code = (
        "import sys; from duly.apps.documents.classification import store, jobs; "
        "from duly.apps.documents.classification.classifier import classify; classify('Rechnung'); "
        "assert not {'sklearn', 'numpy', 'scipy', 'reportlab'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
