"""Tables in the shape of public data sets, with what makes them hard: NULLs, sentinels, wrong signs, text to be parsed.

The rows are drawn from a seed; no row of the data sets themselves is here. Event times are unique and ascending, so
that `first`, `last` and `max_by(x, time)` have one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

ROWS = 400
MICROS = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Dataset:
    """A table, the name that queries give it in FROM, and its event time."""

    view: str
    event_time: str
    table: pa.Table


def taxi() -> Dataset:
    """Rides as New York's Taxi and Limousine Commission publishes them: two days, and one meter with a wrong clock."""
    random = Random(20240301)
    rides = [_ride(random, begin) for begin in _moments(random, datetime(2024, 3, 1, tzinfo=UTC), hours=48)]
    rides[0]["tpep_pickup_datetime"] = datetime(2008, 12, 31, 22, 52, 49, tzinfo=UTC)
    return Dataset("trips", "tpep_pickup_datetime", pa.Table.from_pylist(rides, _TAXI))


_TAXI = pa.schema(
    {
        "VendorID": pa.int32(),
        "tpep_pickup_datetime": MICROS,
        "tpep_dropoff_datetime": MICROS,
        "passenger_count": pa.int64(),
        "trip_distance": pa.float64(),
        "RatecodeID": pa.int64(),
        "store_and_fwd_flag": pa.string(),
        "PULocationID": pa.int32(),
        "DOLocationID": pa.int32(),
        "pickup_zone": pa.string(),
        "payment_type": pa.int64(),
        "fare_amount": pa.float64(),
        "tip_amount": pa.float64(),
        "tolls_amount": pa.float64(),
        "total_amount": pa.decimal128(10, 2),
        "congestion_surcharge": pa.decimal128(4, 2),
        "airport_fee": pa.float64(),
    }
)

_ZONES = {
    132: "Queens / JFK Airport",
    138: "Queens / LaGuardia Airport",
    161: "Manhattan / Midtown Center",
    236: "Manhattan / Upper East Side North",
    237: "Manhattan / Upper East Side South",
    7: "Queens / Astoria",
    264: "Unknown",
    265: None,
}


def _ride(random: Random, begin: datetime) -> dict[str, Any]:
    distance = random.choice([0.0, round(random.expovariate(0.35), 2), round(random.expovariate(0.2), 2)])
    minutes = random.choice([0, 4, 9, 17, 26, 44, 1439, -3])
    fare = round(3 + 3.5 * distance, 2)
    sign = random.choices([1, -1, 0], [40, 2, 1])[0]
    tip = round(fare * random.choice([0, 0, 0.15, 0.2, 0.25]), 2)
    tolls = random.choice([0.0, 0.0, 0.0, 6.94])
    zone = random.choice(list(_ZONES))
    missing = random.random() < 0.08  # meters of one vendor send no count, no rate code and no flag
    return {
        "VendorID": 6 if missing else random.choice([1, 2]),
        "tpep_pickup_datetime": begin,
        "tpep_dropoff_datetime": begin + timedelta(minutes=minutes, seconds=random.randrange(60)),
        "passenger_count": None if missing else random.choice([0, 1, 1, 1, 2, 3, 6]),
        "trip_distance": distance,
        "RatecodeID": None if missing else random.choice([1, 1, 1, 2, 5, 99]),
        "store_and_fwd_flag": None if missing else random.choice(["N", "N", "N", "Y"]),
        "PULocationID": zone,
        "DOLocationID": random.choice(list(_ZONES)),
        "pickup_zone": _ZONES[zone],
        "payment_type": 0 if missing else random.choice([1, 1, 1, 2, 3, 4]),
        "fare_amount": sign * fare,
        "tip_amount": tip,
        "tolls_amount": tolls,
        "total_amount": Decimal(str(round(sign * (fare + tip + tolls + 1.5), 2))),
        "congestion_surcharge": None
        if missing
        else random.choice([Decimal("2.50"), Decimal("0.00"), Decimal("-2.50")]),
        "airport_fee": None if missing else random.choice([0.0, 1.75]),
    }


def earthquakes() -> Dataset:
    """Events as the USGS feeds have them: ten days, places as text, and GeoJSON's nested properties."""
    random = Random(7)
    events = [_quake(random, time) for time in _moments(random, datetime(2024, 1, 1, tzinfo=UTC), hours=240)]
    return Dataset("quakes", "time", pa.Table.from_pylist(events, _EARTHQUAKES))


