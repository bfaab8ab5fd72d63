"""The demo: a simulated dataset whose truth is known, one question, one picture, one lesson."""
