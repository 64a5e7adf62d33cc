"""Forecast: does a seed of a cell train to success, from its start and its first steps? Only with proven skill.

``fit`` and ``fit_from`` return a ``Forecast``, or ``NoSkill`` with the reason why there is none. ``examples`` joins the
rows of trainings with those of their starts, ``logistic`` has the model, ``skill`` the validation, ``page`` the table
and the figure.
"""

from highway_bench.forecast.fitting import Forecast, NoSkill, fit, fit_from

__all__ = ["Forecast", "NoSkill", "fit", "fit_from"]
