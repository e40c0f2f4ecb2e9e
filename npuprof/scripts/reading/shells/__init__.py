"""Text of shell scripts to commands and words, and which of them count."""
