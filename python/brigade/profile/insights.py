"""What a profile means, and what to do about it: severity, insight, recommendation, command.

The rules stand in `brigade.profile.rules`, one function each; none knows of another. A rule that
finds nothing is silent.
"""

from __future__ import annotations

from brigade.profile.profile import Insight, Profile
from brigade.profile.rules import job, python, scale, search
from brigade.profile.sums import Sums

SEVERITIES = ("critical", "warning", "info", "good")  # in the order of the reports
RULES = (*scale.RULES, *job.RULES, *search.RULES, *python.RULES)


def find(profile: Profile) -> list[Insight]:
    """All insights, the gravest first; of one severity in the order of the rules."""
    sums = Sums(profile)
    found = [insight for rule in RULES for insight in rule(sums)]
    return sorted(found, key=lambda insight: SEVERITIES.index(insight.severity))
