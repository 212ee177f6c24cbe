"""Forms of operators that several front ends share: general padding, gathers, scatters, windows, products and sorts.

The functions here take and return expressions.  They know nothing of the formats that the front ends read.
"""
