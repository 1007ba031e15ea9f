"""Reinforcement learning of vision-language models as a library: give it a RunConfig and a Recorder, it trains."""
