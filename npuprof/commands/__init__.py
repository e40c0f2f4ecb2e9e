"""The verbs, one module each: parameters declared as data, the body, and the answer it returns."""
