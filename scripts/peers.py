"""Two other decoders for the same weights, to check ours against and to measure it beside.

`to_transformers` copies a model into a class of Hugging Face's transformers; `to_ctranslate2`
converts that copy. What differs between the three searches is said where the options are mapped.
"""

from collections.abc import Sequence
from dataclasses import asdict
from tempfile import TemporaryDirectory
from typing import Any

import ctranslate2
from ctranslate2.converters.transformers import BartLoader
from torch import Tensor, nn
from transformers import (
    GenerationConfig,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from zhen.decoding import DecodeOptions
from zhen.model import Transformer

# Where the parts of a layer are in transformers.
PARTS = {
    "encoder": {
        "self_attention": "self_attn",
        "add_norm_1.norm": "self_attn_layer_norm",
        "feed_forward.expand": "fc1",
        "feed_forward.contract": "fc2",
        "add_norm_2.norm": "final_layer_norm",
    },
    "decoder": {
        "self_attention": "self_attn",
        "add_norm_1.norm": "self_attn_layer_norm",
        "cross_attention": "encoder_attn",
        "add_norm_2.norm": "encoder_attn_layer_norm",
        "feed_forward.expand": "fc1",
        "feed_forward.contract": "fc2",
        "add_norm_3.norm": "final_layer_norm",
    },
}
PROJECTIONS = {
    "query_proj": "q_proj",
    "key_proj": "k_proj",
    "value_proj": "v_proj",
    "output_proj": "out_proj",
}


def to_transformers(
    model: Transformer, *, bos_id: int, eos_id: int
) -> MarianMTModel | PegasusForConditionalGeneration:
    """The same function as a model of transformers, ready for `generate`.

    Post-norm becomes Marian and pre-norm Pegasus, which is Marian with the norms moved and one
    more at the end of each stack. Their position table has all sines first, then all cosines; it
    is replaced by ours, where they alternate. Padding and the start piece get a bias of -inf:
    our search takes them out before the softmax, so that the others share their probability.
    A source with a vocabulary of its own gets an embedding of its own in the encoder.
    """
    ours = model.config
    config_class, model_class = (
        (MarianConfig, MarianMTModel)
        if ours["norm"] == "post"
        else (PegasusConfig, PegasusForConditionalGeneration)
    )
    peer = model_class(
        config_class(
            vocab_size=ours["vocab_size"],
            max_position_embeddings=ours["max_positions"],
            d_model=ours["d_model"],
            encoder_layers=ours["num_encoder_layers"],
            decoder_layers=ours["num_decoder_layers"],
            encoder_attention_heads=ours["num_heads"],
            decoder_attention_heads=ours["num_heads"],
            encoder_ffn_dim=ours["d_ff"],
            decoder_ffn_dim=ours["d_ff"],
            activation_function=ours["activation"],
            scale_embedding=True,
            tie_word_embeddings=ours["tie_embeddings"],
            pad_token_id=model.pad_id,
            eos_token_id=eos_id,
            decoder_start_token_id=bos_id,
        )
    )
    if model.source_embedding is not None:
        peer.model.encoder.embed_tokens = nn.Embedding(
            ours["source_vocab_size"], ours["d_model"], padding_idx=model.pad_id
        )
    bias = peer.final_logits_bias.clone()  # (1, V), zeros
    bias[:, [model.pad_id, bos_id]] = float("-inf")
    layers = renamed(model.state_dict())
    peer.load_state_dict({**layers, **tables(model), "final_logits_bias": bias})
    # The class has defaults of its own, such as Marian's end piece at the longest length.
    peer.generation_config = GenerationConfig(
        pad_token_id=model.pad_id, eos_token_id=eos_id, decoder_start_token_id=bos_id
    )
    return peer.eval()


def renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the layers, and of the norms at the end of a pre-norm stack."""
    found = {}
    for name, tensor in weights.items():
        stack, _, rest = name.partition(".")
        if stack in PARTS:
            number, _, rest = rest.partition(".")
            for our_name, their_name in {**PARTS[stack], **PROJECTIONS}.items():
                rest = rest.replace(our_name, their_name)
            found[f"model.{stack}.layers.{number}.{rest}"] = tensor
        elif stack in ("encoder_norm", "decoder_norm"):
            found[f"model.{stack.removesuffix('_norm')}.layer_norm.{rest}"] = tensor
    return found


def tables(model: Transformer) -> dict[str, Tensor]:
    """The matrices beside the layers; each stack has its own name for the embeddings."""
    pieces, positions = model.embedding.pieces.weight, model.embedding.positions
    of_source = model.embedding if model.source_embedding is None else model.source_embedding
    return {
        "model.shared.weight": pieces,
        "model.encoder.embed_tokens.weight": of_source.pieces.weight,
        "model.decoder.embed_tokens.weight": pieces,
        "model.encoder.embed_positions.weight": positions,
        "model.decoder.embed_positions.weight": positions,
        "lm_head.weight": model.output.weight,
    }


def to_ctranslate2(
    peer: MarianMTModel | PegasusForConditionalGeneration, threads: int = 0
) -> ctranslate2.Translator:
    """`peer` converted by CTranslate2's own loader for this family, in float32, on the CPU.

    A piece is called by its number, so that ids need no tokenizer: see `names`.

    Args:
        threads: for one batch; 0 leaves the number to CTranslate2.
    """
    # The loader asks for these; the configurations of transformers no longer have them.
    peer.config.normalize_before = isinstance(peer, PegasusForConditionalGeneration)
    peer.config.normalize_embedding = False
    spec = BartLoader().get_model_spec(peer)
    pieces = names(range(peer.config.vocab_size))
    source_pieces = range(peer.model.encoder.embed_tokens.num_embeddings)
    spec.register_source_vocabulary(names(source_pieces))
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token = pieces[peer.config.decoder_start_token_id]
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.eos_token = pieces[peer.config.eos_token_id]
    spec.config.unk_token = pieces[peer.config.pad_token_id]  # it must be in the vocabulary
    spec.validate()
    spec.optimize(quantization="float32")
    with TemporaryDirectory() as folder:
        spec.save(folder)
        return ctranslate2.Translator(
            folder, device="cpu", compute_type="float32", inter_threads=1, intra_threads=threads
        )


def names(ids: Sequence[int]) -> list[str]:
    """Piece ids as CTranslate2 takes them; int() leads back."""
    return [str(i) for i in ids]


def transformers_options(options: DecodeOptions) -> dict[str, Any]:
    """The arguments of `generate` that ask for the same search.

    The names are the same. With `early_stopping=False`, a sentence stops where ours does: when k
    hypotheses are finished and the best beginning, at its present length, ranks below them all.
    The length that divides a score counts the end piece in both. A limit of None, which depends on
    each source, has no counterpart: give `max_new_tokens`.
    """
    asked = asdict(options) | {"early_stopping": False}
    del asked["seed"]  # theirs is the global one
    return asked


def ctranslate2_options(options: DecodeOptions) -> dict[str, Any]:
    """The arguments of `translate_batch` that ask for the nearest search.

    Greedy search is the same. Beam search keeps the same beginnings, but stops earlier: when k
    hypotheses are finished, whatever still runs; with a length penalty of 0, as soon as the best
    candidate of a step ends. Only the latter is sure to find our best hypothesis. Lengths do not
    count the end piece. Sampling has no counterpart, and neither has a limit of None.
    """
    assert options.max_new_tokens is not None and not options.do_sample
    return {
        "beam_size": options.num_beams,
        "length_penalty": options.length_penalty,
        "max_decoding_length": options.max_new_tokens,
        "min_decoding_length": options.min_new_tokens,  # 1 unless given: no empty translation
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
        "num_hypotheses": options.num_return_sequences,
    }
