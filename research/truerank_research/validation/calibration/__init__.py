"""Do intervals and verdicts keep their promises? Worlds with known truth, drawn many times, evaluated as users do."""
