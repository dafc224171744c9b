"""Draw the gallery's example of a model's best guesses, for pages without the gallery.

python docs/figures/guesses.py docs/figures/guesses.png
"""

import runpy
import sys
from pathlib import Path

import matplotlib as mpl

EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_top_k.py"


def main(path: str) -> None:
    """Run the example without a window, and save its figure."""
    mpl.use("Agg")
    figure = runpy.run_path(str(EXAMPLE))["figure"]
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main(sys.argv[1])
