"""Validation of truerank: do its intervals, verdicts and plans keep the rates that they state?"""
