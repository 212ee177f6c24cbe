"""The runtime: everything a deployed program needs.  It imports nothing of the compiler."""
