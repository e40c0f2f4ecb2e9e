"""Integrations: script flags (absl, argparse), pytest, MLflow.

Each module is independent and imported on demand.

Notebooks need no integration: library objects have HTML representations.
"""
