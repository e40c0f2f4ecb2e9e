"""What verbs are made of: bodies that several of them share, or that are long enough for a module of their own."""
