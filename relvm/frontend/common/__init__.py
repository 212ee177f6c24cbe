"""Parts that several front ends share: general padding, gathers, scatters, windows, products and sorts, and the error
that lists what is not supported.

Nothing here depends on the formats that the front ends read.
"""
