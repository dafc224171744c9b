"""Specifications: what is read, and what is refused."""

from itertools import product

import pytest
import sklearn
from msgspec.structs import replace

from skpll import M3PL, PLKNN, SPPLL, all_methods
from skpll.baselines import all_baselines
from skpll.datasets import dataset_info
from skpll.experiments import Specification, Task, plan, shipped_specifications
from skpll.experiments.paper import CLAIMS, DATA, PUBLISHED, TABLE3, TABLE4
from skpll.experiments.specification import COLLECTIONS
from skpll.experiments.tasks import CLASSIFIERS, Division, Selection, make_method, method_version
from skpll.pacing import Pace

COMPLETE = """
name = "complete"
title = "Everything there is"
reference = "SP-PLL"
kind = "curves"

[protocol]
kind = "kfold"
folds = 5
repeats = 2
seed = 7

[selection]
folds = 4
seed = 3
scoring = "approximated_accuracy"

[defaults]
scaling = "minmax"
time_limit = 60

[[data]]
name = "Lost"
scaling = "none"

[[data]]
name = "digits"
rows = 500
p = [0.1, 0.5]
r = [1, 2]
corruption_seeds = [0, 1]

[[methods]]
label = "SP-PLL"
method = "sppll"
parameters = { init = "uniform" }
grid = { C = [0.1, 1] }

[[methods]]
method = "plknn"
vary = { n_neighbors = [5, 10] }
data = ["digits"]

[quick]
folds = 2
repeats = 1
p = 0.5
rows = 200
data = ["digits"]
methods = ["SP-PLL"]
grids = { SP-PLL = { C = [1] } }
"""


def test_everything_is_read():
    found = Specification.parse(COMPLETE)
    assert (found.name, found.kind, found.reference) == ("complete", "curves", "SP-PLL")
    assert str(found.protocol) == "2 × 5-fold"
    assert (found.selection.folds, found.selection.seed) == (4, 3)
    assert found.defaults.time_limit == 60
    lost, digits = found.data
    assert (lost.name, lost.scaling, lost.p) == ("lost", "none", ())
    assert (digits.rows, digits.scaling, len(digits.cases())) == (500, "minmax", 8)
    sppll, plknn = found.methods
    assert sppll.grid == {"C": [0.1, 1]}
    assert [variant["label"] for variant in plknn.variants()] == [
        "PLKNN, n_neighbors=5",
        "PLKNN, n_neighbors=10",
    ]
    # lost: 10 divisions of 1 variant; digits: 8 corruptions, 10 divisions, 3 variants
    assert len(list(plan(found))) == 10 + 8 * 10 * 3


def test_quick_makes_it_small():
    found = Specification.parse(COMPLETE, quick=True)
    (digits,), (sppll,) = found.data, found.methods
    assert str(found.protocol) == "2-fold"
    assert (digits.p, digits.r, digits.rows) == ((0.5,), (1, 2), 200)
    assert sppll.grid == {"C": [1]}
    assert len(list(plan(found))) == 2 * 2 * 2


@pytest.mark.parametrize(
    ("protocol", "words", "divisions"),
    [
        ("", "10-fold", 10),
        ("folds = 3\nrepeats = 2", "2 × 3-fold", 6),
        ('kind = "halves"', "10 random halves", 10),
        ('kind = "halves"\nrepeats = 4\ntest_size = 0.2', "4 random splits, 20% for tests", 4),
        ('kind = "split"\ntest_size = 0.3', "train/test", 1),
    ],
)
def test_protocols(protocol, words, divisions):
    text = (
        f'name = "a"\n[protocol]\n{protocol}\n[[data]]\nname = "lost"\n[[methods]]\nmethod="ipal"'
    )
    found = Specification.parse(text)
    assert str(found.protocol) == words
    assert len(list(plan(found))) == divisions


