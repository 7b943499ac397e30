"""What `--plan` prints: what each stage of a study takes, and all of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from experiments.common import invocation, presets
from experiments.study.costs import Cost, Costs
from experiments.study.plan import (
    EVALUATION,
    PRETRAIN,
    StudyJob,
    StudySettings,
    at_chunk_end,
    reached,
)

COMMAND = "experiments.minigrid_pretrain"
SPEED_CHUNKS = 10  # of a run that measures speed


def show(
    root: Path, study: StudySettings, jobs: Sequence[StudyJob], console: Console, verbose: bool
) -> None:
    """Print the plan: what each stage takes, and what all of it does; every job, if asked for.

    Args:
        root: the study's directory.
        study: its settings.
        jobs: of the study.
        console: where to.
        verbose: whether to print every job.
    """
    for job in jobs if verbose else ():
        begun = reached(job.root)
        state = "done" if job.done else f"at {begun:,}" if begun else "to do"
        console.print(f"{state:>12}  {job}", soft_wrap=True, highlight=False)
    costs = Costs(root)
    stages = dict.fromkeys(job.stage for job in jobs)
    left = {stage: costs.left([job for job in jobs if job.stage == stage]) for stage in stages}
    console.print(_summary(jobs, left))
    total, to_go = sum(job.new_frames for job in jobs), sum(cost.frames for cost in left.values())
    frames = f"{total:,} frames in all, {to_go:,} to go; a run trains {study.seeds} seeds"
    console.print(frames, highlight=False)
    for line in (*_time_and_disk(jobs, left, costs), *_advice(root, study, jobs, costs)):
        console.print(line, soft_wrap=True, highlight=False)


def _summary(jobs: Sequence[StudyJob], left: Mapping[str, Cost]) -> Table:
    """Return a table with a row for each stage."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("stage", "runs", "left", "frames each", "frames to go", "hours"):
        table.add_column(title, justify="left" if title == "stage" else "right", no_wrap=True)
    for stage, cost in left.items():
        own = [job for job in jobs if job.stage == stage]
        frames = sorted({job.now for job in own})
        each = " to ".join(f"{at:,}" for at in dict.fromkeys((frames[0], frames[-1])))
        to_go = f"{cost.frames:,}" if stage != EVALUATION else ""
        row = (stage, len(own), cost.jobs, each, to_go, _hours(cost))
        table.add_row(*map(str, row))
    return table


def _hours(cost: Cost) -> str:
    if not cost.unmeasured:
        return f"{cost.seconds / 3600:.1f}"
    return f"{cost.seconds / 3600:.1f} + ?" if cost.seconds else "?"


def _time_and_disk(
    jobs: Sequence[StudyJob], left: Mapping[str, Cost], costs: Costs
) -> Iterator[str]:
    """Yield how long the rest takes on this machine, on how much disk, and how that is known."""
    hours, size = sum(cost.seconds for cost in left.values()) / 3600, costs.bytes(jobs) / 2**30
    lacking = [f"{cost.unmeasured} of {stage}" for stage, cost in left.items() if cost.unmeasured]
    partly = f", without what was not measured here ({', '.join(lacking)})" if lacking else ""
    least = "at least " if any(_is_unmeasured(job, costs) for job in jobs) else ""
    if hours or size or not lacking:
        yield f"about {hours:.1f} hours{partly}; {least}{size:.1f} GiB on disk in the end"
    for method, speed in costs.used.items():
        yield f"{method}: {speed.frames_per_second:,.0f} frames/s in {speed.run} ({speed.at})"
    if costs.unmeasured:
        names = ", ".join(sorted(costs.unmeasured))
        yield f"not measured here, so as the slowest measured method of their kind: {names}"


def _is_unmeasured(job: StudyJob, costs: Costs) -> bool:
    return job.stage != EVALUATION and costs.speed(job) is None


def _advice(
    root: Path, study: StudySettings, jobs: Sequence[StudyJob], costs: Costs
) -> Iterator[str]:
    """Yield the command that measures pre-training, where none of a size was measured here."""
    to_do = (job for job in jobs if job.stage == PRETRAIN and not job.done)
    job = next((job for job in to_do if _is_unmeasured(job, costs)), None)
    if job is None or study.presets_of != presets.NEWEST:  # no option names an earlier preset
        return
    worlds = job.settings.train.worlds
    short = str(SPEED_CHUNKS * at_chunk_end(job.settings, 1))
    words: list[object] = ["--preset", study.preset, "--network.factors", study.factors]
    words += ["--worlds", worlds] if worlds != presets.named(study.preset).train.worlds else []
    out = root.parent / f"speed-{study.preset}-{worlds}"
    command = invocation.command_line(COMMAND, *words, "--frames", short, "--out", out)
    yield f"no pre-training of {worlds} actors was measured here; measure: {command}"
