"""Rules: one file per cause that a finding can name, in one folder per area.

`registry` lists the rules that run; `analysis.findings.ranking` orders what they find. What rules
share, and yields no finding, is in `analysis.findings`.
"""
