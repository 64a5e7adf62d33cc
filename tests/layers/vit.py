"""A layer of ViT: attention among all patches and an MLP, each after a layer norm."""

from transformers import ViTConfig
from transformers.models.vit.modeling_vit import ViTLayer


def layer(width):
    return ViTLayer(
        ViTConfig(
            hidden_size=width,
            intermediate_size=2 * width,
            num_attention_heads=4,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
            attn_implementation="sdpa",
        )
    )
