"""Methods that maximize a margin."""
