"""Methods that regress the confidences in candidates on the features."""