def changed(old, new):
    assert old in COMPLETE
    return COMPLETE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("seed = 7", "sead = 7"), "protocol: unknown key `sead`. Did you mean 'seed'"),
        (changed('scaling = "minmax"', "scalling = 1"), "Did you mean 'scaling'"),
        (
            changed("reference =", "refrence ="),
            "specification: unknown key `refrence`. Did you mean 'reference'",
        ),
        (changed("rows = 500", "row = 500"), "data 2: unknown key `row`. Did you mean 'rows'"),
        (changed('"plknn"', '"plkn"'), r"method: unknown method 'plkn'. Did you mean 'plknn'"),
        (
            changed("{ init =", "{ inti ="),
            "parameters: unknown parameter 'inti'. Did you mean 'init'",
        ),
        (changed('"uniform"', '"unifrom"'), "SP-PLL: The 'init' parameter of SPPLL"),
        (changed("C = [0.1, 1]", "C = [0.1, -1]"), "SP-PLL: The 'C' parameter"),
        (changed("C = [0.1, 1]", "C = 1"), "methods 1.grid.*: Expected `array`, got `int`"),
        (changed("SP-PLL = { C = [1] }", "SP-PL = { C = [1] }"), "unknown label 'SP-PL'"),
        (changed("SP-PLL = { C = [1] }", "SP-PLL = { D = [1] }"), "unknown parameter 'D'"),
        (changed('"Lost"', '"losst"'), "Did you mean 'lost'"),
        (changed('data = ["digits"]\n\n', 'data = ["digit"]\n\n'), "unknown data set 'digit'"),
        (
            changed('"approximated_accuracy"', '"accuracy"'),
            "selection.scoring: Invalid enum value 'accuracy'",
        ),
        (changed('"curves"', '"curve"'), "kind: Invalid enum value 'curve'. Did you mean 'curves'"),
        (changed('"curves"', '"sensitivity"'), "over: goes with kind"),
        (changed('"curves"', '"sensitivity"\nover = "C"'), "SP-PLL does not vary 'C'"),
        (changed('reference = "SP-PLL"', 'reference = "SPPLL"'), "unknown label 'SPPLL'"),
        (changed("folds = 5", "folds = 1"), "protocol.folds: Expected `int` >= 2"),
        (changed("folds = 5", "folds = true"), "protocol.folds: Expected `int`, got `bool`"),
        (changed('kind = "kfold"', 'kind = "halves"'), "protocol: unknown key `folds`"),
        (
            changed('name = "digits"\nrows', "rows"),
            "data 2: Object missing required field `name`",
        ),
        (changed('"minmax"', '"log"'), "defaults.scaling: Invalid enum value 'log'"),
        (changed("time_limit = 60", "time_limit = 0"), "defaults.time_limit: Expected `float` > 0"),
        (changed("p = [0.1, 0.5]", "p = []"), "data 2.p: Expected `array` of length >= 1"),
        (changed("p = [0.1, 0.5]\n", ""), "digits has ordinary labels"),
        (changed('scaling = "none"', "p = 0.5"), "lost has candidate labels already"),
        (changed('scaling = "none"', "noise = 0.1"), "lost has candidate labels already"),
        (changed('scaling = "none"', 'kind = "feature"'), "lost has candidate labels already"),
        (
            changed("rows = 500", 'kind = "features"'),
            "kind: Invalid enum value 'features'. Did you mean 'feature'",
        ),
        (changed("rows = 500", "noise = 2"), "noise.*: Expected `float` <= 1"),
        (
            changed('method = "plknn"', 'method = "plknn"\nlabel = ""'),
            "label: Expected `str` matching",
        ),
        (changed("n_neighbors = [5, 10]", "n_neighbors = [5, 5]"), "occurs twice"),
        (changed('name = "complete"', 'name = "a b"'), "name: Expected `str` matching"),
        (changed('name = "complete"', ""), "specification: Object missing required field `name`"),
        (changed("[protocol]", "[protocol"), "at line 7"),
        ('name = "a"\ndata = 1\nmethods = 1', "data: Expected `array`"),
        ('name = "a"\nprotocol = 1', "protocol: Expected `object`, got `int`"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        Specification.parse(text)
    assert "\n" not in str(caught.value)


def test_reading_names_the_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(COMPLETE.replace("seed = 7", "sead = 7"))
    with pytest.raises(ValueError, match=r"mine.toml: protocol: unknown key `sead`"):
        Specification.read(path)
    with pytest.raises(ValueError, match=r"no such file.*table3"):
        Specification.read(tmp_path / "absent.toml")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"mine.toml: .*utf-8"):
        Specification.read(path)


# -- what comes with the package -----------------------------------------------------------


@pytest.mark.parametrize("name", list(shipped_specifications()))
@pytest.mark.parametrize("quick", [False, True])
def test_shipped_specifications_are_valid(name, quick):
    found = Specification.read(name, quick=quick)
    assert found.name == name
    assert len(list(plan(found))) > 0


