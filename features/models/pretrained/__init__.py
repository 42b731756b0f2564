"""Pretrained models of Hugging Face's transformers: sequence-to-sequence and causal language models."""
