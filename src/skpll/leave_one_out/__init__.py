"""Methods that ask, for every example, a model that has not seen it."""