def test_the_paper_is_complete():
    assert set(COLLECTIONS["paper"]["experiments"]) <= set(shipped_specifications())
    table3 = Specification.read("table3")
    assert {entry.name for entry in table3.data} == set(TABLE3)
    for entry in TABLE3.values():
        labels = [method.label for method in table3.methods]
        assert {label.split(",")[0].split(" as ")[0] for label in labels} >= set(entry)
    table4 = Specification.read("table4")
    assert {entry.name for entry in (*table3.data, *table4.data)} == set(TABLE4) == set(DATA)
    for name, best in PUBLISHED.items():
        assert set(best) <= {entry.name for entry in Specification.read(name).data}
    shipped = shipped_specifications()
    for claim in CLAIMS:
        for name in claim.experiments:
            assert name in shipped
            labels = {method.label for method in Specification.read(name).methods}
            if claim.quantity != "best value":
                assert {claim.method, claim.rival or claim.method} <= labels
        assert claim.dataset is None or dataset_info(claim.dataset)


def test_methods_of_another_specification_come_first_and_can_be_replaced():
    text = 'name = "a"\nmethods_of = "figure2"\n[[data]]\nname = "iris"\np = 0.3\n'
    taken = Specification.read("figure2")
    assert Specification.parse(text).methods == taken.methods
    own = '[[methods]]\nlabel = "PL-KNN"\nmethod = "plknn"\nparameters = { n_neighbors = 3 }\n'
    more = own + '[[methods]]\nmethod = "em"\n[quick]\nmethods = ["PL-KNN", "PL-SVM"]\n'
    found = Specification.parse(text + more)
    labels = [method.label for method in taken.methods]
    assert [method.label for method in found.methods] == [*labels, "EM"]
    (changed,) = [method for method in found.methods if method.label == "PL-KNN"]
    assert changed.parameters == {"n_neighbors": 3}
    quick = Specification.parse(text + more, quick=True)
    assert [(method.label, method.grid) for method in quick.methods] == [
        ("PL-KNN", {}),
        ("PL-SVM", {"alpha": [1]}),
    ]
    unnamed = '[[methods]]\nmethod = "em"\n[[methods]]\nmethod = "sure"\n'
    both = Specification.parse(text + unnamed).methods
    assert [method.label for method in both] == [*labels, "EM", "SURE"]
    with pytest.raises(ValueError, match="methods_of: unknown name 'figure22'"):
        Specification.parse(text.replace("figure2", "figure22"))
    with pytest.raises(ValueError, match="'EM' occurs twice"):
        Specification.parse(text + 2 * '[[methods]]\nmethod = "em"\n')


def test_methods_of_another_specification_can_be_left_out():
    text = 'name = "a"\nmethods_of = "figure2"\nmethods_without = ["PL-KNN", "CLPL"]\n'
    text += '[[data]]\nname = "iris"\np = 0.3\n'
    taken = [method.label for method in Specification.read("figure2").methods]
    left = [method.label for method in Specification.parse(text).methods]
    assert left == [label for label in taken if label not in ("PL-KNN", "CLPL")]
    with pytest.raises(ValueError, match=r"methods_without: unknown label 'PL-KN'.*'PL-KNN'"):
        Specification.parse(text.replace("PL-KNN", "PL-KN"))
    with pytest.raises(ValueError, match="methods: there are none"):
        Specification.parse(text.replace('methods_of = "figure2"\n', ""))


def test_the_scaling_table_shares_its_divisions_and_has_no_forests():
    fifths = {task.key for task in plan(Specification.read("table3-fifths"))}
    tasks = list(plan(Specification.read("table3-scaling")))
    scaled = [task for task in tasks if task.scaling == "zscore"]
    assert len(scaled) == len(tasks) / 2
    assert all(task.key in fifths for task in scaled)
    assert not any("orest" in task.label for task in tasks)


def test_labels_say_which_version_of_a_method_runs():
    versions = {" as printed": SPPLL.as_printed(), " as published": M3PL.as_published()}
    seen = set()
    for name in shipped_specifications():
        for method in Specification.read(name).methods:
            for variant, words in product(method.variants(), versions):
                label, parameters = variant["label"], variant["parameters"]
                if words not in label:
                    continue
                model, expected = make_method(method.method, parameters), versions[words]
                assert type(model) is type(expected), (name, label)
                varied = {"C", "pace", "pace__start"} if "pace__start" in parameters else {"C"}
                for parameter, value in expected.get_params().items():
                    if parameter not in varied:
                        assert model.get_params()[parameter] == value, (name, parameter)
                seen.add((name, words))
    for table in ("table3", "table3-halves", "figure2", "figure3", "figure4", "pace-real"):
        assert {(table, " as printed"), (table, " as published")} <= seen


