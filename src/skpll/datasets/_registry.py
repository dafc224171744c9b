"""The data sets that are known by name: what each one is, where it comes from, how to know it.

The table at the end is the only place to touch in order to add a data set.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A source that several data sets share.

    Parameters
    ----------
    origin : str
        Who made the data and through whom they come.
    licence : str
        The terms under which the data are offered.
    address : str or None
        Address to which a file's name is appended to download it.
    """

    origin: str
    licence: str
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """What is known about a data set before its file has been opened.

    Parameters
    ----------
    name : str
        The name that :func:`load_dataset` takes.
    title : str
        The name used in the literature.
    task : str
        The field of application, in two or three words.
    n_samples, n_features, n_classes : int
        The shape. A file of another shape is refused.
    n_true_classes : int or None
        How many of the classes are the true label of some example; None where this is not known.
    mean_candidates : float or None
        Mean size of the candidate sets, to two digits; None for ordinary labels.
    candidate_range : tuple of two ints or None
        Sizes of the smallest and the largest candidate set, where known.
    n_singletons : int or None
        Number of examples with a single candidate, where known.
    description : str
        What the examples, the features and the candidates are.
    collection : Collection
        The source of the data, with its origin, licence and address.
    citation : str
        The work to cite.
    notes : tuple of str
        What a user should know before fitting a model.
    file_name : str or None
        Name of the file; None for a data set that ships with scikit-learn.
    sha256 : str or None
        Hash of the file, checked where it is known.
    """

    name: str
    title: str
    task: str
    n_samples: int
    n_features: int
    n_classes: int
    description: str
    collection: Collection
    citation: str
    n_true_classes: int | None = None
    mean_candidates: float | None = None
    candidate_range: tuple[int, int] | None = None
    n_singletons: int | None = None
    notes: tuple[str, ...] = ()
    file_name: str | None = None
    sha256: str | None = None

    @property
    def has_candidates(self) -> bool:
        """Whether the data come with candidate sets, and not only with true labels."""
        return self.mean_candidates is not None

    @property
    def url(self) -> str | None:
        """Address from which the file can be downloaded; None where there is none."""
        if self.file_name is None or self.collection.address is None:
            return None
        return self.collection.address + quote(self.file_name)


