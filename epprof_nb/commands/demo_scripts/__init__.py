"""The scripts that `epprof demo` profiles, and what they import."""
