"""The options of a job: declared once, with keywords that are checked and earlier names that still work."""

import inspect
from dataclasses import fields
from typing import Any

import pytest

import weft
from weft.spark.keywords import renamed, with_keywords
from weft.spark.options import BadOptions, JobOptions, UnknownOption


def told(stream: str, queries: str, options: JobOptions) -> tuple[str, str, JobOptions]:
    """Say what was passed."""
    return stream, queries, options


tell: Any = with_keywords("tell", told, JobOptions)


def test_each_option_is_a_keyword_with_its_default_and_its_text() -> None:
    assert tell("s", "q") == ("s", "q", JobOptions())
    assert tell(stream="s", queries="q", rate=5, watermark="1 minute")[2] == JobOptions(rate=5, watermark="1 minute")
    parameters = inspect.signature(weft.weave).parameters
    assert list(parameters) == ["stream", "queries", *(field.name for field in fields(JobOptions))]
    assert parameters["watermark"].default == "0 seconds"
    for field in fields(JobOptions):
        assert f"`{field.name}`: " in (weft.weave.__doc__ or "")


def test_a_name_that_is_no_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UnknownOption, match=r"tell has no option 'watermak'; did you mean 'watermark'\?"):
        tell("s", "q", watermak="1 minute")
    with pytest.raises(TypeError, match="choose from stream, queries, event_time"):
        tell("s", "q", zzz=1)
    with pytest.raises(TypeError, match="queries"):
        tell("s")


def test_an_earlier_name_still_works_with_a_warning_that_says_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="retain= is deprecated; use retention=") as warned:
        assert tell("s", "q", retain="6 hours")[2].retention == "6 hours"
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="retain="), pytest.raises(BadOptions, match="retention is given twice"):
        tell("s", "q", retain="6 hours", retention="6 hours")

    @renamed(tap="listener")
    def start(*, listener: str | None = None) -> str | None:
        return listener

    with pytest.warns(DeprecationWarning, match="tap= is deprecated; use listener="):
        assert start(**{"tap": "ear"}) == "ear"
    assert start(listener="ear") == "ear"


def test_options_that_have_no_meaning_are_refused() -> None:
    for settings, said in (
        ({"phantoms": "sometimes"}, "phantoms cannot be 'sometimes'; choose one of auto, always, never"),
        ({"groupings": "spark"}, "groupings cannot be 'spark'; choose one of auto, native, lfta"),
        ({"table_memory": 1}, "give a task at least 4,096 bytes"),
        ({"buckets": 0}, "at least one bucket"),
        ({"latency": "low"}, "choose one of batch, bounded"),
        ({"watermark": "soon"}, "watermark: 'soon' is not a duration"),
    ):
        with pytest.raises(weft.WeftError, match=said):
            JobOptions(**settings)
