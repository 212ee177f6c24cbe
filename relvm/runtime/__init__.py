"""The runtime: what a deployed program needs.  Imports nothing of the compiler."""
