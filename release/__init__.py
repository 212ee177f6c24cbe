"""Building the distributions of a release: `python -m release.wheels -o dist`."""
