import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from skpll import CLPL, SPPLL, SelfPaced, as_candidates
from skpll.pacing import DIFFICULTIES, REGULARIZERS, SCALES, SCHEDULES, Pace, Stage

regularizers = st.sampled_from(sorted(REGULARIZERS))
losses = st.floats(0, 1e3)
paces = st.floats(1e-3, 1e3)
PATH = [0.1, 1.0, 10.0]


def weight(name, loss, pace):
    return REGULARIZERS[name].weights(np.array([loss]), pace)[0]


# -- the three conditions that define a self-paced regularizer -----------------------------


@given(regularizers, st.floats(0, 1), st.floats(0, 1), paces)
def test_convex_in_the_weight(name, a, b, pace):
    penalty = REGULARIZERS[name].penalty
    middle = penalty(np.array((a + b) / 2), pace)
    chord = (penalty(np.array(a), pace) + penalty(np.array(b), pace)) / 2
    assert middle <= chord + 1e-9 * max(1, abs(chord))


@given(regularizers, losses, paces, paces)
def test_weights_grow_with_the_pace(name, loss, pace, other):
    slow, fast = sorted((pace, other))
    assert weight(name, loss, slow) <= weight(name, loss, fast) + 1e-12
    assert 0 <= weight(name, loss, slow) <= 1


@given(regularizers, st.floats(1e-3, 1e3))
def test_limits_of_the_pace(name, loss):
    assert weight(name, loss, loss * 1e-9) == 0
    assert weight(name, loss, 0.0) == weight(name, 0.0, 0.0) == 0
    assert weight(name, loss, loss * 1e12) == pytest.approx(1)


@given(regularizers, losses, losses, paces)
def test_weights_fall_with_the_loss(name, loss, other, pace):
    small, large = sorted((loss, other))
    assert weight(name, large, pace) <= weight(name, small, pace) + 1e-12


@given(regularizers, paces)
def test_limits_of_the_loss(name, pace):
    assert weight(name, 0.0, pace) == 1
    assert weight(name, pace * 1e6, pace) == 0
    assert weight(name, 1e300, 1e-300) == 0


@given(regularizers, st.floats(0, 3), st.floats(0.05, 3))
def test_the_weight_is_the_minimizer(name, loss, pace):
    grid = np.linspace(0, 1, 2001)
    penalty = REGULARIZERS[name].penalty
    best = (grid * loss + penalty(grid, pace)).min()
    v = weight(name, loss, pace)
    assert v * loss + penalty(np.array(v), pace) <= best + 1e-9


def test_the_paper_s_weight():
    v = REGULARIZERS["linear"].weights(np.array([0.0, 0.3, 0.6, 0.9]), 0.6)
    np.testing.assert_allclose(v, [1, 0.5, 0, 0])


# -- difficulty ----------------------------------------------------------------------------

CANDIDATES = as_candidates([{0, 1, 2}, {1}, {0, 2}])
LOSSES = np.array([0.2, 1.5, 0.5, 3.0, 0.4, 0.4])
ASSIGNED = np.array([2, 3, 5])  # label 2, label 1, label 2


def test_difficulty_by_the_loss_is_cut_at_one():
    found = DIFFICULTIES["loss"](LOSSES, ASSIGNED, CANDIDATES)
    np.testing.assert_allclose(found, [0.5, 1.0, 0.4])


def test_difficulty_by_the_gap():
    found = DIFFICULTIES["gap"](LOSSES, ASSIGNED, CANDIDATES)
    np.testing.assert_allclose(found, [0.3, -np.inf, 0.0])


def test_difficulty_by_the_entropy():
    found = DIFFICULTIES["entropy"](LOSSES, ASSIGNED, CANDIDATES)
    p = np.exp(-LOSSES[:3]) / np.exp(-LOSSES[:3]).sum()
    np.testing.assert_allclose(found, [-(p * np.log(p)).sum(), -np.inf, np.log(2)])


def test_difficulty_by_a_function():
    pace = Pace(difficulty=lambda losses, assigned, candidates: candidates.sizes)
    assert pace.measure(LOSSES, ASSIGNED, CANDIDATES).tolist() == [3, 1, 2]
    for wrong in (np.zeros(2), np.array([0, np.nan, 1])):
        with pytest.raises(ValueError, match="difficulty: the function has to return one number"):
            Pace(difficulty=lambda *_, wrong=wrong: wrong).measure(LOSSES, ASSIGNED, CANDIDATES)


