"""What an expression of a script always is: names, attributes, calls and loops, folded without running anything."""