_EARTHQUAKES = pa.schema(
    {
        "id": pa.string(),
        "time": MICROS,
        "place": pa.string(),
        "mag": pa.float64(),
        "magType": pa.string(),
        "depth": pa.float64(),
        "nst": pa.int32(),
        "gap": pa.float64(),
        "net": pa.string(),
        "type": pa.string(),
        "properties": pa.struct(
            {
                "felt": pa.int32(),
                "alert": pa.string(),
                "status": pa.string(),
                "tsunami": pa.int32(),
                "sig": pa.int32(),
                "updated": pa.int64(),
                "types": pa.list_(pa.string()),
            }
        ),
        "geometry": pa.struct({"type": pa.string(), "coordinates": pa.list_(pa.float64())}),
        "tags": pa.map_(pa.string(), pa.string()),
    }
)

_PLACES = [
    "{} km SSW of Somewhere, CA",
    "{} km N of Borrego Springs, CA",
    "{} km WNW of Anchor Point, Alaska",
    "{} km E of Ishinomaki, Japan",
    "{} km S of the Fiji Islands",
    "Mid-Atlantic Ridge",
    "off the coast of Oregon",
    None,
]


def _quake(random: Random, time: datetime) -> dict[str, Any]:
    place = random.choice(_PLACES)
    net = random.choice(["ci", "nc", "ak", "us"])
    mag = random.choices([None, round(random.gauss(2.2, 1.2), 2)], [1, 15])[0]
    depth = random.choice([round(random.expovariate(0.05), 3), -0.81, 10.0])
    types = random.sample(["origin", "phase-data", "dyfi", "shakemap"], random.randrange(5))
    return {
        "id": f"{net}{random.randrange(10**7, 10**8)}",
        "time": time,
        "place": place and place.format(random.randrange(1, 90)),
        "mag": mag,
        "magType": None if mag is None else random.choice(["ml", "md", "mww", "mb", "Ml"]),
        "depth": depth,
        "nst": random.choice([None, random.randrange(3, 120)]),
        "gap": random.choice([None, round(random.uniform(10, 330), 1)]),
        "net": net,
        "type": random.choices(["earthquake", "quarry blast", "explosion", "ice quake"], [20, 3, 1, 1])[0],
        "properties": {
            "felt": random.choice([None, None, 1, 4, 37]),
            "alert": random.choice([None, None, "green", "yellow"]),
            "status": random.choice(["automatic", "reviewed"]),
            "tsunami": random.choices([0, 1], [9, 1])[0],
            "sig": 0 if mag is None else round(100 * max(mag, 0) ** 1.3),
            "updated": int(time.timestamp() * 1000) + random.randrange(10**8),
            "types": types or None,
        },
        "geometry": {"type": "Point", "coordinates": [_degrees(random, 180), _degrees(random, 60), depth]},
        "tags": [("source", net), ("review", random.choice(["auto", "manual"]))][: random.randrange(3)],
    }


def _degrees(random: Random, most: int) -> float:
    return round(random.uniform(-most, most), 4)