def test_a_pacing_rule_is_one_function_and_one_line(monkeypatch):
    def half(difficulty, C, importance, labels):
        return difficulty / 2

    monkeypatch.setitem(SCALES, "half", half)
    monkeypatch.setitem(DIFFICULTIES, "size", lambda losses, assigned, sets: sets.sizes)
    monkeypatch.setitem(REGULARIZERS, "step", REGULARIZERS["hard"])
    monkeypatch.setitem(SCHEDULES, "last", lambda path, *_: iter([Stage(path[-1], 1.0)]))
    pace = Pace(difficulty="size", scale="half", weights="step", schedule="last")
    (stage,) = pace.stages(PATH)
    difficulty = pace.measure(LOSSES, ASSIGNED, CANDIDATES)
    assert stage == Stage(10.0, 1.0)
    assert pace.weigh(difficulty, stage).tolist() == [0.0, 1.0, 0.0]


# -- scale ---------------------------------------------------------------------------------


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.floats(0.01, 1))
def test_a_share_admits_at_least_that_share_and_the_easiest(difficulty, share):
    difficulty = np.array(difficulty, dtype=float)
    admitted = Pace(weights="hard", scale="share").weigh(difficulty, Stage(1.0, share)) > 0
    assert admitted.mean() >= share - 1e-12
    if not admitted.all():
        assert difficulty[admitted].max() < difficulty[~admitted].min()
        easier = difficulty < difficulty[admitted].max()
        assert easier.mean() < share


@pytest.mark.parametrize("scale", SCALES)
def test_scales_put_the_always_admitted_first(scale):
    difficulty = np.array([0.3, -np.inf, 0.0, 2.0])
    scaled = SCALES[scale](difficulty, 2.0, np.ones(4), np.zeros(4, int))
    assert scaled[1] == 0
    assert (scaled >= 0).all()
    assert np.isfinite(scaled).all()
    assert (np.diff(scaled[np.argsort(difficulty)]) >= 0).all()


def test_scales_of_equal_difficulties():
    def scaled(scale, *difficulty):
        n = len(difficulty)
        return SCALES[scale](np.array(difficulty), 2.0, np.ones(n), np.zeros(n, int)).tolist()

    for scale in ("share", "class_share", "minmax"):
        assert scaled(scale, 0.7, 0.7, 0.7) == [0, 0, 0]
    assert scaled("minmax", -np.inf, -np.inf) == [0, 0]
    assert scaled("minmax", 1.0, 3.0, 2.0) == [0, 1, 0.5]
    assert scaled("minmax", 1.0, 3.0, np.inf) == [0, 1, 1]
    assert scaled("absolute", -1.0, 3.0) == [0, 3]
    assert scaled("objective", -1.0, 3.0) == [0, 6]


def test_a_share_of_each_class_admits_every_class():
    difficulty = np.array([0.1, 9.0, 0.2, 8.0, 0.3, 7.0])
    labels = np.array([0, 1, 0, 1, 0, 1])
    stage = Stage(1.0, 0.5)
    overall = Pace(weights="hard", scale="share").weigh(difficulty, stage, labels=labels)
    by_class = Pace(weights="hard", scale="class_share").weigh(difficulty, stage, labels=labels)
    assert overall.tolist() == [1, 0, 1, 0, 1, 0]
    assert by_class.tolist() == [1, 0, 1, 1, 0, 1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=20))
def test_importance_is_replication_in_a_share(pairs):
    difficulty, times = np.array(pairs).T
    label = np.zeros(len(pairs), int)
    weighted = SCALES["share"](difficulty.astype(float), 1.0, times.astype(float), label)
    many = np.repeat(difficulty, times).astype(float)
    replicated = SCALES["share"](many, 1.0, np.ones(len(many)), np.repeat(label, times))
    np.testing.assert_allclose(np.repeat(weighted, times), replicated)


# -- schedule ------------------------------------------------------------------------------


def test_schedules():
    def stages(schedule, **settings):
        return Pace(schedule=schedule, start=0.5, end=1.0, **settings).stages(PATH)

    up = [0.5, 0.75, 1.0]
    assert stages("restart", growth=1.5) == [Stage(C, pace) for C in PATH for pace in up]
    assert stages("once", growth=1.5) == [
        *(Stage(0.1, pace) for pace in up),
        Stage(1.0, 1.0),
        Stage(10.0, 1.0),
    ]
    assert stages("carry", growth=1.5) == [Stage(0.1, 0.5), Stage(1.0, 0.75), Stage(10.0, 1.0)]
    spread = stages("spread")
    assert [stage.C for stage in spread] == PATH
    np.testing.assert_allclose([stage.pace for stage in spread], [0.5, np.sqrt(0.5), 1.0])


