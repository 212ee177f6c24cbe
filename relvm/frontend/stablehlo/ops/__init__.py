"""The converters, one file for each family of operations."""