def weather() -> Dataset:
    """Hourly reports as NOAA's integrated surface database has them: four stations, a hundred hours, coded text."""
    random = Random(1013)
    begin = datetime(2023, 12, 30, tzinfo=UTC)
    reports = [
        _report(random, station, begin + timedelta(hours=hour, minutes=50 + number, seconds=random.randrange(60)))
        for hour in range(ROWS // len(_STATIONS))
        for number, station in enumerate(_STATIONS)
    ]
    return Dataset("weather", "observed_at", pa.Table.from_pylist(reports, _WEATHER))


_WEATHER = pa.schema(
    {
        "STATION": pa.string(),
        "NAME": pa.string(),
        "DATE": pa.string(),
        "observed_at": MICROS,
        "REPORT_TYPE": pa.string(),
        "WND": pa.string(),
        "TMP": pa.string(),
        "VIS": pa.string(),
        "temperature": pa.float64(),
        "dew_point": pa.float32(),
        "pressure": pa.decimal128(6, 1),
        "precipitation": pa.decimal128(8, 3),
        "humidity": pa.int16(),
        "quality": pa.int8(),
        "day": pa.date32(),
    }
)

_STATIONS = {
    "72503014732": "LA GUARDIA AIRPORT, NY US",
    "72565003017": "DENVER INTERNATIONAL AIRPORT, CO US",
    "03772099999": "HEATHROW, UK",
    "A0735700182": None,
}


def _report(random: Random, station: str, time: datetime) -> dict[str, Any]:
    celsius = round(random.gauss(4, 6), 1)
    coded = f"{round(celsius * 10):+05d},{random.choice([1, 5, 9])}"
    wind = random.choice(
        ["{:03d},1,N,{:04d},1", "{:03d},1,N,{:04d},1", "999,9,C,{1:04d},1", "999,9,9,9999,9", "", None]
    )
    return {
        "STATION": station,
        "NAME": _STATIONS[station],
        "DATE": random.choices([f"{time:%Y-%m-%dT%H:%M:%S}", f"{time:%Y-%m-%d}", "missing"], [18, 1, 1])[0],
        "observed_at": time,
        "REPORT_TYPE": random.choice(["FM-15", "FM-15", "FM-12", "SOD  "]),
        "WND": wind and wind.format(random.randrange(0, 361, 10), random.randrange(0, 160)),
        "TMP": random.choice([coded, coded, coded, "+9999,9"]),
        "VIS": f"{random.choice([16093, 8047, 402, 999999]):06d},{random.choice([1, 5, 9])},N,1",
        "temperature": random.choice([celsius, celsius, celsius, None, -9999.0]),
        "dew_point": random.choice([round(celsius - random.random() * 8, 1), None]),
        "pressure": random.choice([Decimal(random.randrange(9800, 10400)).scaleb(-1), None, Decimal("9999.9")]),
        "precipitation": random.choice([Decimal(0), Decimal(random.randrange(900)).scaleb(-2), None]),
        "humidity": random.choice([None, random.randrange(20, 101)]),
        "quality": random.choice([0, 1, 4, 5, 9]),
        "day": time.date(),
    }


def sql_tests() -> Dataset:
    """A small table with a column of most types, and times on both sides of the epoch."""
    random = Random(1970)
    begin = datetime(1969, 12, 31, 23, 50, tzinfo=UTC)
    rows = [_typed(random, number, begin + timedelta(seconds=10 * number + number % 7)) for number in range(120)]
    return Dataset("testdata", "ts", pa.Table.from_pylist(rows, _SQL_TESTS))


_SQL_TESTS = pa.schema(
    {
        "ts": MICROS,
        "a": pa.int32(),
        "b": pa.int32(),
        "k": pa.string(),
        "v": pa.bool_(),
        "i": pa.int64(),
        "d": pa.float64(),
        "x": pa.float64(),
        "y": pa.float64(),
        "s": pa.string(),
        "salary": pa.float64(),
        "dec": pa.decimal128(10, 2),
        "big": pa.decimal128(38, 0),
        "dt": pa.date32(),
        "len": pa.duration("us"),
        "bin": pa.binary(),
        "arr": pa.list_(pa.int32()),
        "st": pa.struct({"x": pa.int32(), "y": pa.struct({"z": pa.string()})}),
        "m": pa.map_(pa.int32(), pa.string()),
    }
)


def _typed(random: Random, number: int, time: datetime) -> dict[str, Any]:
    x = random.choice([None, random.gauss(20, 5), random.gauss(20, 5)])
    return {
        "ts": time,
        "a": random.choice([None, 0, 1, 2, 3]),
        "b": random.choice([None, 0, 1, 2, 7]),
        "k": random.choice([None, "one", "two", "three"]),
        "v": random.choice([None, True, True, False]),
        "i": number,
        # What is no number is rare, so that it enters a window and leaves it.
        "d": {17: float("nan"), 40: float("inf"), 71: -float("inf"), 72: float("inf")}.get(
            number, random.choice([None, 0.0, -0.0, 1.5, -2.25])
        ),
        "x": x,
        "y": random.choice([None, 3 * (x or 0) + random.gauss(0, 1)]),
        "s": random.choice([None, "1", "infinity", "", "Ünïcode", "two words"]),
        "salary": random.choice([100.0, 200.0, 400.0, None]),
        "dec": random.choice([None, Decimal(random.randrange(-500, 9000)).scaleb(-2)]),
        "big": random.choice([None, Decimal(number), Decimal(10**37)]),
        "dt": random.choice([None, time.date(), datetime(2005, 1, 1).date()]),
        "len": random.choice([None, timedelta(seconds=random.randrange(60)), timedelta(days=-1)]),
        "bin": random.choice([None, b"", b"\x00\xff", b"a"]),
        "arr": random.choice([None, [], [1], [1, 2], [None, 1]]),
        "st": random.choice(
            [None, {"x": random.choice([None, 1, 2]), "y": random.choice([None, {"z": "p"}, {"z": None}])}]
        ),
        "m": random.choice([None, [], [(1, "p"), (2, None)], [(2, None), (1, "p")]]),
    }


def _moments(random: Random, begin: datetime, hours: int) -> list[datetime]:
    """`ROWS` different instants, ascending, to the second."""
    seconds = sorted(random.sample(range(hours * 3600), ROWS))
    return [begin + timedelta(seconds=second) for second in seconds]


DATASETS: Mapping[str, Callable[[], Dataset]] = {"earthquakes": earthquakes, "taxi": taxi, "weather": weather}
