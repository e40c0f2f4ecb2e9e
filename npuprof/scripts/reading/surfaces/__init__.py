"""The places where a Python script sets options, a module each, and the walk that finds them."""
