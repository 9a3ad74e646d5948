"""Python stacks of launches: whether they can be read here, and the tree that sessions get."""
