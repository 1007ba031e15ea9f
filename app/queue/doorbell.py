"""Tells the workers that a run waits."""

import logging

from kombu.exceptions import OperationalError

from app.queue.celery_app import TASK, make_celery

_log = logging.getLogger(__name__)
# once more, since a connection that was kept may be one to a server that has been restarted meanwhile
_RETRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1}
# somebody waits for the answer: a server that takes connections and then says nothing must not hold them up
_SHORT = {"socket_timeout": 2, "socket_connect_timeout": 2, "retry_on_timeout": False}


class Queue:
    """Rings for runs.  Without a URL nobody is rung, and workers find the run when they look for themselves."""

    def __init__(self, redis_url: str | None) -> None:
        self._celery = None if redis_url is None else make_celery(redis_url)
        if self._celery is not None:
            self._celery.conf.broker_transport_options |= _SHORT

    def ring(self, run_id: int) -> bool:
        """Publish the id; a failure is logged and answered with False, since the run is queued in any case."""
        if self._celery is None:
            return False
        try:
            self._celery.send_task(TASK, args=[str(run_id)], retry=True, retry_policy=_RETRY)
        except (OperationalError, OSError) as error:
            _log.warning("run %s waits, but the queue does not answer: %s", run_id, error)
            return False
        return True
