"""Configuration of the documentation."""

import os

from skpll import __version__

project = "skpll"
author = "The skpll developers"
copyright = "2026, the skpll developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    "show_memory": False,
    "show_signature": False,
}
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["custom.css"]
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_mock_imports = ["torch", "skorch"]  # the documentation is built without them
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# Links to other projects need their inventories from the network; a build without it has none.
_OTHERS = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sklearn": "https://scikit-learn.org/stable",
    "pandas": "https://pandas.pydata.org/docs",
}
_HAS_NETWORK = {"READTHEDOCS", "SKPLL_DOCS_ONLINE"} & os.environ.keys()
intersphinx_mapping = {name: (url, None) for name, url in _OTHERS.items()} if _HAS_NETWORK else {}
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "skpll"
