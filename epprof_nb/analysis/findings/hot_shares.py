"""Shares of the time from which a finding names a line, function, module or operator as hot."""

from __future__ import annotations

HOT_ON_DEVICE = 0.4
"""Of the device time: a line, or an op outside of all lines."""
HOT_ON_HOST = 0.3
"""Of the wall time, a line or a module; of the samples, a function; of the host time of all
operators or nodes, one of these."""