@given(
    st.sampled_from(sorted(SCHEDULES)),
    st.floats(0.01, 1),
    st.floats(1.01, 3),
    st.integers(1, 8),
)
def test_every_schedule_ends_and_visits_every_C_in_order(schedule, start, growth, n):
    path = [2.0**k for k in range(n)]
    stages = Pace(schedule=schedule, start=start, growth=growth).stages(path)
    assert list(dict.fromkeys(stage.C for stage in stages)) == path
    assert all(start <= stage.pace <= 1 + 1e-12 for stage in stages)
    if schedule != "carry":
        assert stages[-1].pace == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": 0.0}, r"The 'start' parameter of Pace must be a float"),
        ({"scale": "typo"}, r"The 'scale' parameter of Pace must be a str among"),
        ({"start": 1.5}, r"start, end: a pace can't grow from 1.5 to 1.0; choose a start"),
        ({"growth": 1.0, "schedule": "restart"}, "growth: .* never ends"),
        ({"growth": 1.0, "schedule": "once"}, "growth: .* never ends"),
        ({"growth": 0.99}, r"The 'growth' parameter of Pace must be a float"),
        ({"end": 0.0}, r"The 'end' parameter of Pace must be a float"),
        ({"cv": 1}, r"The 'cv' parameter of Pace must be an int"),
        ({"weight_floor": 1.5}, r"The 'weight_floor' parameter of Pace must be a float"),
        ({"weight_floor": -0.1}, r"The 'weight_floor' parameter of Pace must be a float"),
        ({"difficulty": "typo"}, r"The 'difficulty' parameter of Pace must be a str among"),
        ({"weights": "typo"}, r"The 'weights' parameter of Pace must be a str among"),
        ({"schedule": "typo"}, r"The 'schedule' parameter of Pace must be a str among"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Pace(**settings).stages(PATH)


@pytest.mark.parametrize(
    "settings",
    [
        {"start": 1.0},
        {"start": 0.01, "end": 0.02},
        {"growth": 1.0},
        {"growth": 1.0, "schedule": "carry"},
        {"cv": 2},
        {"weight_floor": 0.0},
        {"weight_floor": 1.0},
    ],
)
def test_settings_at_the_edge_of_what_is_allowed(settings):
    pace = Pace(**settings)
    stages = pace.stages(PATH)
    assert [stage.C for stage in stages] == PATH
    assert stages[0].pace == pytest.approx(pace.start)


def test_difficulty_by_models_that_have_not_seen_the_example_is_not_measured_here():
    with pytest.raises(ValueError, match="'leave_one_out' is measured by SPPLL and SelfPaced"):
        Pace().measure(LOSSES, ASSIGNED, CANDIDATES)


# -- estimators that have a pace -----------------------------------------------------------


def self_paced(**parameters):
    return SelfPaced(CLPL(), **parameters)


@pytest.mark.parametrize("make", [SPPLL, self_paced])
def test_names_of_the_pace_s_parameters(make):
    model = make()
    own = {name for name in model.get_params() if name.startswith("pace__")}
    assert own == {f"pace__{name}" for name in Pace().get_params()}
    assert not any(name.startswith("pace__") for name in model.get_params(deep=False))
    given = make(pace=Pace(start=0.3, weights="hard"))
    assert given.get_params()["pace__start"] == 0.3
    assert not any(name.startswith("pace__") for name in given.get_params(deep=False))


@pytest.mark.parametrize(("make", "other"), [(SPPLL, "max_passes"), (self_paced, "n_stages")])
def test_setting_one_parameter_leaves_the_pace_as_it_is(make, other):
    pace = Pace(start=0.3, weights="hard")
    model = make(pace=pace).set_params(**{other: 3})
    assert model.pace is pace
    assert getattr(model, other) == 3
    assert make().set_params(**{other: 3}).pace is None
    assert model.set_params(pace__end=2.0).pace == Pace(start=0.3, weights="hard", end=2.0)
    assert make().set_params(pace=pace, pace__cv=3).pace == Pace(
        start=0.3, weights="hard", end=2.0, cv=3
    )
    assert make().set_params(pace=None).pace is None


@pytest.mark.parametrize(("make", "name"), [(SPPLL, "C_growth"), (self_paced, "n_stages")])
def test_wrong_parameters_of_the_method_and_of_its_pace_are_named(make, name):
    X, S = [[0.0], [1.0], [2.0]], [{"a"}, {"a", "b"}, {"b"}]
    model = make()
    with pytest.raises(ValueError, match=f"'{name}' parameter of {type(model).__name__} must be"):
        clone(model).set_params(**{name: "many"}).fit(X, S)
    with pytest.raises(ValueError, match="'start' parameter of Pace must be"):
        clone(model).set_params(pace__start=-1.0).fit(X, S)
