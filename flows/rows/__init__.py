"""The rows of a run: where they come from, how they are split and encoded, and how they become blocks."""
