"""Instrumentation that records cell statements and named ranges as ops."""
