"""A seeded stream of made-up stock trades, all in native Spark expressions.

Every trade is a function of its number, the seed and the rate, so a live stream and a table of the same settings hold
the same trades. Names are real, prices and trades are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

OPENING = 1_767_623_400_000_000
"""Monday 2026-01-05 14:30 UTC, in microseconds since 1970."""

DELAY = "3 seconds"
"""The watermark that the trades are made for: four in a hundred are up to 2 s late, one in 20,000 is 8 s late."""

SYMBOLS = {
    "NVDA": 182.40, "TSLA": 431.10, "AAPL": 271.80, "AMZN": 226.50, "MSFT": 472.90, "META": 650.40, "AMD": 223.60,
    "GOOGL": 315.20, "PLTR": 167.90, "INTC": 39.40, "AVGO": 347.60, "NFLX": 91.00, "BAC": 55.30, "F": 13.30,
    "JPM": 325.50, "XOM": 122.70, "T": 24.50, "PFE": 25.20, "MU": 315.40, "CSCO": 75.70, "WMT": 112.80, "KO": 69.10,
    "DIS": 112.00, "C": 118.60, "WFC": 95.20, "ORCL": 195.70, "V": 346.50, "GM": 80.90, "CVX": 155.90, "UBER": 82.90,
    "MRK": 106.40, "PYPL": 58.20, "QCOM": 173.10, "BA": 227.80, "JNJ": 207.30, "CRM": 253.60, "GE": 320.80,
    "MCD": 303.20, "CAT": 598.40, "IBM": 291.50,
}  # fmt: skip
"""Each with the price that it wanders around, the most traded first."""

VENUES = ("NASDAQ", "NYSE", "ARCA", "BATS", "IEX")

DESKS = tuple(
    f"{city}-{trade}"
    for city in ("nyc", "ldn", "tyo")
    for trade in ("cash", "program", "etf", "arb", "delta1", "retail", "maker", "block")
)


@dataclass(frozen=True, slots=True)
class Trades:
    """(ts, symbol, venue, desk, side, price, volume), `rate` per second of event time from `opening` on."""

    seed: int = 1
    rate: int = 20_000
    opening: int = OPENING

    def opened_at(self, micros: int) -> Trades:
        return replace(self, opening=micros)

    def live(self, spark: SparkSession) -> DataFrame:
        """As they happen: row numbers of Spark's rate source, which begins at 0 when its query starts."""
        numbers = spark.readStream.format("rate").option("rowsPerSecond", str(self.rate)).load()
        return self._made_from(numbers.selectExpr("value AS n"))

    def bounded(self, spark: SparkSession, rows: int) -> DataFrame:
        """The first `rows` of them."""
        return self._made_from(spark.range(rows).selectExpr("id AS n"))

    def _made_from(self, numbers: DataFrame) -> DataFrame:
        """numbers   (n)
        drawn     (n, t seconds after the opening, episode of 2 seconds, rank of the symbol, burst or not, chances)
        trades    (ts, symbol, venue, desk, side, price, volume)
        """
        drawn = numbers.selectExpr(
            "n",
            f"n / {self.rate}D AS t",
            f"n DIV {2 * self.rate} AS episode",
            f"pmod({self._hash('n', 1)}, 20000) AS lateness",
            # The power makes a few symbols carry most of the trades: the first one every fifth.
            f"CAST(floor({len(SYMBOLS)} * pow({self._chance('n', 2)}, 2.2)) AS INT) AS usual",
        ).selectExpr(
            "*",
            # In every fourth episode one desk works one order: a tenth of all trades, in one symbol, on one side.
            f"pmod({self._hash('episode', 3)}, 4) = 0 AND pmod({self._hash('n', 4)}, 10) = 0 AS burst",
        ).selectExpr(
            "*",
            f"IF(burst, CAST(5 + pmod({self._hash('episode', 5)}, 16) AS INT), usual) AS rank",
            f"{self._chance('n', 6)} AS drift",
            f"{self._chance('n', 7)} AS size",
        )  # fmt: skip
        return drawn.selectExpr("*", f"6.283185307179586D * {self._chance('rank', 8)} AS phase").selectExpr(
            f"timestamp_micros({self.opening}L + n * 1000000L DIV {self.rate} - {_LATENESS}) AS ts",
            f"element_at({_array(SYMBOLS)}, rank + 1) AS symbol",
            f"element_at({_array(VENUES)}, CAST(1 + floor(5 * pow({self._chance('n', 9)}, 1.4)) AS INT)) AS venue",
            f"element_at({_array(DESKS)}, CAST(1 + pmod(IF(burst, {self._hash('episode', 10)}, "
            f"{self._hash('n', 11)}), {len(DESKS)}) AS INT)) AS desk",
            f"CASE WHEN burst THEN IF(pmod({self._hash('episode', 12)}, 2) = 0, 'buy', 'sell') "
            f"WHEN {self._chance('n', 13)} < 0.5D + 0.12D * sin(t / 4 + phase) THEN 'buy' ELSE 'sell' END AS side",
            # Slow, medium and fast waves, of different lengths per symbol, and a little noise per trade.
            f"round(element_at({_array(SYMBOLS.values())}, rank + 1) * (1 + 0.010D * sin(t / (6 + rank / 5D) + phase) "
            "+ 0.004D * sin(t / 1.7D + 3 * phase) + 0.0015D * sin(t / 0.5D + 7 * phase) "
            "+ 0.0004D * (drift - 0.5D)), 2) AS price",
            # Round lots, most of them small; one in a hundred is a block.
            "CAST(100 * (1 + floor(-4 * ln(1 - size)) + IF(size * 100 % 1 < 0.01D, 60, 0)) AS INT) AS volume",
        )

    def _hash(self, of: str, use: int) -> str:
        return f"xxhash64({of}, {self.seed}L, {use})"

    def _chance(self, of: str, use: int) -> str:
        """Uniform between 0 and 1, another number for each use."""
        return f"(pmod({self._hash(of, use)}, 16777216L) / 16777216D)"


_LATENESS = (
    # The odd microseconds keep event times distinct at the usual rate, a trade per 50 microseconds: only one
    # trade is the last.
    "CASE WHEN lateness = 0 THEN 8000041L WHEN lateness <= 800 THEN (1 + lateness % 40) * 49999L ELSE 0L END"
)


def _array(values: Iterable[str | float]) -> str:
    return "array(" + ", ".join(f"'{v}'" if isinstance(v, str) else f"{v!r}D" for v in values) + ")"
