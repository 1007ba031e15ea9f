"""Takes back steps of a run that are made again."""

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.store.ids import first_id, last_id
from app.store.tables import Checkpoint, Completion, Group, Metric, Name, RewardHistogram, Run, RunImage
from app.store.tables.metrics import MEAN_REWARD

_BY_STEP = (Group, Metric, RewardHistogram, Checkpoint)


def void_after(session: Session, run_id: int, step: int) -> None:
    """Delete everything of the run that belongs to a step above `step`; what other runs may share stays."""
    for table in _BY_STEP:
        # completions go with their groups; bodies, rewards and token statistics with their completions
        session.execute(delete(table).where(table.run_id == run_id, table.step > step))
    session.execute(delete(RunImage).where(RunImage.run_id == run_id, RunImage.first_step > step))
    _set_progress(session, run_id)


def _set_progress(session: Session, run_id: int) -> None:
    """Make the run's counters those of the rows that are left."""
    of_run = Completion.id.between(first_id(run_id), last_id(run_id))
    step = select(func.coalesce(func.max(RewardHistogram.step), 0)).where(RewardHistogram.run_id == run_id)
    reward = (
        select(Metric.value)
        .join(Name, Name.id == Metric.name_id)
        .where(Metric.run_id == run_id, Name.name == MEAN_REWARD)
    )
    left = {
        "step": step.scalar_subquery(),
        "completions": select(func.count()).where(of_run).scalar_subquery(),
        "images": select(func.count()).where(RunImage.run_id == run_id).scalar_subquery(),
        "reward_first": reward.order_by(Metric.step).limit(1).scalar_subquery(),
        "reward_last": reward.order_by(Metric.step.desc()).limit(1).scalar_subquery(),
    }
    session.execute(update(Run).where(Run.id == run_id).values(left))
