"""Where Hydra looks for plugins: ``npuprof://`` on its search path is a store of presets."""

from npuprof.integrations.hydra import NpuprofSource

__all__ = ["NpuprofSource"]
