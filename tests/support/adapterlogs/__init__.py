"""What an Ascend adapter and its graph engine write down about their options, and what was really in force: written from facts alone.

``wire`` turns a parameter map into the maps that are handed to the graph engine, in seven states of the adapter from 2021 to 2026;
``stage``, ``process`` and ``tf2`` play processes and say their lines; ``dumps`` writes graphs; ``files`` puts lines into files the way a
device, a screen and an unlucky day do; ``truth`` says what was in force and what the files that are left can prove; ``cases`` draws all of
it from a seed, and ``judge`` holds a reader against it. Nothing here reads the catalogue or the reader that it judges.
"""
