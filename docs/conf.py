"""Configuration of the documentation."""

from skpll import __version__

project = "skpll"
author = "The skpll developers"
copyright = "2026, the skpll developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
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
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_mock_imports = ["torch", "skorch"]  # the documentation is built without them
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "skpll"
