"""The pages: Gradio in FastAPI, their state in the URL, lists and groups as our own escaped HTML."""

from app.ui.pages import build_pages, mount

__all__ = ["build_pages", "mount"]
