"""The CUPTI recorder: activities and API calls of NVIDIA GPUs."""
