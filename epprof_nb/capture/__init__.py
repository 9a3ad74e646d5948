"""The capture service, profiling sessions, and the correlation of recorded data."""
