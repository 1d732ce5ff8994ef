"""Show what each layer and head of a trained model looks at, for one sentence.

    python -m zhen.attention text='"你很漂亮。"' layer=2

Reads configs/attention.yaml; writes attention.html, a page to click through, and attention.png, an
overview, into the run's directory. For a target that is given it prints the scores too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from zhen.config import build, run_command
from zhen.errors import UserError

MOST_WEIGHTS = 10_000_000  # a page of some 50 MB


def attention(cfg: DictConfig) -> None:
    """Let `cfg.ckpt`, or the newest best checkpoint, read `cfg.text`, and show where it looks."""
    from zhen.files import check_writable, make_directory, write_atomic
    from zhen.runs.directory import home_of, newest_checkpoint
    from zhen.translator import Translator, pick_device
    from zhen.viewer.look import best_translation, look, read_sentence
    from zhen.viewer.page import page
    from zhen.viewer.picture import picture
    from zhen.viewer.table import table

    if cfg.text is None:
        raise UserError('`text` has no value: give one sentence, as make attention TEXT="你好"')
    decode = build(cfg.decode, "decode")
    checkpoint = Path(cfg.ckpt) if cfg.ckpt else newest_checkpoint(cfg.paths.runs)
    translator = Translator.load(checkpoint, device=pick_device(cfg.device))
    sizes = translator.model.config
    check_number("layer", cfg.layer, sizes["num_encoder_layers"], sizes["num_decoder_layers"])
    check_number("head", cfg.head, sizes["num_heads"])
    source = read_sentence(translator, cfg.text, key="text", side="source")
    if cfg.target is None:
        target = best_translation(translator, source, decode)
    else:
        target = read_sentence(translator, cfg.target, key="target", side="target")
    check_size(sizes, len(source) + 1, len(target) + 1)
    folder = make_directory(cfg.output, key="output") if cfg.output else home_of(checkpoint)
    for name in ("attention.html", "attention.png"):
        check_writable(folder / name, key="output")

    maps = look(translator, source, target)
    (source_text,) = translator.tokenizer.source.decode([source])
    (target_text,) = translator.tokenizer.target.decode([target])
    html = page(maps, source_text, target_text, cfg.layer, cfg.head)
    png = picture(maps)
    write_atomic(folder / "attention.html", html, key="output")
    write_atomic(folder / "attention.png", png, key="output")
    print(f"{source_text} -> {target_text}")
    if cfg.target is not None:
        print(f"\n{table(maps, cfg.layer, cfg.head)}\n")
    print(folder / "attention.html", folder / "attention.png", sep="\n")


def check_number(key: str, number: int | None, *counts: float | str) -> None:
    """Raises UserError unless `number` is None or each of `counts` reaches it."""
    count = min(map(int, counts))
    if number is not None and number > count:
        both = " in the encoder or in the decoder" if len(set(counts)) > 1 else ""
        raise UserError(
            f"`{key}` must be from 1 to {count}, or null for the mean of all, but is {number}:"
            f" the model has no more{both}"
        )


def check_size(sizes: Mapping[str, Any], source: int, target: int) -> None:
    """Raises UserError where the page would hold more weights than a browser likes to open."""
    encoder = sizes["num_encoder_layers"] * source**2
    decoder = sizes["num_decoder_layers"] * target * (target + source)
    if sizes["num_heads"] * (encoder + decoder) > MOST_WEIGHTS:
        raise UserError(
            f"`text` and its translation have {source} and {target} pieces: with all layers and"
            f" heads that is more than {MOST_WEIGHTS:,} weights; shorten them"
        )


if __name__ == "__main__":
    run_command(attention, config_name="attention")
