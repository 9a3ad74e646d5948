"""The scripts that `epprof demo` profiles, and the modules they import."""
