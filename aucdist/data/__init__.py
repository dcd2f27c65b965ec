"""From bytes to blocks."""
