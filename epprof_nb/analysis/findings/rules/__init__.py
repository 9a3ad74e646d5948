"""Rules: one file per cause that a finding can name, in one folder per area.

`analysis.findings.ranking` lists the rules that run, and orders what they find.
"""
