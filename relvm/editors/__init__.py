"""Support for editors: the formatter and the highlighter of the text form."""
