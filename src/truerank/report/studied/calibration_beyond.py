"""The page of the calibration study: worlds of estimators that no paper has."""

from truerank.report.studied.calibration import page

__all__ = ["page"]
