"""What cannot become one SELECT over one stream, beside what can."""

import os

import pyspark.sql.functions as F
from pyspark.sql.functions import *  # noqa: F403


def main(spark, readings, devices):
    joined = readings.join(devices, "id")
    by_type = joined.groupBy(F.window("ts", "1 minute"), "type").agg(F.avg("value"))
    sessions = readings.groupBy(F.session_window("ts", "5 minutes"), "id").count()
    lists = readings.groupBy(F.window("ts", "1 minute")).agg(F.collect_list("value").alias("values"))
    for minutes in (1, 5, 60):
        readings.groupBy(F.window("ts", f"{minutes} minutes")).agg(F.max("value").alias("top")).writeStream.start()
    scaled = F.udf(lambda v: v * 2)
    own = readings.groupBy(F.window("ts", "1 minute")).agg(F.sum(scaled("value")).alias("twice"))
    again = (
        readings.groupBy(F.window("ts", "1 minute"), "id").agg(F.sum("value").alias("s"))
        .groupBy("id").agg(F.max("s").alias("m"))
    )  # fmt: skip
    pages = ", ".join(os.listdir("."))
    readings.groupBy("id").count().show()
    spark.sql("SELECT count(*) AS n FROM readings")
    hourly = spark.sql(
        """
        SELECT id, avg(value) AS mean
        FROM readings
        GROUP BY id, window(ts, '1 hour', '10 minutes')
        """
    )
    spark.sql(f"SELECT max(value) AS top FROM readings GROUP BY window(ts, '{pages} minutes')")
    (
        readings.groupBy(window("ts", "30 seconds")).agg(max("value").alias("top"))  # noqa: F405
        .writeStream.queryName("half_minutes").outputMode("update").start()
    )  # fmt: skip
    return by_type, sessions, lists, own, again, hourly
