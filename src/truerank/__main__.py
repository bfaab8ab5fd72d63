"""`python -m truerank` is `truerank`."""

from truerank.cli import main

if __name__ == "__main__":
    main()
