"""A blob reference has exactly one spelling, and a malformed one cannot be built."""

import pickle
from uuid import UUID

import pytest

from duly.blobs import BadBlobRef, BlobCorrupted, BlobError, BlobNotFound, BlobRef

ORG = UUID("0190b6a0-0000-7000-8000-000000000001")
SHA = "ab" + "0" * 62


def test_a_ref_is_parsed_from_its_text() -> None:
    ref = BlobRef(ORG, SHA, 12)
    assert str(ref) == f"blob:{ORG}/{SHA}/12"
    assert BlobRef.parse(str(ref)) == ref


def test_the_key_is_prefixed_by_the_organisation() -> None:
    assert BlobRef(ORG, SHA, 12).key == f"org/{ORG}/ab/{SHA}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "blob:",
        f"{ORG}/{SHA}/12",
        f"BLOB:{ORG}/{SHA}/12",
        f"blob:{ORG}/{SHA}",
        f"blob:{ORG}/{SHA}/",
        f"blob:{ORG}/{SHA}/12/",
        f"blob:{ORG}/{SHA}/-1",
        f"blob:{ORG}/{SHA}/+1",
        f"blob:{ORG}/{SHA}/012",
        f"blob:{ORG}/{SHA}/1_2",
        f"blob:{ORG}/{SHA}/1.0",
        f"blob:{ORG}/{SHA}/\u0661",
        f"blob:{ORG}/{SHA}/{'9' * 19}",
        f"blob:{ORG}/{SHA}/12\n",
        f" blob:{ORG}/{SHA}/12",
        f"blob:{ORG}/{SHA.upper()}/12",
        f"blob:{ORG}/{SHA[:-1]}/12",
        f"blob:{ORG}/{SHA}0/12",
        f"blob:{ORG}/../{SHA[3:]}/12",
        f"blob:{ORG.hex}/{SHA}/12",
        f"blob:{{{ORG}}}/{SHA}/12",
        f"blob:{str(ORG).replace('b', 'B')}/{SHA}/12",
        f"blob:/{SHA}/12",
    ],
)
def test_a_non_canonical_ref_is_refused(text: str) -> None:
    with pytest.raises(BadBlobRef) as refused:
        BlobRef.parse(text)
    assert repr(text) in str(refused.value)
    assert "str(BlobRef)" in str(refused.value)


@pytest.mark.parametrize(("sha256", "size"), [("../../etc/passwd", 1), (SHA.upper(), 1), (SHA, -1), ("", 0)])
def test_a_malformed_ref_cannot_be_built_by_hand(sha256: str, size: int) -> None:
    with pytest.raises(BadBlobRef):
        BlobRef(ORG, sha256, size)


@pytest.mark.parametrize("kind", [BadBlobRef, BlobNotFound, BlobCorrupted])
def test_an_error_names_the_ref_and_survives_pickling(kind: type[BlobError]) -> None:
    error = kind(BlobRef(ORG, SHA, 12))
    assert f"blob:{ORG}/{SHA}/12" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
