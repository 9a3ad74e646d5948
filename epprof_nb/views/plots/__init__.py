"""Matplotlib figures of a profile, for papers and slides; see `epprof_nb.views.plots.figures`."""
