"""From a batch of sources to translations, by the search that the options ask for."""

import torch
from torch import Tensor

from zhen.decoding.beam import beam_search
from zhen.decoding.greedy import one_by_one
from zhen.decoding.options import DecodeOptions, Hypothesis
from zhen.decoding.threads import fitting_threads
from zhen.model import Transformer


@torch.inference_mode()
def generate(
    model: Transformer, source: Tensor, options: DecodeOptions, *, bos_id: int, eos_id: int
) -> list[list[Hypothesis]]:
    """Translate a batch of sources (B, S), each with its end piece, padded with `model.pad_id`.

    The model must be in evaluation mode, or dropout acts as in training. A sentence that is
    finished leaves the batch, so that the last long one is decoded alone.

    Returns:
        For each sentence `options.num_return_sequences` hypotheses, best first; fewer where beam
        search finds no more.
    """
    lengths = (source != model.pad_id).sum(dim=1).tolist()
    limits = [options.limit(length, model.max_positions) for length in lengths]
    search = beam_search if options.num_beams > 1 else one_by_one
    with fitting_threads(model) as fit_threads:
        return search(model, source, options, limits, fit_threads, bos_id=bos_id, eos_id=eos_id)
