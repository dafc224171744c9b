"""Model files from strangers: none runs code, and none crashes the process."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import SGDClassifier

from skpll import CrossFitClassifier, all_methods
from skpll.datasets import make_partial_classification
from skpll.tables.learning import learn_from_table
from skpll.tables.models import load_model, save_model
from skpll.tables.reading import FrameTable
from skpll.tables.trusted import trusted_classes

X, S, _ = make_partial_classification(60, 3, 3, p=0.5, r=1, random_state=0)
FRAME = pd.DataFrame({f"x{j}": X[:, j] for j in range(3)})
TABLE = FrameTable(FRAME)
TEXTS = [f"row {i} has {'few' if i % 3 else 'many'} words of {i % 7} kinds" for i in range(60)]
PARAMETERS = {"crossfitclassifier": {"cv": 2}}


def save(path, method, text=()):
    parameters = PARAMETERS.get(method, {})
    table = FrameTable(FRAME.assign(text=TEXTS)) if text else TABLE
    learned = learn_from_table(table, S, method=method, parameters=parameters, text=text)
    save_model(learned.model, path)
    return path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save(tmp_path_factory.mktemp("models") / "good.skops", "plknn")


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


# -- what would run code ---------------------------------------------------------------------


def node(loader, name, **more):
    module, _, own = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": own, **more}


def text(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def sequence(*items, kind="tuple"):
    return node(f"{kind.capitalize()}Node", f"builtins.{kind}", content=list(items))


def mapping(content, *key_types):
    return node(
        "DictNode", "builtins.dict", content=content, key_types=sequence(*key_types, kind="list")
    )


IMPORT = "skpll.neighbors.graph.import_module"
OS = node("ConstructorFromReduceNode", IMPORT, content=sequence(text("os")))
SYSTEM = node("MethodNode", IMPORT, content={"func": "system", "obj": OS})
STR = node("TypeNode", "builtins.str")


def array(name):
    return node("NdArrayNode", name, type="json", content=[], shape=sequence(text(0)))


ATTACKS = {
    "keys that are called": (mapping({"touch {marker}": text(1)}, SYSTEM), IMPORT),
    "a module": (OS, IMPORT),
    "a method of a module": (SYSTEM, IMPORT),
    "a function": (node("FunctionNode", "os.system"), "os.system"),
    "a function of ours": (node("FunctionNode", IMPORT), IMPORT),
    "a harmless function": (node("FunctionNode", "numpy.exp"), "numpy.exp"),
    "an imported class": (
        node("ObjectNode", "skpll.tables.trusted.SVC", content=mapping({})),
        "skpll.tables.trusted.SVC",
    ),
    "a function as a class": (node("ObjectNode", IMPORT, content=mapping({})), IMPORT),
    "a process": (
        node("ConstructorFromReduceNode", "subprocess.Popen", content=sequence(text("true"))),
        "subprocess.Popen",
    ),
    "a trusted class that is called": (
        node("ConstructorFromReduceNode", "skpll.neighbors.plknn.PLKNN", content=sequence()),
        "skpll.neighbors.plknn.PLKNN",
    ),
    "a partial function": (
        node(
            "PartialNode",
            "functools.partial",
            content={
                "func": node("TypeNode", "builtins.str"),
                "args": sequence(text("x")),
                "kwds": mapping({}),
                "namespace": text(None),
            },
        ),
        "functools.partial",
    ),
    "an operator": (
        node("OperatorFuncNode", "operator.methodcaller", attrs=sequence(text("fit"))),
        "operator.methodcaller",
    ),
    "eval as a type": (node("TypeNode", "builtins.eval"), "builtins.eval"),
    "eval as a key": (
        mapping({"1 + 1": text(1)}, node("TypeNode", "builtins.eval")),
        "builtins.eval",
    ),
    "a list that is another": (
        node("ListNode", "os.system", content=[]),
        "os.system",
    ),
    "a tuple that is another": (node("TupleNode", "os.stat_result", content=[]), "os.stat_result"),
    "a dict that is another": (
        node("DictNode", "os._Environ", content={}, key_types=sequence(kind="list")),
        "os._Environ",
    ),
    "a default": (
        node(
            "DefaultDictNode",
            "collections.defaultdict",
            content={"main": mapping({}), "default_factory": STR},
        ),
        "collections.defaultdict",
    ),
    "an array that is another": (array("os.system"), "os.system"),
    "an array of objects": (array("numpy.void"), "numpy.void"),
    "a generator": (
        node(
            "RandomGeneratorNode",
            "numpy.random._generator.Generator",
            content={
                "bit_generator": mapping({"bit_generator": text("seed")}, STR),
                "seed_seq": mapping({}),
            },
        ),
        "numpy.random._generator.Generator",
    ),
    "a tree in C": (
        node(
            "TreeNode",
            "sklearn.tree._tree.Tree",
            content=mapping({}),
            __reduce__={"args": sequence(text(1), text(1), text(10**9))},
        ),
        "sklearn.tree._tree.Tree",
    ),
    "a search tree in C": (
        node("ObjectNode", "sklearn.neighbors._kd_tree.KDTree", content=sequence()),
        "sklearn.neighbors._kd_tree.KDTree",
    ),
    "a loss in C": (
        node(
            "LossNode",
            "sklearn._loss._loss.CyPinballLoss",
            content=mapping({}),
            __reduce__={"args": sequence(text(1.0))},
        ),
        "sklearn._loss._loss.CyPinballLoss",
    ),
    "another estimator": (
        node("ObjectNode", "sklearn.preprocessing._function_transformer.FunctionTransformer"),
        "FunctionTransformer",
    ),
}


def with_node(path, saved, planted, protocol=None):
    """Put a node into a good model, as an attribute of its pipeline."""
    parts = contents(saved)
    schema = json.loads(parts["schema.json"])
    attributes = schema["content"]
    attributes["content"]["planted"] = planted
    attributes["key_types"]["content"].append(STR)
    schema["protocol"] = schema["protocol"] if protocol is None else protocol
    return write(path, parts | {"schema.json": json.dumps(schema)})


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_file_that_would_run_code_is_refused(saved, tmp_path, attack):
    planted, named = ATTACKS[attack]
    marker = tmp_path / "marker"
    planted = json.loads(json.dumps(planted).replace("{marker}", str(marker)))
    path = with_node(tmp_path / "bad.skops", saved, planted)
    with pytest.raises(ValueError, match=r"not trusted: .*load models of people you trust") as told:
        load_model(path)
    assert named in str(told.value)
    assert str(path) in str(told.value)
    assert not marker.exists()


def test_a_node_can_not_take_the_place_of_another(saved, tmp_path):
    """To skops, nodes with one number are one: a key might become what was checked elsewhere."""
    hidden = mapping({"key": text(1)}, {**STR, "__id__": 7})
    planted = sequence({**array("numpy.ndarray"), "__id__": 7}, hidden)
    with pytest.raises(ValueError, match="two parts of it have one number"):
        load_model(with_node(tmp_path / "bad.skops", saved, planted))


def test_keys_are_plain_values(saved, tmp_path):
    called = mapping({"key": text(1)}, array("numpy.ndarray"))
    with pytest.raises(ValueError, match=r"not trusted: numpy\.ndarray as a key"):
        load_model(with_node(tmp_path / "bad.skops", saved, called))


@pytest.mark.parametrize("protocol", [0, 1, 99])
def test_other_protocols_are_refused(saved, tmp_path, protocol):
    path = with_node(tmp_path / "bad.skops", saved, text(1), protocol)
    with pytest.raises(ValueError, match=f"has the protocol {protocol} of skops"):
        load_model(path)


def test_a_harmless_attribute_is_no_reason_to_refuse(saved, tmp_path):
    planted = mapping({"a": sequence(text(1), kind="list")}, STR)
    assert load_model(with_node(tmp_path / "good.skops", saved, planted)).name == "plknn"


def test_trusted_are_classes_under_their_own_names():
    trusted = trusted_classes()
    assert set(all_methods().values()) <= set(trusted.values())
    for name, found in trusted.items():
        assert isinstance(found, type)
        assert name == f"{found.__module__}.{found.__qualname__}"
        assert found.__reduce__ is object.__reduce__, name


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    method = CrossFitClassifier(SGDClassifier(loss="log_loss"), cv=2)
    model = learn_from_table(TABLE, S, method=method).model
    with pytest.raises(ValueError, match=r"such a model can't be saved: .*SGDClassifier"):
        save_model(model, tmp_path / "m.skops")
    assert not (tmp_path / "m.skops").exists()


# -- what would crash ------------------------------------------------------------------------

LOADER = """
import sys, warnings
from pathlib import Path
import numpy as np, pandas as pd
from skpll.tables.models import load_model
from skpll.tables.reading import FrameTable
warnings.simplefilter("ignore")
rows = np.random.default_rng(0).normal(size=(50, 3))
frame = pd.DataFrame(rows, columns=["x0", "x1", "x2"])
table = FrameTable(frame.assign(text=[f"some words about {i % 7}, not too few" for i in range(50)]))
for path in sorted(Path(sys.argv[1]).glob("*.skops")):
    print(path.name, end=" ", flush=True)
    try:
        load_model(path).predicted_columns(table)
    except ValueError as error:
        print("refused" if str(path) in str(error) else f"unnamed {error}", flush=True)
    else:
        print("loaded", flush=True)
