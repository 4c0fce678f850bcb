"""`weft check`: what a checkpoint holds, and whether a job can go on from it. No Spark, no JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

UNSOUND = 1
"""The exit code where something is wrong with the checkpoint; 2 is for what cannot be looked at."""


def check(
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The folder of the run, or its URI.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check a checkpoint: what it holds, whether it is complete, and what to do if it is not."""
    from weft.spark.checkpoint.checkpoint import CHECKPOINT_VERSION
    from weft.spark.checkpoint.verify import NoCheckpoint, check_checkpoint, to_json

    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        raise NoCheckpoint(f"{checkpoint} is not a folder; give the folder that a run was started with as checkpoint")
    report = to_json(check_checkpoint(checkpoint, CHECKPOINT_VERSION))
    typer.echo(json.dumps(report, indent=2) if as_json else "\n".join(explained(report)))
    if not report["sound"]:
        raise typer.Exit(UNSOUND)


def explained(report: dict[str, Any]) -> list[str]:
    """A line for each thing that is there, then what is wrong and the way out."""
    lines = [f"Checkpoint  {report['checkpoint']}  format {report['format']}  {report['buckets']} buckets"]
    if report["batch"] is None:
        lines.append("  no batch is recorded yet" if report["sound"] else "  the last batch is not known")
    else:
        how = "drained: every window is answered" if report["drained"] else f"watermark {_time(report['watermark'])}"
        lines.append(f"  batch {report['batch']}  {how}  latest row {_time(report['latest'])}")
        lines.append(f"  {report['rows']} rows  {report['answers']} answers  {report['late']} late")
    lines.append(f"  state  {report['state_bytes']} bytes in {report['segments']} segments")
    lines += [f"    tree {tree}  {size} bytes" for tree, size in report["state_bytes_by_tree"].items()]
    lines.append(f"  queries  {len(report['queries'])}  {', '.join(report['queries'][:10])}".rstrip())
    lines += [f"  plan from batch {p['batch']}  {'; '.join(p['reasons'])}" for p in report["plans"]]
    lines.append(f"  Spark  begun {_batch(report['spark'].get('begun'))}  done {_batch(report['spark'].get('done'))}")
    lines += [f"  note  {note}" for note in report["notes"]]
    for problem in report["problems"]:
        lines += [f"  WRONG  {problem['file']} {problem['what']}", f"         {problem['way_out']}"]
    if not report["sound"]:
        lines.append("A job cannot go on from here as it is.")
    elif report["drained"]:
        lines.append("The job has ended: every window is answered. To read on, start with an empty checkpoint folder.")
    else:
        lines.append("A job can go on from here.")
    return lines


def _time(micros: int | None) -> str:
    return "none" if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")


def _batch(number: int | None) -> str:
    return "none" if number is None else f"batch {number}"
