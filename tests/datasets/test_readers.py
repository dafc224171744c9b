"""Both formats are read in every layout, and bad files are named with what is wrong."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skpll.datasets._readers import read_arff, read_file, read_mat

ARFF = """% a comment
@RELATION toy
@ATTRIBUTE 'width'  REAL
@ATTRIBUTE height   NUMERIC
@ATTRIBUTE class    {'long word', b, never}
@DATA
3.5,-4,'long word'
1,2,b
5,6,b
"""


def assert_is_toy(record, toy):
    n, d = toy.data.shape
    X = record.X.toarray() if sparse.issparse(record.X) else record.X
    np.testing.assert_array_equal(X, toy.data)
    np.testing.assert_array_equal(record.y, toy.y)
    np.testing.assert_array_equal(record.classes, np.arange(len(toy.target)))
    np.testing.assert_array_equal(record.candidates.to_matrix().toarray(), toy.partial_target.T)
    assert record.candidates.shape == (n, len(toy.target))
    assert record.feature_names == [f"x{j}" for j in range(d)]


@pytest.mark.parametrize("form", [np.asarray, np.uint8, np.bool_, sparse.csc_matrix])
@pytest.mark.parametrize("transposed_targets", [False, True])
@pytest.mark.parametrize("transposed_data", [False, True])
def test_mat_in_every_layout(toy, tmp_path, form, transposed_targets, transposed_data):
    def turn(matrix, transposed):
        return matrix.T if transposed else matrix

    path = toy.save(
        tmp_path / "toy.mat",
        data=turn(toy.data, transposed_data),
        target=form(turn(toy.target, transposed_targets)),
        partial_target=form(turn(toy.partial_target, transposed_targets)),
    )
    record = read_mat(path)
    assert_is_toy(record, toy)
    assert record.X.flags.c_contiguous
    assert record.X.dtype == np.float64


def test_as_many_features_as_classes_is_no_riddle(toy, tmp_path):
    wide = np.hstack([toy.data, toy.data[:, :1]])
    assert wide.shape[1] == len(toy.target)
    path = toy.save(tmp_path / "toy.mat", data=wide.T)
    np.testing.assert_array_equal(read_mat(path).X, wide)


def test_sparse_and_single_precision_features(toy, tmp_path):
    record = read_mat(toy.save(tmp_path / "a.mat", data=sparse.csc_matrix(toy.data)))
    assert isinstance(record.X, sparse.csr_array)
    assert_is_toy(record, toy)
    single = read_mat(toy.save(tmp_path / "b.mat", data=toy.data.astype(np.float32)))
    assert single.X.dtype == np.float64
    np.testing.assert_allclose(single.X, toy.data, rtol=1e-6)


@pytest.mark.parametrize("name", ["data", "target", "partial_target"])
def test_missing_variable(toy, tmp_path, name):
    path = toy.save(tmp_path / "toy.mat", **{name: None}, other=np.ones(3))
    with pytest.raises(
        ValueError, match=rf"toy\.mat lacks the variable '{name}'; it holds .*other"
    ):
        read_mat(path)


def test_true_label_outside_its_candidates(toy, tmp_path):
    partial = toy.partial_target.copy()
    partial[:, 3] = 1 - toy.target[:, 3]
    path = toy.save(tmp_path / "toy.mat", partial_target=partial)
    with pytest.raises(ValueError, match=rf"true label {toy.y[3]} of example 3 is not among"):
        read_mat(path)


def test_empty_candidate_set(toy, tmp_path):
    partial = toy.partial_target.copy()
    partial[:, 5] = 0
    with pytest.raises(ValueError, match="example 5 has no candidate label"):
        read_mat(toy.save(tmp_path / "toy.mat", partial_target=partial))


@pytest.mark.parametrize("value", [2.0, -1.0, np.nan])
def test_targets_other_than_zero_and_one(toy, tmp_path, value):
    partial = toy.partial_target.copy()
    partial[1, 2] = value
    with pytest.raises(ValueError, match=f"partial_target must hold zeros and ones.*{value}"):
        read_mat(toy.save(tmp_path / "toy.mat", partial_target=partial))


def test_two_true_labels(toy, tmp_path):
    with pytest.raises(ValueError, match="exactly one true label for every example"):
        read_mat(toy.save(tmp_path / "toy.mat", target=toy.partial_target))


@pytest.mark.parametrize("form", [np.asarray, sparse.csc_matrix])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_not_finite(toy, tmp_path, form, value):
    data = toy.data.copy()
    data[7, 2] = value
    with pytest.raises(ValueError, match=r"row 7, column 2 .* missing or infinite"):
        read_mat(toy.save(tmp_path / "toy.mat", data=form(data)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": np.ones((3, 4))}, r"shape \(3, 4\), which fits no 12 examples"),
        ({"data": "text"}, "data must be a numeric matrix"),
        ({"target": "text"}, "target must be a matrix of zeros and ones"),
        ({"partial_target": np.ones((5, 3))}, "target is 5 × 12, but partial_target is 5 × 3"),
    ],
)
def test_variables_that_do_not_fit(toy, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_mat(toy.save(tmp_path / "toy.mat", **changes))


def test_every_truncated_mat_is_an_error(toy, tmp_path):
    whole = toy.save(tmp_path / "toy.mat").read_bytes()
    cut = tmp_path / "cut.mat"
    for size in range(1, len(whole), 37):
        cut.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut\.mat"):
            read_mat(cut)


@pytest.mark.parametrize("change", ["n_samples", "n_features", "n_classes"])
def test_the_shape_must_be_the_registered_one(toy, toy_info, tmp_path, change):
    path = toy.save(tmp_path / "toy.mat")
    assert_is_toy(read_file(path, toy_info), toy)
    expected = replace(toy_info, **{change: 99})
    with pytest.raises(ValueError, match=r"Toy Set: it holds 12 × 4 features and 5 classes.*99"):
        read_file(path, expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (b"<!DOCTYPE html><html><body>Not found", r"is a web page \(HTML\), not data"),
        (b"\n  <HTML>\n<head>", r"is a web page \(HTML\)"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "is a Git LFS pointer"),
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64", r"version 7\.3 format \(HDF5\).*'-v7'"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), r"version 7\.3 format \(HDF5\)"),
        (b"hello, this is just some text, no matrix at all" * 9, "not a readable MATLAB file"),
        (bytes(range(256)) * 4, "not a readable MATLAB file"),
    ],
)
def test_what_is_not_a_mat_file(toy_info, tmp_path, content, message):
    path = tmp_path / "toy.mat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"toy\.mat.*{message}"):
        read_file(path, toy_info)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_arff(tmp_path, newline):
    path = tmp_path / "toy.arff"
    path.write_bytes(ARFF.replace("\n", newline).encode())
    record = read_arff(path)
    np.testing.assert_array_equal(record.X, [[3.5, -4], [1, 2], [5, 6]])
    assert record.y.tolist() == ["long word", "b", "b"]
    assert record.classes.tolist() == ["b", "long word"]
    assert record.y.dtype.kind == "U"
    assert record.feature_names == ["width", "height"]
    assert record.candidates is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1,2,b", "?,2,b", "row 1, column 0 of the features is missing"),
        ("height   NUMERIC", "height {a, b}", "not a readable ARFF file|'height' is not numeric"),
        ("1,2,b", "1,2,c", "not a readable ARFF file"),
        ("1,2,b", "1,b", "not a readable ARFF file"),
        ("{'long word', b, never}", "REAL", "not a readable ARFF file|must be the class"),
        ("3.5,-4,'long word'\n1,2,b\n5,6,b\n", "", "has a header but no examples"),
    ],
)
def test_bad_arff(tmp_path, old, new, message):
    assert old in ARFF
    path = tmp_path / "toy.arff"
    path.write_text(ARFF.replace(old, new))
    with pytest.raises(ValueError, match=rf"toy\.arff.*({message})"):
        read_arff(path)


def test_arff_needs_a_nominal_class_and_numeric_features(tmp_path):
    path = tmp_path / "toy.arff"
    path.write_text("@RELATION t\n@ATTRIBUTE a {u, v}\n@ATTRIBUTE b {x, y}\n@DATA\nu,x\nv,y\n")
    with pytest.raises(ValueError, match="attribute 'a' is not numeric"):
        read_arff(path)
    path.write_text("@RELATION t\n@ATTRIBUTE a REAL\n@ATTRIBUTE b REAL\n@DATA\n1,2\n")
    with pytest.raises(ValueError, match="last attribute must be the class"):
        read_arff(path)


def test_a_file_that_is_binary_is_no_arff(tmp_path):
    path = tmp_path / "toy.arff"
    path.write_bytes(bytes(range(128, 256)) * 4)
    with pytest.raises(ValueError, match="not a readable ARFF file"):
        read_arff(path)
