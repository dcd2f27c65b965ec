"""Where the blocks are and how work reaches them: `blocks.reduce`."""
