"""The commands, each `python -m zhen.NAME` with configs/NAME.yaml."""

COMMANDS = (
    "train",
    "sweep",
    "submit",
    "evaluate",
    "translate",
    "attention",
    "compare",
    "reproduce",
    "data_check",
)
