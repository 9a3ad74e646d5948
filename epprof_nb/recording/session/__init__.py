"""Sessions: the recording service, and the correlation of launches, ops and activities."""
