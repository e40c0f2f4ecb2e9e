"""Runs: records of what a process received and how it ended, and identification of the preset
behind a file.
"""
