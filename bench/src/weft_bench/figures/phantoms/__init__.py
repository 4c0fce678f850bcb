"""Paper 5's figures: collisions, space, the choice of phantoms, and what rows really cost."""
