"""What methods are built from: kernels, ridge regressions, and answers for held-out examples."""
