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
    from weft.spark.checkpoint.batch_log import CHECKPOINT_VERSION
    from weft.spark.checkpoint.verify import NoCheckpoint, check_checkpoint, to_json

    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        raise NoCheckpoint(f"{checkpoint} is not a folder; give the folder that a run was started with as checkpoint")
    found = to_json(check_checkpoint(checkpoint, CHECKPOINT_VERSION))
    typer.echo(json.dumps(found, indent=2) if as_json else "\n".join(explained(found)))
    if not found["sound"]:
        raise typer.Exit(UNSOUND)


def explained(found: dict[str, Any]) -> list[str]:
    """A line for each thing that is there, then what is wrong and the way out."""
    lines = [f"Checkpoint  {found['checkpoint']}  format {found['format']}  {found['buckets']} buckets"]
    if found["batch"] is None:
        lines.append("  no batch is recorded yet" if found["sound"] else "  the last batch is not known")
    else:
        how = "drained: every window is answered" if found["drained"] else f"watermark {_time(found['watermark'])}"
        lines.append(f"  batch {found['batch']}  {how}  latest row {_time(found['latest'])}")
        lines.append(f"  {found['rows']} rows  {found['answers']} answers  {found['late']} late")
    lines.append(f"  state  {found['state_bytes']} bytes in {found['segments']} segments")
    lines += [f"    tree {tree}  {size} bytes" for tree, size in found["state_bytes_by_tree"].items()]
    lines.append(f"  queries  {len(found['queries'])}  {', '.join(found['queries'][:10])}".rstrip())
    lines += [f"  plan from batch {p['batch']}  {'; '.join(p['reasons'])}" for p in found["plans"]]
    lines.append(f"  Spark  begun {_batch(found['spark'].get('begun'))}  done {_batch(found['spark'].get('done'))}")
    lines += [f"  note  {note}" for note in found["notes"]]
    for problem in found["problems"]:
        lines += [f"  WRONG  {problem['file']} {problem['what']}", f"         {problem['way_out']}"]
    if not found["sound"]:
        lines.append("A job cannot go on from here as it is.")
    elif found["drained"]:
        lines.append("The job has ended: every window is answered. To read on, start with an empty checkpoint folder.")
    else:
        lines.append("A job can go on from here.")
    return lines


def _time(micros: int | None) -> str:
    return "none" if micros is None else datetime.fromtimestamp(micros / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")


def _batch(number: int | None) -> str:
    return "none" if number is None else f"batch {number}"
