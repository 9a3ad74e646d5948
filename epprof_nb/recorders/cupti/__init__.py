"""The CUPTI recorder."""
