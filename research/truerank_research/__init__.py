"""Research around truerank: validation studies that use its public names only."""
