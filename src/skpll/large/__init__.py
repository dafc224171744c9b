"""Data that is too large to be worked on as a whole: blocks, other devices, and clusters."""
