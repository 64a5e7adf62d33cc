"""A decoder layer of Llama: grouped queries, rotary positions, a SwiGLU, each after a root-mean-square norm."""

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding


def config(width):
    return LlamaConfig(
        hidden_size=width,
        intermediate_size=2 * width,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_implementation="sdpa",
    )


def layer(width):
    return LlamaDecoderLayer(config(width), layer_idx=0)


def make_inputs(width, batch, steps):
    """The cosines and sines of the steps, which the model computes once for all of its layers."""
    positions = torch.arange(steps).expand(batch, steps)
    return {"position_embeddings": LlamaRotaryEmbedding(config(width))(torch.zeros(batch, steps, width), positions)}