def test_the_definition_of_an_inner_classifier_is_part_of_the_key(monkeypatch):
    text = (
        'name = "a"\n[[data]]\nname = "iris"\np = 0.3\n[[methods]]\nmethod = "crossfitclassifier"\n'
        'parameters = { estimator = "random_forest" }'
    )
    (key, *_) = (task.key for task in plan(Specification.parse(text)))
    module, name, _ = CLASSIFIERS["random_forest"]
    smaller = (module, name, {"n_estimators": 100, "random_state": 0})
    monkeypatch.setitem(CLASSIFIERS, "random_forest", smaller)
    assert next(plan(Specification.parse(text))).key != key


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            'parameters = { estimator = "forest" }',
            "WeightedCopies: estimator: unknown name 'forest'",
        ),
        ('grid = { estimator = ["plknn"] }', "WeightedCopies: grid: inner folds can't choose 'est"),
        (
            'parameters = { estimator = "plknn" }\nvary = { estimator = ["plknn"] }',
            "WeightedCopies: 'estimator' is given twice",
        ),
    ],
)
def test_mistakes_in_inner_classifiers_are_named(entry, message):
    text = 'name = "a"\n[[data]]\nname = "iris"\np = 0.3\n[[methods]]\nmethod = "weightedcopies"\n'
    with pytest.raises(ValueError, match=message):
        Specification.parse(text + entry)
    Specification.parse(text + 'vary = { estimator = ["plknn", "random_forest"] }')


def test_a_pace_is_known_by_its_parameters(monkeypatch):
    """Also by those that have their default value, and however scikit-learn prints it."""
    text = 'name = "a"\n[[data]]\nname = "iris"\np = 0.3\n[[methods]]\nmethod = "sppll"\n'
    spelled = (
        'pace__difficulty = "loss", pace__schedule = "carry", pace__end = 10.0, '
        "pace__weight_floor = 1e-3"
    )
    (printed, *_) = plan(Specification.parse(text + 'variant = "as_printed"\n'))
    assert printed.parameters["pace__end"] == 10.0
    assert printed.parameters["pace__growth"] == Pace().growth
    assert not any(isinstance(value, Pace) for value in printed.parameters.values())
    overridden = text + f'variant = "as_printed"\nparameters = {{ {spelled} }}\n'
    assert next(plan(Specification.parse(overridden))).key == printed.key
    with sklearn.config_context(print_changed_only=False):
        assert next(plan(Specification.parse(text + 'variant = "as_printed"\n'))).key == printed.key


def test_the_methods_of_a_mixture_are_named():
    text = 'name = "a"\n[[data]]\nname = "iris"\np = 0.3\n'
    text += '[[methods]]\nmethod = "stackedcandidates"\n'
    mixture = Specification.parse(text + 'parameters = { estimators = ["plloo", "clpl"] }')
    (task, *_) = plan(mixture)
    assert task.defaults["estimators versions"] == [method_version("plloo"), method_version("clpl")]
    names = [name for name, _ in make_method(task.method, task.parameters).estimators]
    assert names == ["plloo", "clpl"]
    with pytest.raises(ValueError, match="estimators: unknown name 'plo'"):
        Specification.parse(text + 'parameters = { estimators = ["plloo", "plo"] }')
    with pytest.raises(ValueError, match="required positional argument: 'estimators'"):
        Specification.parse(text)


def test_quick_versions_leave_out_no_method():
    for name in ("loo-ablation", "loo-second", "pace-parts"):
        full, quick = (Specification.read(name, quick=flag) for flag in (False, True))
        assert [each.label for each in quick.methods] == [each.label for each in full.methods]


def test_the_second_study_has_seeds_of_its_own():
    kinds = {entry.kind for entry in Specification.read("loo-second").data}
    assert kinds == {"uniform", "feature", "pairs", "dictionary", "constant"}
    for name in ("loo-second", "loo-second-folds"):
        found = Specification.read(name)
        assert found.protocol.seed == 1617
        assert {entry.corruption_seeds for entry in found.data} <= {(), (1618,)}
        assert len(list(plan(Specification.read(name, quick=True)))) < 50


