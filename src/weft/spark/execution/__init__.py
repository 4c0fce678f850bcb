"""Micro-batches: how the job starts, advances, keeps its watermark, rescales and stops."""
