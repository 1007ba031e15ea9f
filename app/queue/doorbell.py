"""Tells the workers that a run waits."""

import logging

from kombu.exceptions import OperationalError

from app.queue.celery_app import TASK, make_celery

_log = logging.getLogger(__name__)
_PUBLISH = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1}


class Queue:
    """Rings for runs.  Without a URL nobody is rung, and workers find the run when they look for themselves."""

    def __init__(self, redis_url: str | None) -> None:
        self._celery = None if redis_url is None else make_celery(redis_url)

    def ring(self, run_id: int) -> bool:
        """Publish the id; a failure is logged and answered with False, since the run is queued in any case."""
        if self._celery is None:
            return False
        try:
            self._celery.send_task(TASK, args=[str(run_id)], retry=True, retry_policy=_PUBLISH)
        except (OperationalError, OSError) as error:
            _log.warning("run %s waits, but the queue does not answer: %s", run_id, error)
            return False
        return True
