"""A block of a preset in place of the hand-written lines that set the same.

``plan`` finds the configurations of a file that a preset equals, ``python`` and ``shell`` find the lines to take out and where the block
goes, ``proof`` compares what the file sets afterwards with what it set before.
"""
