"""The two sublayers of GPT-2, with its default dropout: causal attention, and an MLP with a GELU."""

from transformers import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2MLP, GPT2Attention


def layer(width):
    config = GPT2Config(n_embd=width, n_head=4, attn_implementation="sdpa")
    return [GPT2Attention(config, layer_idx=0), GPT2MLP(2 * width, config)]
