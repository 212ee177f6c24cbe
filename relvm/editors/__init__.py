"""Support for editors: language server, debug adapter, formatter and syntax highlighting of the text form."""
