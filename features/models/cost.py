"""Size of the computation of a network, for estimates of time. This module does not need torch."""

from features.models.settings import Architecture

_GATES = {"lstm": 4, "gru": 3}
"""Matrices of a recurrent cell. Other cells have one."""


def multiply_adds(architecture: Architecture, vocabulary: int) -> tuple[int, int]:
    """Return the multiplications of a forward pass per source token and per target token, approximately.

    Only products with weights count. Products of attention with annotations are small in comparison.

    Args:
        architecture: settings of the network.
        vocabulary: size V of the target vocabulary.
    """
    a = architecture
    embedding, hidden, annotation = a.embedding_size, a.hidden_size, a.annotation
    softmax = hidden * embedding + embedding * vocabulary if a.tied_softmax else hidden * vocabulary
    if not a.recurrent:
        feedforward = 2 * hidden * a.feedforward_size
        # Keys and values of the source are computed once for each layer of the decoder.
        source = a.encoder_layers * (4 * hidden**2 + feedforward) + a.decoder_layers * 2 * hidden**2
        return source, a.decoder_layers * (6 * hidden**2 + feedforward) + softmax
    gates = _GATES.get(a.cell, 1)
    inputs = embedding + (a.encoder_layers - 1) * annotation
    source = annotation * gates * (inputs + a.encoder_layers * hidden) + annotation * a.attention_size
    inputs = embedding + annotation + (a.decoder_layers - 1) * hidden
    decoder = gates * hidden * (inputs + a.decoder_layers * hidden) + hidden * a.attention_size
    return source, decoder + hidden * (hidden + annotation + embedding) + softmax
