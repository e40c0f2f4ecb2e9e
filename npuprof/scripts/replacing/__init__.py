"""A block of a preset in place of the hand-written lines that it stands for.

``plan`` finds the configurations of a file that a preset equals, ``python``, ``calls`` and ``shell`` tell which lines make them
and where the block goes, ``proof`` holds what the file sets afterwards against what it set before.
"""
