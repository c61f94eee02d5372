"""A turn: from what was said to the commit of its answer."""
