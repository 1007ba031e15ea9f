"""The training loop: sample, score, compute advantages, update, record.  It knows no algorithm and no model family."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from training import checkpoints
from training.algorithms import ALGORITHMS
from training.algorithms.overlong import punished
from training.checkpoint_files import CheckpointInfo
from training.clock import Clock
from training.config import RunConfig
from training.control import Control
from training.data_order import DataOrder, check_sizes, held_out_rows
from training.datasets import Dataset
from training.errors import TrainingDiverged
from training.evaluation import evaluate
from training.generation import decode, sample, uniforms
from training.logprobs import plain_scores, shared_scores
from training.metrics import Outcome, Sums, finite, outcome_metrics
from training.policy import Policy
from training.prompts import PromptEncoder
from training.ranks import Ranks
from training.recorder import Recorder
from training.records import CheckpointRecord, EvalRecord, EventRecord, PhaseRecord, StepRecord
from training.resampling import resample
from training.rewards import RewardSet
from training.rollouts import Rollout, image_bytes, records, score
from training.schedule import learning_rate
from training.sharing import sharing_gap, tolerance
from training.token_masks import TokenMasks, token_masks
from training.update import Experience, ScoreFunction, update

MAX_SKIPPED_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Data:
    """Rows to train on, and held-out rows or None."""

    train: Dataset
    held_out: Dataset | None


class Trainer:
    """One run from its configuration to its last checkpoint.  Everything random is a function of seed and step."""

    def __init__(
        self,
        config: RunConfig,
        policy: Policy,
        data: Data,
        rewards: RewardSet,
        recorder: Recorder,
        *,
        ranks: Ranks,
        out: Path,
    ) -> None:
        """Raises ConfigError when a step cannot be filled: too few rows, or fewer prompts than processes."""
        check_sizes(config, rows=len(data.train), processes=ranks.count)
        self.config = config
        self.policy = policy
        self.progress = checkpoints.Progress()
        self._algorithm = ALGORITHMS[config.algorithm.name]
        self._data = data
        self._rewards = rewards
        self._recorder = recorder
        self._ranks = ranks
        self._out = out
        self._score: ScoreFunction | None = None
        self._encoder = PromptEncoder(policy, config.data)
        step = config.optimization
        self._order = DataOrder(
            len(data.train), prompts_per_step=step.prompts_per_step, seed=config.seed, shuffle=config.data.shuffle
        )
        self._last_step = self._order.steps(step.epochs) if step.epochs else step.max_steps
        self._reference = _frozen_copy(policy) if config.algorithm.beta > 0 else None
        self._optimizer = torch.optim.AdamW(
            policy.model.parameters(),
            lr=step.learning_rate,
            betas=(step.adam_beta1, step.adam_beta2),
            eps=step.adam_epsilon,
            weight_decay=step.weight_decay,
        )

    def restore(self, checkpoint: CheckpointInfo) -> None:
        """Go on after a checkpoint.  Raises CheckpointError when it is another run's."""
        self.progress = checkpoints.restore(checkpoint, self.policy.model, self._optimizer, self.config)

    def train(self, control: Control) -> Literal["finished", "stopped"]:
        """Run all remaining steps; a stop is honoured between steps, after a checkpoint."""
        last, save_steps = self._last_step, self.config.checkpoint.save_steps
        if self.progress.step == 0:
            self._evaluate()
        self._phase("training", self._coverage(), max_steps=last)
        while self.progress.step < last:
            if self._ranks.any(control.stop_requested()):
                self._save()
                return "stopped"
            self._step(self.progress.step + 1)
            done = self.progress.step
            if save_steps and done % save_steps == 0 and done < last:
                self._save()
            every = self.config.evaluation.every_steps
            if done == last or (every and done % every == 0):
                self._evaluate()
        self._save()
        return "finished"

    def _step(self, step: int) -> None:
        clock, ranks = Clock(), self._ranks
        rollout = ranks.together(lambda: self._rollout(step, clock))
        score_function = self._score = self._score or self._choose_score(rollout)
        reference_BT = ranks.together(lambda: self._reference_logp(rollout, score_function))
        outcome = Outcome.joined(ranks.gather(Outcome.of(rollout)))
        masks = token_masks(self.config, rollout.completions, ranks.gather)
        advantages_PG = self._advantages(rollout, outcome, masks, reference_BT)
        clock.lap("advantages")
        metrics = self._optimize(step, score_function, Experience(rollout, advantages_PG, masks, reference_BT))
        clock.lap("update")
        self.progress = replace(self.progress, step=step, num_tokens=self.progress.num_tokens + outcome.num_tokens)
        metrics |= outcome_metrics(outcome, self._rewards.names) | clock.metrics(num_tokens=outcome.num_tokens)
        metrics |= {"num_tokens": float(self.progress.num_tokens), "epoch": self._order.epoch(step)}
        self._record(step, rollout, advantages_PG, metrics)

    def _record(self, step: int, rollout: Rollout, advantages_PG: Tensor, metrics: dict[str, float]) -> None:
        """Every rank writes its own images; the main one then writes the groups of all, which name them."""
        own, images = records(rollout, advantages_PG), image_bytes(rollout)
        if not self._ranks.is_main:
            self._recorder.record(StepRecord(step=step, metrics={}, groups=own, time=time.time()), images=images)
        groups = [group for part in self._ranks.gather(own) for group in part]
        if self._ranks.is_main:
            record = StepRecord(step=step, metrics=finite(metrics), groups=groups, time=time.time())
            self._recorder.record(record, images=images)

    def _rollout(self, step: int, clock: Clock) -> Rollout:
        """This rank's part of the step's prompts, with their completions and rewards."""
        self.policy.model.eval()
        places = self._ranks.share(range(self.config.optimization.prompts_per_step))

        def sampled(number: int, groups: Sequence[int]) -> Rollout:
            return self._sample(step, number, [places[group] for group in groups], clock)

        first = sampled(0, range(len(places)))
        return resample(first, self.config.algorithm, sampled, pad_id=self.policy.pad_id)

    def _sample(self, step: int, number: int, places: Sequence[int], clock: Clock) -> Rollout:
        """Completions and rewards for the prompts at some places of a step; `number` counts its rounds of sampling."""
        rows = self._order.rows(step) if number == 0 else self._order.further_rows(step, number)
        samples = [self._data.train[rows[place]] for place in places]
        prompts = [self._encoder.encode(item) for item in samples]
        clock.lap("encode")
        generation = self.config.generation
        shape = (len(rows), generation.num_generations, generation.max_completion_length)
        uniforms_PGT = uniforms(shape, self.config.seed, step, number).to(self.policy.device)
        completions = sample(
            self.policy,
            prompts,
            num_generations=generation.num_generations,
            max_completion_length=generation.max_completion_length,
            temperature=generation.temperature,
            uniforms_BT=uniforms_PGT[list(places)].flatten(0, 1),
        )
        texts = decode(self.policy, completions)
        clock.lap("generate")
        rollout = score(self._rewards, samples, prompts, completions, texts, step=step)
        clock.lap("reward")
        return rollout

    def _choose_score(self, rollout: Rollout) -> ScoreFunction:
        """The shared path where it gives the plain path's numbers on the first group, else the plain one, warned."""
        gap = self._ranks.together(lambda: sharing_gap(self.policy, rollout, self.config.generation.temperature))
        gap, limit = max(self._ranks.gather(gap)), tolerance(self.policy)
        if gap <= limit:
            return shared_scores
        message = (
            f"shared and plain log-probabilities differ by {gap:.2g} nats (limit {limit:.2g}) on the first group: "
            "this model's prompts are repeated for every completion"
        )
        self._event("shared_path_fallback", message)
        return plain_scores

    @torch.no_grad()
    def _reference_logp(self, rollout: Rollout, score_function: ScoreFunction) -> Tensor | None:
        if self._reference is None:
            return None
        completions, temperature = rollout.completions, self.config.generation.temperature
        scores = score_function(self._reference, rollout.prompts, completions.ids_BT, completions.mask_BT, temperature)
        return scores.logp_BT

    def _advantages(self, rollout: Rollout, outcome: Outcome, masks: TokenMasks, reference_BT: Tensor | None) -> Tensor:
        """This rank's part of the advantages; `outcome` is of the whole step."""
        scored, limit = outcome.scored, self.config.generation.max_completion_length
        if reference_BT is not None:
            # the sampler's log-probabilities are the policy's before the update: no further pass is needed
            kl_BT = (rollout.completions.logp_BT - reference_BT) * masks.loss_BT
            own_PG = kl_BT.sum(1).view(-1, rollout.group_size).double().cpu()
            scored = replace(scored, kl_PG=torch.cat(self._ranks.gather(own_PG)))
        scored = punished(self.config.algorithm, scored, outcome.lengths_PG, limit=limit)
        advantages_PG = self._algorithm.advantages(self.config.algorithm, scored)
        return advantages_PG[self._ranks.bounds(len(advantages_PG))].float().to(self.policy.device)

    def _optimize(self, step: int, score_function: ScoreFunction, experience: Experience) -> dict[str, float]:
        self.policy.model.train()
        torch.manual_seed(self.config.seed * 1_000_003 + step)  # dropout, where a model has it
        rate = learning_rate(self.config.optimization, step, last_step=self._last_step)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        sums, losses, norms = Sums(), [], []
        iterations = self.config.algorithm.num_iterations
        for _ in range(iterations):
            updated = update(
                self.policy, self._optimizer, self._algorithm, score_function, self.config, experience,
                sums=sums, ranks=self._ranks,
            )  # fmt: skip
            self._count_skipped(step, updated.applied, updated.grad_norm)
            if experience.old_logp_BT is None:
                # the first pass runs at the weights that sampled: its log-probabilities are the old ones
                experience = replace(experience, old_logp_BT=updated.logp_BT)
            losses.append(updated.loss)
            norms.append(updated.grad_norm)
        metrics = Sums.total(self._ranks.gather(sums)).metrics()
        metrics |= {"loss": sum(losses) / iterations, "grad_norm": sum(norms) / iterations, "learning_rate": rate}
        return metrics | self._sampler_gap(experience.rollout, experience.old_logp_BT)

    def _count_skipped(self, step: int, applied: bool, norm: float) -> None:
        if applied:
            self.progress = replace(self.progress, skipped_in_a_row=0)
            return
        skipped = self.progress.skipped_in_a_row + 1
        self.progress = replace(self.progress, skipped_in_a_row=skipped)
        message = f"step {step}: the gradient norm is {norm}, the update was skipped"
        self._event("update_skipped", message)
        if skipped >= MAX_SKIPPED_IN_A_ROW:
            raise TrainingDiverged(f"{message}; {skipped} in a row: lower the learning rate or look at the rewards")

    def _evaluate(self) -> None:
        if self._data.held_out is None:
            return
        step, evaluation, started = self.progress.step, self.config.evaluation, time.perf_counter()
        rows = held_out_rows(len(self._data.held_out), samples=evaluation.samples, seed=self.config.seed)
        self._phase("evaluating", f"{len(rows)} held-out prompts")
        held_out, own = self._data.held_out, self._ranks.share(rows)
        outcomes = self._ranks.together(
            lambda: evaluate(self.policy, self._encoder, held_out, own, self._rewards, self.config, step=step)
        )
        outcome = Outcome.joined([outcome for part in self._ranks.gather(outcomes) for outcome in part])
        metrics = outcome_metrics(outcome, self._rewards.names) | {"runtime": time.perf_counter() - started}
        named = {f"eval_{name}": value for name, value in finite(metrics).items()}
        self._recorder.record(EvalRecord(step=step, metrics=named, time=time.time()))

    def _save(self) -> None:
        """Weights and optimizer are equal on all ranks: the main one writes them, the others wait."""
        self._ranks.together(lambda: self._write_checkpoint() if self._ranks.is_main else None)

    def _write_checkpoint(self) -> None:
        info = checkpoints.save(
            self._out / "checkpoints", self.policy.model, self._optimizer, self.progress, self.config,
            keep=self.config.checkpoint.keep,
        )  # fmt: skip
        path = str(info.path.relative_to(self._out))
        self._recorder.record(CheckpointRecord(step=info.step, path=path, bytes=info.bytes, time=time.time()))

    def _event(self, code: str, message: str) -> None:
        self._recorder.record(EventRecord(level="warning", code=code, message=message, time=time.time()))

    def _phase(self, name: str, detail: str = "", *, max_steps: int | None = None) -> None:
        self._recorder.record(PhaseRecord(name=name, detail=detail, max_steps=max_steps, time=time.time()))

    def _coverage(self) -> str:
        """Such as: 100 steps of 8 prompts, 2.5 passes over 320 rows."""
        last, prompts = self._last_step, self.config.optimization.prompts_per_step
        passes = f"{self._order.epoch(last):.4g}"
        return f"{last} steps of {prompts} prompts, {passes} passes over {len(self._data.train)} rows"

    def _sampler_gap(self, rollout: Rollout, logp_BT: Tensor | None) -> dict[str, float]:
        """How far the sampler's log-probabilities are from the trainer's: float noise when both agree."""
        if logp_BT is None:
            return {}
        gaps = (logp_BT - rollout.completions.logp_BT).abs()[rollout.completions.mask_BT]
        parts = self._ranks.gather((gaps.sum().item(), gaps.max().item(), len(gaps)))
        sums, largest, counts = zip(*parts, strict=True)
        prefix = "sampling/sampling_logp_difference"
        return {f"{prefix}/mean": sum(sums) / sum(counts), f"{prefix}/max": max(largest)}


def _frozen_copy(policy: Policy) -> Policy:
    """The reference: a copy of the policy before its first update, loaded exactly as it was."""
    return replace(policy, model=copy.deepcopy(policy.model).eval().requires_grad_(False))
