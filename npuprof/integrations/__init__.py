"""npuprof where users already are: the flags of a script, pytest, MLflow. Each module stands alone, and loads when it is imported.

A notebook needs none of them: what the library gives shows itself there.
"""