def normalize_name(name: str) -> str:
    """Reduce a name to its letters and digits, so that "Yahoo! News" finds ``yahoo_news``."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def list_datasets() -> list[str]:
    """Names of all data sets that :func:`load_dataset` knows.

    Returns
    -------
    list of str
        Sets with real candidate labels first, then those with ordinary labels.

    Examples
    --------
    >>> from skpll.datasets import list_datasets
    >>> list_datasets()[:3]
    ['lost', 'birdsong', 'msrcv2']
    """
    return list(REGISTRY)


def dataset_info(name: str) -> DatasetInfo:
    """Look up a data set by name; nothing is read or downloaded.

    Parameters
    ----------
    name : str
        A name out of :func:`list_datasets`. Case, blanks and punctuation do not matter.

    Returns
    -------
    DatasetInfo
        Shape, origin, terms and file of the data set.

    Raises
    ------
    ValueError
        If there is no such data set.

    Examples
    --------
    >>> from skpll.datasets import dataset_info
    >>> info = dataset_info("FG-NET")
    >>> info.name, info.n_samples, info.n_classes
    ('fgnet', 1002, 78)
    """
    if not isinstance(name, str):
        raise ValueError(f"name must be a string, one of {', '.join(REGISTRY)}; got {name!r}.")
    by_key = {normalize_name(known): known for known in REGISTRY}
    key = normalize_name(name)
    if key in by_key:
        return REGISTRY[by_key[key]]
    close = difflib.get_close_matches(key, by_key, n=1)
    hint = f" Did you mean {by_key[close[0]]!r}?" if close else ""
    raise ValueError(f"name={name!r} is not a known data set.{hint} Known: {', '.join(REGISTRY)}.")


_CC_BY = "Creative Commons Attribution 4.0 (CC BY 4.0), as stated by the UCI repository."

_ZHANG = Collection(
    origin=(
        "Pre-processed by Min-Ling Zhang's group; read from the mirror "
        "pruirui/partial_label_realworld_dataset at GitHub."
    ),
    licence="Offered by its author for academic purposes only; not part of this package.",
    address=(
        "https://raw.githubusercontent.com/pruirui/partial_label_realworld_dataset/"
        "a43c823f1cf2575e7fc74bcdfc307463e0bd44bd/"
    ),
)

_UCI = Collection(
    origin=(
        "UCI Machine Learning Repository; read from the mirror renatopp/arff-datasets at GitHub. "
        "OpenML has the same data under the same name."
    ),
    licence=_CC_BY,
    address=(
        "https://raw.githubusercontent.com/renatopp/arff-datasets/"
        "c59f172882592bb58982cc54d2d3c8a2b57e9b73/classification/"
    ),
)

_SCIKIT_LEARN = Collection(
    origin="A copy of the UCI Machine Learning Repository's data that ships with scikit-learn.",
    licence=_CC_BY,
)

_DATASETS = (
    DatasetInfo(
        name="lost",
        collection=_ZHANG,
        file_name="lost.mat",
        n_samples=1122,
        n_features=108,
        n_classes=16,
        mean_candidates=2.23,
        sha256="42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f",
        title="Lost",
        task="automatic face naming",
        n_true_classes=14,
        candidate_range=(1, 3),
        n_singletons=67,
        description=(
            "Faces cut from episodes of the television series Lost, each described by 108 "
            "principal components. The candidates of a face are the characters whom the "
            "screenplay places in its scene."
        ),
        citation=(
            "T. Cour, B. Sapp and B. Taskar. Learning from partial labels. "
            "Journal of Machine Learning Research 12, 2011."
        ),
        notes=(
            "The features run from -7558 to 7168: scale them.",
            "Classes 14 and 15 occur only as false candidates, never as a true label.",
        ),
    ),
    DatasetInfo(
        name="birdsong",
        collection=_ZHANG,
        file_name="BirdSong.mat",
        n_samples=4998,
        n_features=38,
        n_classes=13,
        mean_candidates=2.18,
        sha256="2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743",
        title="BirdSong",
        task="bird sound classification",
        n_true_classes=13,
        candidate_range=(1, 4),
        n_singletons=1632,
        description=(
            "Single bird utterances out of short field recordings. The candidates of an utterance "
            "are all species that were heard somewhere in its recording."
        ),
        citation=(
            "F. Briggs, X. Z. Fern and R. Raich. Rank-loss support instance machines for MIML "
            "instance annotation. KDD 2012."
        ),
        notes=("The features run from -0.02 to 101040 on very unequal scales: scale them.",),
    ),
    DatasetInfo(
        name="msrcv2",
        collection=_ZHANG,
        file_name="MSRCv2.mat",
        n_samples=1758,
        n_features=48,
        n_classes=23,
        mean_candidates=3.16,
        sha256="948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393",
        title="MSRCv2",
        task="object classification",
        n_true_classes=23,
        candidate_range=(1, 7),
        n_singletons=140,
        description=(
            "Regions of photographs. The candidates of a region are all objects that its "
            "photograph shows."
        ),
        citation=(
            "L. Liu and T. G. Dietterich. A conditional multinomial mixture model for superset "
            "label learning. NIPS 2012."
        ),
        notes=(
            "The features lie between 0 and 1.",
            "The smallest class has 3 examples, so stratified ten-fold splits are impossible: "
            "use plain shuffled folds.",
            "Five rows are duplicates of others.",
        ),
    ),
    DatasetInfo(
        name="fgnet",
        collection=_ZHANG,
        file_name="FG-NET.mat",
        n_samples=1002,
        n_features=262,
        n_classes=78,
        mean_candidates=7.48,
        sha256="5b8d43e40cee007f6438a7a74d600b5cf67ac596754a322ce91b0fc6811f45db",
        title="FG-NET",
        task="facial age estimation",
        n_true_classes=63,
        candidate_range=(2, 11),
        n_singletons=0,
        description=(
            "Portraits of people at different ages; the class is the age in years. The "
            "candidates are the guesses of several annotators together with the true age."
        ),
        citation=(
            "G. Panis, A. Lanitis, N. Tsapatsoulis and T. F. Cootes. Overview of research on "
            "facial ageing using the FG-NET ageing database. IET Biometrics 5(2), 2016."
        ),
        notes=(
            "The features are already standardized.",
            "The classes are the ages 0 to 77; 15 of them are never the true age of a portrait. "
            "The order of the classes has a meaning, so errors in years can be measured.",
            "Many ages have fewer than ten examples, so stratified ten-fold splits are "
            "impossible: use plain shuffled folds.",
        ),
    ),
    DatasetInfo(
        name="soccer_player",
        collection=_ZHANG,
        file_name="Soccer Player.mat",
        n_samples=17472,
        n_features=279,
        n_classes=171,
        mean_candidates=2.09,
        title="Soccer Player",
        task="automatic face naming",
        description=(
            "Faces of football players in press photographs. The candidates of a face are the "
            "names in the caption of its photograph."
        ),
        citation=(
            "Z. Zeng, S. Xiao, K. Jia, T.-H. Chan, S. Gao, D. Xu and Y. Ma. Learning by "
            "associating ambiguously labeled images. CVPR 2013."
        ),
        notes=("The hash of the file is not known: only its shape is checked.",),
    ),
    DatasetInfo(
        name="yahoo_news",
        collection=_ZHANG,
        file_name="Yahoo! News.mat",
        n_samples=22991,
        n_features=163,
        n_classes=219,
        mean_candidates=1.91,
        title="Yahoo! News",
        task="automatic face naming",
        description=(
            "Faces in news photographs. The candidates of a face are the names in the caption of "
            "its photograph."
        ),
        citation=(
            "M. Guillaumin, J. Verbeek and C. Schmid. Multiple instance metric learning from "
            "automatically labeled bags of faces. ECCV 2010."
        ),
        notes=("The hash of the file is not known: only its shape is checked.",),
    ),
    DatasetInfo(
        name="mirflickr",
        collection=_ZHANG,
        file_name="Mirflickr.mat",
        n_samples=2780,
        n_features=1536,
        n_classes=14,
        mean_candidates=2.76,
        title="Mirflickr",
        task="web image classification",
        description=(
            "Photographs out of the MIR Flickr collection, each with several candidate labels of "
            "which one is right."
        ),
        citation=(
            "M. J. Huiskes and M. S. Lew. The MIR Flickr retrieval evaluation. "
            "ACM International Conference on Multimedia Information Retrieval, 2008."
        ),
        notes=("The hash of the file is not known: only its shape is checked.",),
    ),
    DatasetInfo(
        name="glass",
        collection=_UCI,
        file_name="glass.arff",
        sha256="7666478791baf605953d43f670c2d24b6492dd6467b86520db9a93c5fd84c3d1",
        n_samples=214,
        n_features=9,
        n_classes=6,
        n_true_classes=6,
        title="Glass Identification",
        task="forensic science",
        description=(
            "Splinters of glass with their refractive index and the shares of eight oxides; the "
            "class is what the glass was made for."
        ),
        citation="B. German. Glass Identification. UCI Machine Learning Repository, 1987.",
        notes=(
            "The header of the file names a seventh class (vehicle windows that are not float "
            "glass) of which there is no example; it is left out.",
            "The classes are unequal: 9 to 76 examples.",
        ),
    ),
    DatasetInfo(
        name="segment",
        collection=_UCI,
        file_name="segment.arff",
        sha256="fc99b13f74a51f0c2f94954bd3795dd023226f7b9dd18d5fb6d5c9944dec52e4",
        n_samples=2310,
        n_features=19,
        n_classes=7,
        n_true_classes=7,
        title="Image Segmentation",
        task="image segmentation",
        description=(
            "Patches of 3 x 3 pixels out of seven outdoor photographs, described by position, "
            "edges and colour; the class is the surface that the patch shows, 330 patches each."
        ),
        citation="Image Segmentation. UCI Machine Learning Repository, 1990.",
        notes=("Column 2 (region-pixel-count) is constant, which leaves 18 useful features.",),
    ),
    DatasetInfo(
        name="vehicle",
        collection=_UCI,
        file_name="vehicle.arff",
        sha256="c815585534f9e8c51c6cbe535770891744f5883081709f3a36a58bd419ce0994",
        n_samples=846,
        n_features=18,
        n_classes=4,
        n_true_classes=4,
        title="Vehicle Silhouettes",
        task="object recognition",
        description=(
            "Silhouettes of four model vehicles seen from many angles, described by 18 measures "
            "of their shape."
        ),
        citation=(
            "J. P. Siebert. Vehicle recognition using rule based methods. "
            "Turing Institute research memorandum TIRM-87-018, 1987."
        ),
    ),
    DatasetInfo(
        name="letter",
        collection=_UCI,
        file_name="letter.arff",
        sha256="4207f96c1a503ce702d555d6ad692bdf0b9171358b324aadef1400b39d0df0c3",
        n_samples=20000,
        n_features=16,
        n_classes=26,
        n_true_classes=26,
        title="Letter Recognition",
        task="character recognition",
        description=(
            "Distorted images of the 26 capital letters in twenty fonts, described by 16 integer "
            "statistics of their pixels."
        ),
        citation=(
            "P. W. Frey and D. J. Slate. Letter recognition using Holland-style adaptive "
            "classifiers. Machine Learning 6, 1991."
        ),
        notes=("Studies of partial labels often use 5000 of the examples: fix a seed.",),
    ),
    DatasetInfo(
        name="digits",
        collection=_SCIKIT_LEARN,
        n_samples=1797,
        n_features=64,
        n_classes=10,
        n_true_classes=10,
        title="Handwritten Digits",
        task="character recognition",
        description="Handwritten digits as images of 8 x 8 pixels with values 0 to 16.",
        citation=(
            "E. Alpaydin and C. Kaynak. Optical Recognition of Handwritten Digits. "
            "UCI Machine Learning Repository, 1998."
        ),
        notes=("Three of the pixels are the same in every image.",),
    ),
    DatasetInfo(
        name="wine",
        collection=_SCIKIT_LEARN,
        n_samples=178,
        n_features=13,
        n_classes=3,
        n_true_classes=3,
        title="Wine",
        task="chemical analysis",
        description="Chemical analyses of wines from one region; the class is the cultivar.",
        citation="S. Aeberhard and M. Forina. Wine. UCI Machine Learning Repository, 1992.",
        notes=("The features are on very unequal scales: scale them.",),
    ),
    DatasetInfo(
        name="iris",
        collection=_SCIKIT_LEARN,
        n_samples=150,
        n_features=4,
        n_classes=3,
        n_true_classes=3,
        title="Iris",
        task="botany",
        description="Lengths and widths of the petals and sepals of three species of iris.",
        citation=(
            "R. A. Fisher. The use of multiple measurements in taxonomic problems. "
            "Annals of Eugenics 7, 1936."
        ),
    ),
    DatasetInfo(
        name="breast_cancer",
        collection=_SCIKIT_LEARN,
        n_samples=569,
        n_features=30,
        n_classes=2,
        n_true_classes=2,
        title="Breast Cancer Wisconsin (Diagnostic)",
        task="medical diagnosis",
        description=(
            "Measures of cell nuclei in images of fine needle aspirates; the class is the "
            "diagnosis."
        ),
        citation=(
            "W. N. Street, W. H. Wolberg and O. L. Mangasarian. Nuclear feature extraction for "
            "breast tumor diagnosis. SPIE 1905, 1993."
        ),
        notes=(
            "With two classes a candidate set of two says nothing about the label.",
            "The features are on very unequal scales: scale them.",
        ),
    ),
)

REGISTRY: Mapping[str, DatasetInfo] = MappingProxyType({info.name: info for info in _DATASETS})
