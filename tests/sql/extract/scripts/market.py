"""A PySpark job as people have it: one stream, several window aggregations, each with a sink of its own."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.functions import col, window
from pyspark.sql.types import DoubleType

LONG = "1 minute"
SHORT = f"{5} seconds"


def build(spark: SparkSession, trades):
    cleaned = (
        trades.filter(col("price") > 0)
        .withColumn("turnover", col("price") * F.col("volume"))
        .withWatermark("ts", "10 seconds")
    )

    vwap = (
        cleaned.where("venue = 'X' OR venue = 'Y'")
        .groupBy(F.window("ts", LONG, SHORT), "symbol")
        .agg(
            (F.sum("turnover") / F.sum("volume")).alias("vwap"),
            F.count("*").alias("trades"),
            F.max(F.when(col("side") == "buy", col("price")).otherwise(F.lit(0.0))).alias("bid"),
        )
        .filter(col("trades") > 3)
    )

    candles = cleaned.groupBy(cleaned.symbol, window(timeColumn="ts", windowDuration="10 seconds")).agg(
        F.min_by("price", "ts").alias("open"),
        F.max("price").alias("high"),
        F.min("price").cast(DoubleType()).alias("low"),
        F.max_by("price", "ts").alias("close"),
    )
    flat = candles.select(
        col("window.start").alias("since"),
        "symbol",
        (col("high") - col("low")).alias("spread"),
        F.round("close", 1).alias("close"),
    )

    busy = trades.groupBy(window("ts", "20 seconds", "5 seconds", "2 seconds")).count().where("count >= 5")

    by_side = (
        trades.filter(~col("side").isin("cross") & col("price").between(1, 1000) | col("volume").isNull())
        .groupBy([F.upper("side").alias("side"), window(trades["ts"], "15 seconds")])
        .sum("volume", "price")
    )

    kept = trades.groupBy("symbol", window("ts", LONG)).agg(F.avg("price").alias("mean"))
    high = kept.filter("mean > 47.4")

    return {"vwap": vwap, "flat": flat, "busy": busy, "by_side": by_side, "kept": kept, "high": high}
