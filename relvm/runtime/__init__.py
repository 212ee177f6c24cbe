"""The runtime: everything that a deployed program needs.  The runtime does not import the compiler."""
