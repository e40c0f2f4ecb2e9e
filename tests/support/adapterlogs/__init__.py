"""Logs of an Ascend adapter for TensorFlow 1 and its graph engine, and the effective options.

``wire`` turns a parameter map into the maps that are handed to the graph engine, in seven states of
the adapter from 2021 to 2026; ``process`` plays a process, says its lines and writes them to files;
``dumps`` writes graphs; ``truth`` says what was in force and what the lines can prove. Nothing here
reads the catalogue, or the reader that is tested with it.
"""
