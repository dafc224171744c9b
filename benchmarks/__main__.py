"""Run all benchmarks: ``make bench``, or ``python -m benchmarks [--quick] [NAME…]``."""

from __future__ import annotations

import argparse
import importlib

from benchmarks.report import save, show

NAMES = (
    "assignment",
    "crammer_singer",
    "fit",
    "scale",
    "methods",
    "runner",
    "tables",
    "text",
    "crowd",
)


def main() -> None:
    """Run the benchmarks that the command line names, by default all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=[])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    for name in options.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        records = module.run(options.quick)
        show(module.TITLE, records)
        print(save(name, records), flush=True)


if __name__ == "__main__":
    main()
