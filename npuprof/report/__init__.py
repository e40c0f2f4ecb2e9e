"""What verbs say: answers and findings in every format, text as terminals may have it, files written whole."""