def test_table4_adds_no_work():
    keys = {task.key for task in plan(Specification.read("table4"))}
    others = ("table3", "figure2", "figure3", "figure4")
    assert keys <= {task.key for name in others for task in plan(Specification.read(name))}


# -- keys ----------------------------------------------------------------------------------


def test_keys_depend_on_what_matters_and_on_nothing_else():
    found = Specification.parse(COMPLETE)
    keys = [task.key for task in plan(found)]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 for key in keys)
    assert [task.key for task in plan(Specification.parse(COMPLETE))] == keys

    renamed = changed('name = "complete"', 'name = "other"').replace('"SP-PLL"', '"S"')
    renamed = renamed.replace("SP-PLL = ", "S = ").replace("time_limit = 60", "time_limit = 9")
    assert [task.key for task in plan(Specification.parse(renamed))] == keys

    more = replace(found, protocol=replace(found.protocol, repeats=3))
    assert set(keys) < {task.key for task in plan(more)}

    for old, new in [
        ("folds = 5", "folds = 6"),
        ("seed = 7", "seed = 17"),
        ("folds = 4", "folds = 3"),
        ('"uniform"', '"ridge"'),
        ("C = [0.1, 1]", "C = [0.1, 2]"),
    ]:
        task = next(plan(Specification.parse(changed(old, new))))
        assert task.key not in keys, new


def test_keys_are_stable():
    """Stores outlive versions: a key that changes makes finished work be done again."""
    shown = {"label": "label", "series": "series", "repeat": 0}
    definition = {
        "dataset": "lost",
        "rows": None,
        "p": None,
        "r": None,
        "corruption_seed": None,
        "scaling": "zscore",
        "split": Division("kfold", seed=0, split=3, folds=10),
        "method": "sppll",
        "version": 1,
        "parameters": {"k": 1.0},
        "defaults": {"tol": 0.01},
        "grid": {"C": [0.01, 1]},
        "selection": Selection(),
    }
    key = "aa6469d9fe7930fd67a36d964d6d2e94"
    assert Task(**shown, **definition).key == key
    other = {"label": "other", "series": "other", "repeat": 1}
    assert Task(**other, **dict(reversed(definition.items()))).key == key
    assert Task(**shown, **definition | {"version": 2}).key != key


def test_usual_kinds_of_ambiguity_do_not_change_a_key():
    keys = [task.key for task in plan(Specification.parse(COMPLETE))]
    usual = changed("rows = 500", 'rows = 500\nkind = "uniform"\nnoise = 0.0')
    assert [task.key for task in plan(Specification.parse(usual))] == keys
    for unusual in ('kind = "feature"', "noise = 0.1"):
        other = changed("rows = 500", f"rows = 500\n{unusual}")
        tasks = [task for task in plan(Specification.parse(other)) if task.dataset == "digits"]
        assert not {task.key for task in tasks} & set(keys)


def test_quick_keeps_all_cases_of_a_data_set():
    twice = changed(
        "[[methods]]\nlabel", '[[data]]\nname="digits"\np=0.5\nnoise=[0, 0.2]\n[[methods]]\nlabel'
    )
    found = Specification.parse(twice, quick=True)
    assert [entry.noise for entry in found.data] == [(0.0,), (0.0, 0.2)]


def test_keys_depend_on_the_defaults_of_a_method(monkeypatch):
    """A result that was made with other defaults is another result."""
    before = {task.label: task.key for task in plan(Specification.parse(COMPLETE))}
    monkeypatch.setitem(PLKNN.__init__.__kwdefaults__, "weights", "uniform")
    after = {task.label: task.key for task in plan(Specification.parse(COMPLETE))}
    assert {label for label in before if before[label] != after[label]} == {
        "PLKNN, n_neighbors=5",
        "PLKNN, n_neighbors=10",
    }


def test_absent_data_are_left_out():
    found = Specification.parse(COMPLETE)
    assert {task.dataset for task in plan(found, without=["lost"])} == {"digits"}


# -- any method ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*all_methods(), *all_baselines()])
def test_every_method_can_be_named(name):
    text = f'name = "a"\n[[data]]\nname = "iris"\np = 0.3\n[[methods]]\nmethod = "{name}"'
    task = next(plan(Specification.parse(text)))
    assert task.method == name
    assert len(task.key) == 32
