"""Ranges of NVTX as ops."""
