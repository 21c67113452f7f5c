"""The papers' claims as data: their sentences, their computation here, and verdicts by one rule.

`tailcut.claims.document` reads ``claims.toml``, `metrics` computes a claim's numbers from runs, `verdict` judges them,
`make` makes the runs that are missing, `scorecard` keeps what came out, and `page` shows it.
"""

from tailcut.claims.document import Claim, Paper, load
from tailcut.claims.scorecard import Row, Scorecard
from tailcut.claims.verdict import Verdict

__all__ = ["Claim", "Paper", "Row", "Scorecard", "Verdict", "load"]
