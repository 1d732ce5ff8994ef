"""zhen: Hydra-configured Lightning training around a Transformer written from scratch."""

__version__ = "0.1.0"
