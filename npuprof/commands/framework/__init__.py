"""What a verb is, where verbs are found, and how their words are read, completed and explained."""
