"""What each verb does: read, ask the library, answer. Every function returns the exit code."""
