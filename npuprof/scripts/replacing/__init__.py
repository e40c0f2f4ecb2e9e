"""Replaces hand-written settings of a script by an equivalent block of a preset.

``plan`` finds the configurations that equal a preset, ``python`` and ``shell`` find the lines to
remove and the place of the block, ``proof`` compares the file's settings before and after.
"""