"""


def changed(values):
    """Yield an array as it could be after a change by someone with bad intentions."""
    if values.dtype.names:
        for name in ("left_child", "right_child", "feature"):
            for value in (10**6, -7, 0):
                other = values.copy()
                other[name][:] = value
                yield other
        yield values[:1].repeat(3)
        return
    if values.dtype.kind in "iu":
        yield np.full_like(values, 2**30)
        yield np.full_like(values, -5)
    if values.dtype.kind == "f":
        yield np.full_like(values, np.nan)
    yield values[: len(values) // 2] if values.ndim else values
    yield np.concatenate([values] * 3) if values.ndim else values
    yield values.astype("S4") if values.dtype.kind in "iuf" else values


def array_files(node):
    """Name the file of one array for each attribute that holds any."""
    found, waiting = {}, [("", node)]
    while waiting:
        name, inner = waiting.pop()
        if isinstance(inner, dict):
            if "file" in inner:
                found.setdefault(name, inner["file"])
            attributes = inner["content"] if inner.get("__loader__") == "DictNode" else inner
            waiting += (
                attributes.items()
                if attributes is not inner
                else ((name, value) for value in inner.values())
            )
        elif isinstance(inner, list):
            waiting += ((name, value) for value in inner)
    return list(found.values())


def tampered(folder, path):
    """Write a file for every change of every array in a model."""
    parts = contents(path)
    for number, name in enumerate(array_files(json.loads(parts["schema.json"]))):
        loaded = np.load(io.BytesIO(parts[name]))
        pieces = {"": loaded} if name.endswith(".npy") else dict(loaded)
        for key, values in pieces.items():
            for place, other in enumerate(changed(values)):
                content = io.BytesIO()
                if key:
                    np.savez(content, **(pieces | {key: other}))
                else:
                    np.save(content, other)
                target = folder / f"{path.stem}-{number}-{key}-{place}.skops"
                write(target, parts | {name: content.getvalue()})


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize(
    ("method", "text"),
    [("plknn", ["text"]), ("plknn", []), ("paloc", []), ("crossfitclassifier", [])],
)
def test_changed_arrays_are_refused_or_harmless(tmp_path, method, text, monkeypatch):
    monkeypatch.setitem(PARAMETERS, "crossfitclassifier", {"cv": 2, "estimator": small_forest()})
    path = save(tmp_path / f"{method}.skops", method, text)
    folder = tmp_path / "tampered"
    folder.mkdir()
    tampered(folder, path)
    run = subprocess.run([sys.executable, "-c", LOADER, folder], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr + run.stdout[-200:]
    outcomes = [line.split(" ", 1)[1] for line in run.stdout.splitlines()]
    assert len(outcomes) == len(list(folder.iterdir())) > 20
    assert set(outcomes) <= {"refused", "loaded"}
    assert outcomes.count("refused") > len(outcomes) / 4


def small_forest():
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(1, random_state=0)
