"""Does `truerank advise` advise well? A study on one half of the users of a world, fresh logs of both halves."""
