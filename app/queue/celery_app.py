"""Celery over Redis or Valkey, set so that a message lost, late or doubled changes nothing."""

from celery import Celery

TASK = "vlmscope.train"


def make_celery(redis_url: str | None) -> Celery:
    """A Celery application; without a URL it can be asked for, but publishes nowhere."""
    celery = Celery("vlmscope", broker=redis_url, set_as_current=False)
    celery.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_default_queue="vlmscope",
        # a run is hours long: acknowledged late, it would be delivered again after the visibility timeout
        task_acks_late=False,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        worker_send_task_events=False,
        # a short run must not wait behind a long one while another worker idles
        worker_disable_prefetch=True,
        worker_prefetch_multiplier=1,
        worker_concurrency=1,
        worker_pool="prefork",
        worker_max_tasks_per_child=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "socket_timeout": 30,
            "socket_connect_timeout": 5,
            "health_check_interval": 25,
            "retry_on_timeout": True,
        },
    )
    return celery
