"""Methods that mix simple models."""
