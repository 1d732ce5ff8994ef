"""The overview has every layer and head, legible labels, and bounds to its size."""

import warnings
from io import BytesIO

import matplotlib
import pytest
import torch
from PIL import Image
from tests.viewer.toy import BUTTERFLY, DECODER_LAYERS, ENCODER_LAYERS, HEADS, TOKENIZER, make

from zhen.translator import Translator
from zhen.viewer import picture as module
from zhen.viewer.look import AttentionMap, look
from zhen.viewer.picture import DPI, LIMIT, LINE, STYLE, picture

TRANSLATOR = make()


SMALL = make(num_encoder_layers=1, num_decoder_layers=1, num_heads=1)


def maps(
    text: str = BUTTERFLY, target: str = "you are beautiful", translator: Translator = TRANSLATOR
) -> list[AttentionMap]:
    return look(translator, *TOKENIZER.source.encode([text, target]))


def test_a_panel_for_each_layer_and_head_of_each_map() -> None:
    figure = module._draw(maps())
    assert len(figure.axes) == (ENCODER_LAYERS + 2 * DECODER_LAYERS) * HEADS
    for each, axes in zip(maps(), (figure.axes[0], figure.axes[12], figure.axes[20]), strict=True):
        assert axes.get_title() == "layer 1, head 1"
        assert torch.equal(torch.tensor(axes.images[0].get_array()), each.weights[0, 0])
        assert axes.images[0].get_clim() == (0, 1)
        assert [label.get_text() for label in axes.get_yticklabels()] == each.queries
    assert [label.get_text() for label in figure.axes[-4].get_xticklabels()] == maps()[2].keys


def test_no_glyph_is_missing_and_no_label_is_cut_off() -> None:
    module.fontManager.addfont(module.font_file())
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = module._draw(maps("这只 蝴蝶 $x$ </s> é", "$$", SMALL))
        figure.canvas.draw()
        inside = figure.bbox
        for axes in figure.axes:
            for label in [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.title]:
                box = label.get_window_extent()
                assert inside.x0 <= box.x0 and box.x1 <= inside.x1, label.get_text()
                assert inside.y0 <= box.y0 and box.y1 <= inside.y1, label.get_text()


@pytest.mark.parametrize(("text", "target"), [("你", ""), ("🦋", "🦋")])
def test_short_and_odd_sentences(text: str, target: str) -> None:
    assert Image.open(BytesIO(picture(maps(text, target, SMALL)))).format == "PNG"


def test_a_piece_in_dollars_is_no_formula() -> None:
    odd = AttentionMap("x", ["$\\frac$"], ["$\\frac$"], None, torch.ones(1, 1, 1, 1))
    picture([odd])


def test_a_long_sentence_grows_up_to_a_limit_and_keeps_labels_apart() -> None:
    def of(pieces: int) -> list[AttentionMap]:
        names = [f"蝴蝶{i}" for i in range(pieces)]
        return [AttentionMap("x", names, names, None, torch.rand(2, 2, pieces, pieces))]

    short, longer, longest = (module._draw(of(pieces)) for pieces in (5, 60, 900))
    assert short.get_figwidth() < longer.get_figwidth() < longest.get_figwidth()
    assert len(longer.axes[0].get_yticklabels()) == 60
    assert max(longest.get_size_inches()) < LIMIT + 3
    shown = longest.axes[0].get_yticks()
    height = longest.axes[0].get_position().height * longest.get_figheight()
    assert len(shown) > 200 and height / len(shown) >= LINE


def test_the_picture_leaves_the_settings_of_matplotlib_alone() -> None:
    before = dict(matplotlib.rcParams)
    image = Image.open(BytesIO(picture(maps())))
    assert dict(matplotlib.rcParams) == before
    assert image.info["dpi"] == pytest.approx((DPI, DPI), abs=0.1)
