"""Numbers from the query of a page's URL."""

import gradio as gr


def integer(request: gr.Request, name: str) -> int | None:
    """A parameter as a number that ids and steps can have; None when it is missing or something else."""
    text = str(request.query_params.get(name) or "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def text(request: gr.Request, name: str) -> str | None:
    return request.query_params.get(name) or None
