"""Model server with the Open Inference Protocol.  README.md describes its use and design."""
