"""Methods that look at the neighbours of an example."""
