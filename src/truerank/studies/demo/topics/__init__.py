"""One module for each topic of the demo; see `truerank.studies.demo`."""
