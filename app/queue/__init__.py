"""The queue: a Celery message is a doorbell that carries a run's id; the run itself stands in the database."""

from app.queue.celery_app import TASK, make_celery
from app.queue.doorbell import Queue

__all__ = ["TASK", "Queue", "make_celery"]
