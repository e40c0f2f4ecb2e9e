"""The verbs, one file each: the parameters declared as data, the body, and the answer it returns."""
