"""Modules, backward passes, operators and compiled code of PyTorch as ops."""
