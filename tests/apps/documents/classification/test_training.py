"""Training on confirmed documents: cross-validated, stored as JSON, validated when it is loaded."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

from duly.apps.documents.classification.classifier import ActiveModel, classify
from duly.apps.documents.classification.evaluation import Prediction, confusion_csv, evaluate
from duly.apps.documents.classification.tfidf_model import InvalidModel, TfidfModel
from duly.apps.documents.classification.training import (
    MIN_EXAMPLES_PER_TYPE,
    Example,
    TooFewExamples,
    TrainedModel,
    train,
)
from tests.apps.documents.classification.samples import samples

_FEW = ("invoice", "reminder", "letter")


def examples(*, letters: str = "letter", count: int = 8, seed: int = 1) -> list[Example]:
    """Return examples of three types; letters may have a type of the org's own."""
    return [
        Example(one.pages, one.name, letters if one.doc_type == "letter" else one.doc_type)
        for one in samples(count, seed)
        if one.doc_type in _FEW
    ]


@pytest.fixture(scope="module")
def trained() -> TrainedModel:
    return train(examples(letters="house_notice"))


def test_a_model_learns_a_type_that_the_rules_get_wrong(trained: TrainedModel) -> None:
    assert trained.is_better
    assert trained.rules_measure.classes["house_notice"].recall == 0
    assert trained.model_measure.classes["house_notice"].recall >= 0.9
    active = ActiveModel(trained.model.version, trained.model)
    for one in examples(letters="house_notice", count=2, seed=99):
        said = classify(one.pages, one.name, active)
        assert (said.doc_type, said.review) == (one.doc_type, False)


def test_evidence_names_the_deciding_terms_and_their_pages(trained: TrainedModel) -> None:
    [one, *_] = [one for one in examples(letters="house_notice", seed=7) if one.doc_type == "house_notice"]
    said = classify(one.pages, one.name, ActiveModel("model-x", trained.model))
    assert said.model_version == "model-x"
    assert len(said.evidence) >= 3
    for term in said.evidence:
        assert term.text in " ".join(one.pages[term.page - 1].split())
        assert term.term.split()[0] in term.text.lower()


def test_the_rules_decide_on_types_that_the_model_does_not_know(trained: TrainedModel) -> None:
    active = ActiveModel(trained.model.version, trained.model)
    strange = [one for one in samples(2, seed=3) if one.doc_type not in _FEW]
    for one in strange:
        assert classify(one.pages, one.name, active).doc_type == one.doc_type


def test_a_model_no_better_than_the_rules_is_not_used() -> None:
    assert not train(examples()).is_better


def test_equal_examples_give_an_equal_model_in_any_order(trained: TrainedModel) -> None:
    again = train(reversed(examples(letters="house_notice")))
    assert again.model == trained.model
    assert again.model_measure == trained.model_measure


@pytest.mark.parametrize(
    "few",
    [
        [],
        examples()[: MIN_EXAMPLES_PER_TYPE * 2],
        [one for one in examples(count=20) if one.doc_type == "invoice"],
        examples(count=1) * 30,  # copies are one
    ],
)
def test_training_needs_enough_examples(few: Sequence[Example]) -> None:
    with pytest.raises(TooFewExamples, match="training needs 30 documents and 2 such types"):
        train(few)


def test_a_stored_model_gives_equal_scores(trained: TrainedModel) -> None:
    data = trained.model.data
    assert json.loads(data)["labels"] == list(trained.model.labels)
    again = TfidfModel.load(data, hashlib.sha256(data).hexdigest())
    one = examples(seed=4)[0]
    assert again.scores(one.counts) == trained.model.scores(one.counts)


def _changed(data: bytes, **changes: object) -> bytes:
    return json.dumps(json.loads(data) | changes).encode()


def test_a_changed_or_invalid_model_is_refused(trained: TrainedModel) -> None:
    data = trained.model.data
    sha256 = hashlib.sha256(data).hexdigest()
    with pytest.raises(InvalidModel, match="checksum does not match"):
        TfidfModel.load(_changed(data, temperature=2.0), sha256)
    for wrong in (
        b"\x80\x04\x95not a pickle either",
        _changed(data, labels=["one", "two"]),
        _changed(data, labels=["a b", "c", "d"]),
        _changed(data, temperature=0),
        _changed(data, idf={}),
        data.replace(b'"format":1', b'"format":2'),
        data.replace(b'"temperature":', b'"temperature":1e999,"x":'),
    ):
        with pytest.raises(InvalidModel, match="not a model"):
            TfidfModel.load(wrong, hashlib.sha256(wrong).hexdigest())


def test_the_confusion_matrix_adds_up(trained: TrainedModel) -> None:
    for measure in (trained.rules_measure, trained.model_measure):
        assert (
            sum(sum(row.values()) for row in measure.matrix.values()) == measure.documents == trained.examples
        )
        assert {label: sum(row.values()) for label, row in measure.matrix.items()} == {
            label: figures.support for label, figures in measure.classes.items() if figures.support
        }
    pairs = [("a", "a", 0.9), ("a", "b", 0.7), ("b", "b", 1.0), ("c", "b", 0.2)]
    figures = evaluate([Prediction(*pair) for pair in pairs])
    assert figures.matrix == {"a": {"a": 1, "b": 1}, "b": {"b": 1}, "c": {"b": 1}}
    assert (figures.accuracy, figures.macro_f1) == (0.5, 0.3889)
    b = figures.classes["b"]
    assert (b.precision, b.recall, b.f1, b.support) == (0.3333, 1.0, 0.5, 1)
    assert confusion_csv({"rules": figures}).decode().splitlines() == [
        "classifier,actual,predicted,documents", "rules,a,a,1", "rules,a,b,1", "rules,b,b,1", "rules,c,b,1",
    ]  # fmt: skip


def test_classification_imports_no_heavy_library() -> None:
    code = (
        "import sys; from duly.apps.documents.classification import jobs, service; "
        "from duly.apps.documents.classification.classifier import classify; classify('Rechnung'); "
        "assert not {'sklearn', 'numpy', 'scipy', 'reportlab'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
