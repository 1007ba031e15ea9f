"""The training loop: sample, score, compute advantages, update, record.  It knows no algorithm and no model family."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from training import checkpoints
from training.activations import checkpointed
from training.algorithms import ALGORITHMS
from training.algorithms.overlong import punished
from training.checkpoint_files import CheckpointInfo
from training.clock import Clock
from training.config import RunConfig
from training.control import Control
from training.data_order import DataOrder, check_sizes, held_out_rows
from training.datasets import Dataset
from training.decoding import sample_in_parts
from training.errors import TrainingDiverged
from training.evaluation import evaluate
from training.generation import decode, uniforms
from training.logprobs import ScoreFunction, shared_scores
from training.metrics import Outcome, Sums, finite, outcome_metrics, resource_metrics, sampler_gap
from training.model_parts import counts_text, trainable_counts
from training.policy import Policy
from training.prompts import PromptEncoder
from training.ranks import Ranks
from training.reading_ahead import ContinuedScores, read_ahead
from training.recorder import Recorder
from training.records import CheckpointRecord, EvalRecord, EventRecord, Level, PhaseRecord, StepRecord
from training.reference import Reference, frozen_copy, sampler_distance
from training.resampling import resample
from training.rewards import RewardSet
from training.rollout_batches import score_rollout
from training.rollouts import Rollout, image_bytes, records, score
from training.schedule import learning_rate
from training.sharing import choose_score, tolerance
from training.token_masks import TokenMasks, token_masks
from training.update import Experience, Updated, make_optimizer, update

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
        step = config.optimization
        self.progress = checkpoints.Progress(
            micro_batch_tokens=step.micro_batch_tokens, at_once=config.generation.at_once
        )
        self._algorithm = ALGORITHMS[config.algorithm.name]
        self._data = data
        self._rewards = rewards
        self._recorder = recorder
        self._ranks = ranks
        self._out = out
        self._score: ScoreFunction | None = None
        self._ahead: ContinuedScores | None = None
        self._encoder = PromptEncoder(policy, config.data)
        self._order = DataOrder(
            len(data.train), prompts_per_step=step.prompts_per_step, seed=config.seed, shuffle=config.data.shuffle
        )
        self._last_step = self._order.steps(step.epochs) if step.epochs else step.max_steps
        self._reference = frozen_copy(policy) if config.algorithm.beta > 0 else None
        self._optimizer = make_optimizer(policy, step)

    def restore(self, checkpoint: CheckpointInfo) -> None:
        """Go on after a checkpoint.  Raises CheckpointError when it is another run's."""
        self.progress = checkpoints.restore(checkpoint, self.policy.model, self._optimizer, self.config)

    def train(self, control: Control) -> Literal["finished", "stopped"]:
        """Run all remaining steps; a stop is honoured between steps, after a checkpoint."""
        last, save_steps = self._last_step, self.config.checkpoint.save_steps
        if self.progress.step == 0:
            self._evaluate()
        self._event("trainable_parameters", counts_text(trainable_counts(self.policy.model)), level="info")
        self._phase("training", self._order.coverage(last), max_steps=last)
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
        if self._score is None:
            self._score = choose_score(
                self.policy, rollout, self.config.generation.temperature, ranks,
                refused=lambda message: self._event("shared_path_fallback", message),
            )  # fmt: skip
        reference_BT = self._reference_logp(rollout, self._score)
        outcome = Outcome.joined(ranks.gather(Outcome.of(rollout)))
        masks = token_masks(self.config, rollout.completions, ranks.gather)
        advantages_PG = self._advantages(rollout, outcome, masks, reference_BT)
        clock.lap("advantages")
        metrics = self._optimize(step, self._score, Experience(rollout, advantages_PG, masks, reference_BT))
        clock.lap("update")
        self.progress = replace(self.progress, step=step, num_tokens=self.progress.num_tokens + outcome.num_tokens)
        metrics |= outcome_metrics(outcome, self._rewards.names) | clock.metrics(num_tokens=outcome.num_tokens)
        metrics |= {"num_tokens": float(self.progress.num_tokens), "epoch": self._order.epoch(step)}
        metrics |= resource_metrics(int(masks.loss_BT.sum()), self.policy.device, ranks)
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
        prefix = read_ahead(self.policy, prompts) if number == 0 and self._reads_ahead() else None
        completions, at_once = sample_in_parts(
            self.policy,
            samples,
            prompts,
            num_generations=generation.num_generations,
            max_completion_length=generation.max_completion_length,
            temperature=generation.temperature,
            uniforms_BT=uniforms_PGT[list(places)].flatten(0, 1),
            at_once=self.progress.at_once,
            prefix=prefix,
        )
        self._keep(at_once=at_once)
        self._ahead = None if prefix is None or at_once else ContinuedScores(prefix, prompts)
        texts = decode(self.policy, completions)
        clock.lap("generate")
        rollout = score(self._rewards, samples, prompts, completions, texts, step=step)
        clock.lap("reward")
        return rollout

    def _reads_ahead(self) -> bool:
        """Whether the update will score all prompts at once by the shared path, with its whole graph in memory."""
        cut = self.progress.at_once or self.progress.micro_batch_tokens
        return self._score is shared_scores and not cut and not self.config.optimization.activation_checkpointing

    def _reference_logp(self, rollout: Rollout, score_function: ScoreFunction) -> Tensor | None:
        """Under the policy before its first update; equal to the sampler's there, which is checked."""
        if self.config.algorithm.beta == 0:
            return None
        temperature = self.config.generation.temperature
        reference_BT, budget = score_rollout(
            self.policy, Reference(score_function, self._reference), rollout,
            temperature=temperature, ranks=self._ranks, budget=self.progress.micro_batch_tokens,
        )  # fmt: skip
        self._keep(micro_batch_tokens=budget)
        if self.progress.step == 0 and (gap := sampler_distance(rollout, reference_BT)) > tolerance(self.policy):
            message = f"the reference differs from the untrained policy by {gap:.2g} nats: the KL begins above 0"
            self._event("reference_differs", message)
        return reference_BT

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
        rate = learning_rate(self.config.optimization, step, last_step=self._last_step)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        if self.config.optimization.activation_checkpointing:
            score_function = checkpointed(score_function)
        updates = list[Updated]()
        iterations = self.config.algorithm.num_iterations
        for iteration in range(iterations):
            seed = (self.config.seed * 1_000_003 + step) * iterations + iteration
            updated = update(
                self.policy, self._optimizer, self._algorithm, self._ahead or score_function, self.config, experience,
                ranks=self._ranks, budget=self.progress.micro_batch_tokens, seed=seed,
            )  # fmt: skip
            self._ahead = None
            self._keep(micro_batch_tokens=updated.budget)
            self._count_skipped(step, updated.applied, updated.grad_norm)
            if experience.old_logp_BT is None:
                # the first pass runs at the weights that sampled: its log-probabilities are the old ones
                experience = replace(experience, old_logp_BT=updated.logp_BT)
            updates.append(updated)
        own = Sums.total(updated.sums for updated in updates)
        metrics = Sums.total(self._ranks.gather(own)).metrics()
        losses, norms = [updated.loss for updated in updates], [updated.grad_norm for updated in updates]
        metrics |= {"loss": sum(losses) / iterations, "grad_norm": sum(norms) / iterations, "learning_rate": rate}
        return metrics | sampler_gap(experience.rollout, experience.old_logp_BT, self._ranks)

    def _keep(self, **found: int | None) -> None:
        """Go on with what memory sufficed for; less than before is recorded."""
        for name, value in found.items():
            if value != getattr(self.progress, name):
                message = f"repeated with {name} = {value}, which the run keeps from here on"
                self._event("out_of_memory", message)
        self.progress = replace(self.progress, **found)

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

    def _event(self, code: str, message: str, *, level: Level = "warning") -> None:
        self._recorder.record(EventRecord(level=level, code=code, message=message, time=time.time()))

    def _phase(self, name: str, detail: str = "", *, max_steps: int | None = None) -> None:
        self._recorder.record(PhaseRecord(name=name, detail=detail, max_steps=max_steps, time=time.time()))
