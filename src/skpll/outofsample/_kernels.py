"""Former home of `skpll.engine.kernels`."""

from skpll.engine.kernels import KERNELS, KernelMap, median_distance

__all__ = ["KERNELS", "KernelMap", "median_distance"]
