"""The whole model: embedding, encoder stack, decoder stack, output (Vaswani et al. 2017, figure 1).

Shapes: B batch, S source length, T target length, D d_model, V target vocabulary.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from .embedding import Embedding
from .layers import DecoderLayer, EncoderLayer, LayerCache


@dataclass
class DecoderCache:
    """What step-by-step decoding keeps, for B sentences with k beams each.

    The beams of a sentence are k queries to one memory and to one history, which grows by k
    positions a step. When beams multiply or end, no key or value moves: `history` alone tells
    which of the positions a beam has behind it.
    """

    layers: list[LayerCache]
    memory_mask: Tensor  # (B, 1, 1, S)
    steps: int = 0  # so far
    # (B, 1, k, positions), True = of this beam; None as long as a sentence has a single beam.
    history: Tensor | None = None

    def select(self, rows: Tensor) -> None:
        """Keep the sentences at `rows`, a (B',) tensor of indices, in that order."""
        self.memory_mask = self.memory_mask[rows]
        if self.history is not None:
            self.history = self.history[rows]
        for layer in self.layers:
            layer.select(rows)

    def follow(self, parents: Tensor) -> None:
        """Let beam j of each sentence go on from where beam `parents[:, j]`, (B, k), stands."""
        if self.history is not None:  # else all go on from the only one
            self.history = self.history.take_along_dim(parents[:, None, :, None], dim=2)

    def grow(self, num_beams: int) -> Tensor | None:
        """Begin a step: gives what each beam may see of the history, itself included.

        From one beam there may become several, once; from then on their number stays.
        """
        if num_beams > 1:
            shape = len(self.memory_mask), 1, num_beams  # (B, 1, k)
            if self.history is None:
                self.history = self.memory_mask.new_ones(*shape, self.steps)
            itself = torch.eye(num_beams, dtype=torch.bool, device=self.memory_mask.device)
            self.history = torch.cat([self.history, itself.expand(*shape, -1)], dim=-1)
        self.steps += 1
        return self.history


class Transformer(nn.Module):
    """Encoder-decoder over one vocabulary that both languages share, or over one for each.

    The defaults are the paper's base model (section 3 and table 3). Padding must stand at the end
    of each row.

    Args:
        vocab_size: number of pieces of the target, V; of the source too where they share.
        source_vocab_size: number of pieces of the source, where it has a vocabulary, and an
            embedding, of its own; None where both languages share them.
        pad_id: the piece that fills rows up to the batch's length, in both vocabularies.
        d_model: width, D; even.
        num_heads: attention heads; divides `d_model`.
        d_ff: inner width of the feed-forward networks.
        num_encoder_layers: blocks of the encoder.
        num_decoder_layers: blocks of the decoder.
        dropout: residual and embedding dropout, in [0, 1) (section 5.4).
        norm: where layer norm stands; "post" is the paper's, "pre" trains more easily.
        activation: of the feed-forward networks.
        tie_embeddings: use the target's embedding matrix as output matrix too (section 3.4).
        max_positions: longest sequence, in pieces.

    Raises:
        ValueError: a size below 1, `dropout` outside [0, 1), or what the parts refuse.
    """

    def __init__(
        self,
        *,
        vocab_size: int,
        source_vocab_size: int | None = None,
        pad_id: int = 0,
        d_model: int = 512,
        num_heads: int = 8,
        d_ff: int = 2048,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dropout: float = 0.1,
        norm: Literal["pre", "post"] = "post",
        activation: Literal["relu", "gelu"] = "relu",
        tie_embeddings: bool = True,
        max_positions: int = 1024,
    ) -> None:
        super().__init__()
        sizes = {
            "vocab_size": vocab_size,
            "d_model": d_model,
            "num_heads": num_heads,
            "d_ff": d_ff,
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "max_positions": max_positions,
        }
        if source_vocab_size is not None:
            sizes["source_vocab_size"] = source_vocab_size
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"`{name}` must be at least 1, but is {size}")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be at least 0 and below 1, but is {dropout}")

        # The constructor's arguments: plain data from which a checkpoint rebuilds the model.
        self.config: dict[str, int | float | str | bool] = {
            **sizes,
            "pad_id": pad_id,
            "dropout": dropout,
            "norm": norm,
            "activation": activation,
            "tie_embeddings": tie_embeddings,
        }
        self.pad_id = pad_id
        self.max_positions = max_positions

        def embedding(vocab_size: int) -> Embedding:
            return Embedding(
                vocab_size=vocab_size, d_model=d_model, max_positions=max_positions, dropout=dropout
            )

        self.embedding = embedding(vocab_size)
        # Only where the source has a vocabulary of its own.
        self.source_embedding = embedding(source_vocab_size) if source_vocab_size else None

        def layers(layer: type[EncoderLayer] | type[DecoderLayer], count: int) -> nn.ModuleList:
            return nn.ModuleList(
                layer(
                    d_model=d_model,
                    num_heads=num_heads,
                    d_ff=d_ff,
                    dropout=dropout,
                    norm=norm,
                    activation=activation,
                )
                for _ in range(count)
            )

        self.encoder = layers(EncoderLayer, num_encoder_layers)
        self.decoder = layers(DecoderLayer, num_decoder_layers)
        # Post-norm blocks end normalised; pre-norm stacks need one norm more.
        self.encoder_norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if norm == "pre" else nn.Identity()
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        self._initialise()
        if tie_embeddings:
            self.output.weight = self.embedding.pieces.weight

    @property
    def num_parameters(self) -> int:
        """How many numbers are learned; a tied matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def _initialise(self) -> None:
        # Glorot and Bengio 2010, for every matrix but the embedding, which sets its own scale.
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Logits of the piece that follows each target position.

        Args:
            source: ids (B, S).
            target: ids (B, T), beginning with the start piece.

        Returns:
            (B, T, V).
        """
        return self.logits(self.hidden(source, target))

    def hidden(self, source: Tensor, target: Tensor) -> Tensor:
        """What `forward` computes before the output matrix, (B, T, D).

        The loss picks the real positions from it, so that no logits are made for padding.
        """
        memory, memory_mask = self.encode(source)
        x = self.embedding(target)  # (B, T, D)
        for layer in self.decoder:
            x = layer(x, memory, memory_mask)
        return self.decoder_norm(x)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encode ids (B, S) to the memory (B, S, D) and its mask (B, 1, 1, S), True = real."""
        mask = (source != self.pad_id)[:, None, None, :]
        embedding = self.embedding if self.source_embedding is None else self.source_embedding
        x = embedding(source)  # (B, S, D)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), mask

    def logits(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        return self.output(hidden)

    def start(self, source: Tensor) -> DecoderCache:
        """Encode ids (B, S) and make a cache to decode from, one step after the other."""
        memory, memory_mask = self.encode(source)
        layers = [layer.start(memory) for layer in self.decoder]  # type: ignore[operator]
        return DecoderCache(layers, memory_mask)

    def step(self, last: Tensor, cache: DecoderCache) -> Tensor:
        """Decode one position: logits (B, k, V) of what follows `last` (B, k), growing `cache`.

        The k columns are the beams of a sentence; where one does not continue itself,
        `cache.follow` has said what it does.
        """
        x = self.embedding(last.reshape(-1, 1), offset=cache.steps)  # (B * k, 1, D)
        x = x.view(*last.shape, -1)  # (B, k, D)
        history = cache.grow(last.size(1))
        for layer, layer_cache in zip(self.decoder, cache.layers, strict=True):
            x = layer.step(x, layer_cache, cache.memory_mask, history)  # type: ignore[operator]
        return self.logits(self.decoder_norm(x))
