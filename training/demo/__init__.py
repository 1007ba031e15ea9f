"""The built-in demo models: small SmolVLMs, made and warm-started here at first use, and presets that train them."""
