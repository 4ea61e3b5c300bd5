"""The sample's source tables: which files of vega-datasets, which columns, which other names and values.

The package vega-datasets is needed to build the sample, not to use it; it is imported where a file is read.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.resources
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from tcr_tasks.sample_surface import MONTHS, Kind

Row = dict[str, str]


def _as_is(text: str) -> str:
    return text


def _year(text: str) -> str:
    return text[:4]


def _dashes(text: str) -> str:
    """2010/01/01, 2010/01/01 13:00 or 2010/01/01 13:00:00 with dashes and without seconds."""
    return text[:16].replace("/", "-")


def _spelled_date(text: str) -> str:
    """Jan 1 2000 as 2000-01-01."""
    month, day, year = text.split()
    number = [name[:3] for name in MONTHS].index(month) + 1
    return f"{year}-{number:02d}-{int(day):02d}"


def _three_decimals(text: str) -> str:
    return str(Decimal(text).quantize(Decimal("0.001")))


@dataclass(frozen=True)
class Column:
    """A column of a source.

    Attributes:
        key: its name in the file.
        kind: what its values are.
        headers: names to print, at least three, none shared with another column of the source.
        read: the file's text to the canonical text.
        unit: a unit that may be printed.
        choices: for columns of few values: other ways to write each.
    """

    key: str
    kind: Kind
    headers: tuple[str, ...]
    read: Callable[[str], str] = _as_is
    unit: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A file of vega-datasets 0.9.0 and its columns by canonical name; other columns of the file are not used."""

    file: str
    sha256: str
    columns: Mapping[str, Column]


_TEMPERATURE_HEADERS = ("temp", "temperature", "reading", "degrees")
_TIME_HEADERS = ("time", "timestamp", "measured at", "date and hour")
_DATE_HEADERS = ("date", "day", "calendar date", "recorded on")
_MONTH_HEADERS = ("month", "period", "reporting month", "as of")
_YEAR_HEADERS = ("year", "calendar year", "yr")

SOURCES: dict[str, Source] = {
    "airports": Source(
        "airports.csv",
        "903c7169e6d558eefb95295fe2947ec8503135fbb855ea5c737cf4a90ea603ad",
        {
            "iata": Column("iata", "text", ("iata", "airport code", "identifier", "location code")),
            "name": Column("name", "text", ("name", "airport", "facility", "airfield name")),
            "city": Column("city", "text", ("city", "town", "municipality", "place served")),
            "state": Column(
                "state",
                "text",
                ("state", "state abbr", "region", "us state"),
                choices={
                    "AK": ("AK", "Alaska"),
                    "CA": ("CA", "California"),
                    "CO": ("CO", "Colorado"),
                    "HI": ("HI", "Hawaii"),
                    "ID": ("ID", "Idaho"),
                    "MT": ("MT", "Montana"),
                    "OR": ("OR", "Oregon"),
                    "UT": ("UT", "Utah"),
                    "WA": ("WA", "Washington"),
                    "WY": ("WY", "Wyoming"),
                },
            ),
            "latitude": Column("latitude", "number", ("latitude", "lat", "degrees north"), _three_decimals),
            "longitude": Column("longitude", "number", ("longitude", "lon", "degrees east"), _three_decimals),
        },
    ),
    "barley": Source(
        "barley.json",
        "800faf5a0524e2145822a72af7821e153b80ad3433631f4bd30100b24c9fa2bc",
        {
            "yield": Column("yield", "number", ("yield", "bushels per acre", "harvest", "output")),
            "variety": Column("variety", "text", ("variety", "cultivar", "strain", "barley type")),
            "year": Column("year", "year", _YEAR_HEADERS),
            "site": Column("site", "text", ("site", "location", "station", "trial farm")),
        },
    ),
    "cars": Source(
        "cars.json",
        "f686a53678b21f4231e2f6a5ba7ce5761d9d39204fccdea1caa29fb8c460e319",
        {
            "car": Column("Name", "text", ("name", "car", "model", "vehicle")),
            "mpg": Column("Miles_per_Gallon", "number", ("miles per gallon", "fuel economy", "mpg"), unit="mpg"),
            "cylinders": Column("Cylinders", "small", ("cylinders", "number of cylinders", "cyl")),
            "horsepower": Column("Horsepower", "number", ("horsepower", "engine power", "power"), unit="hp"),
            "weight_lbs": Column("Weight_in_lbs", "count", ("weight", "curb weight", "mass"), unit="lbs"),
            "model_year": Column("Year", "year", ("model year", "year", "vintage", "production year"), _year),
            "origin": Column(
                "Origin",
                "text",
                ("origin", "made in", "region of manufacture", "built in"),
                choices={
                    "USA": ("USA", "United States", "American", "US"),
                    "Europe": ("Europe", "EUR", "European", "EU"),
                    "Japan": ("Japan", "JPN", "Japanese", "JP"),
                },
            ),
        },
    ),
    "driving": Source(
        "driving.json",
        "25a7e2d987372c77db93a85b68ffc58c20be09870378478b2faa4d9209910c15",
        {
            "year": Column("year", "year", _YEAR_HEADERS),
            "miles": Column("miles", "count", ("miles", "distance per person", "miles driven per capita")),
            "gas": Column("gas", "number", ("gas", "gas price", "price per gallon", "fuel cost"), unit="USD"),
        },
    ),
    "iowa-electricity": Source(
        "iowa-electricity.csv",
        "6071c2e657d91509885a1f3eec0884b2854d66990b5c556dbead15e263f9506b",
        {
            "year": Column("year", "year", _YEAR_HEADERS, _year),
            "source": Column(
                "source",
                "text",
                ("source", "energy source", "fuel", "generated from"),
                choices={
                    "Fossil Fuels": ("Fossil Fuels", "coal, oil and gas", "fossil", "Fossil energy"),
                    "Nuclear Energy": ("Nuclear Energy", "nuclear power", "nuclear", "Atomic energy"),
                    "Renewables": ("Renewables", "wind, water and sun", "renewable", "Green energy"),
                },
            ),
            "net_generation": Column(
                "net_generation", "count", ("net generation", "electricity generated", "output"), unit="thousand MWh"
            ),
        },
    ),
    "iris": Source(
        "iris.json",
        "aade78d96082ffb9512b237eeeee6e805edc6db0b16947d27ad23c53b8266ce1",
        {
            "sepal_length": Column("sepalLength", "number", ("sepal length", "length of sepal", "sepal len")),
            "sepal_width": Column("sepalWidth", "number", ("sepal width", "width of sepal", "sepal wid")),
            "petal_length": Column("petalLength", "number", ("petal length", "length of petal", "petal len")),
            "petal_width": Column("petalWidth", "number", ("petal width", "width of petal", "petal wid")),
            "species": Column(
                "species",
                "text",
                ("species", "iris type", "class", "flower"),
                choices={
                    "setosa": ("setosa", "Iris setosa", "I. setosa", "SETOSA"),
                    "versicolor": ("versicolor", "Iris versicolor", "I. versicolor", "VERSICOLOR"),
                    "virginica": ("virginica", "Iris virginica", "I. virginica", "VIRGINICA"),
                },
            ),
        },
    ),
    "ohlc": Source(
        "ohlc.json",
        "a0ad3ef04c1bb5ac98c564f87fdb79f095ad109a20e569719b2e19bea5e4a7c9",
        {
            "date": Column("date", "date", ("date", "trading day", "session")),
            "open": Column("open", "number", ("open", "opening level", "start")),
            "high": Column("high", "number", ("high", "day high", "peak")),
            "low": Column("low", "number", ("low", "day low", "bottom")),
            "close": Column("close", "number", ("close", "closing level", "last")),
            "signal": Column(
                "signal",
                "text",
                ("signal", "position", "advice"),
                choices={"short": ("short", "go short"), "long": ("long", "go long")},
            ),
        },
    ),
    "seattle-temps": Source(
        "seattle-temps.csv",
        "c220666521ff4bec4ffb6f0d9acfdc5c1056564b1aad6f78d3b06aa0a0c8b085",
        {
            "time": Column("date", "hour", _TIME_HEADERS, _dashes),
            "seattle_temp": Column("temp", "number", _TEMPERATURE_HEADERS, unit="F"),
        },
    ),
    "sf-temps": Source(
        "sf-temps.csv",
        "3f91699707cfed43ef551394bebef4c2ebe5505157b9be7bff9558eea2fbaaec",
        {
            "time": Column("date", "hour", _TIME_HEADERS, _dashes),
            "sf_temp": Column("temp", "number", _TEMPERATURE_HEADERS, unit="F"),
        },
    ),
    "seattle-weather": Source(
        "seattle-weather.csv",
        "62f0609f787158128aa2bd102967173a4953122dd4f872bf1d502cae1037df0b",
        {
            "date": Column("date", "date", _DATE_HEADERS, _dashes),
            "precipitation": Column("precipitation", "number", ("precipitation", "rainfall", "precip"), unit="mm"),
            "temp_max": Column("temp_max", "number", ("temp max", "highest temperature", "daily high"), unit="C"),
            "temp_min": Column("temp_min", "number", ("temp min", "lowest temperature", "daily low"), unit="C"),
            "wind": Column("wind", "number", ("wind", "wind speed", "average wind"), unit="m/s"),
            "weather": Column(
                "weather",
                "text",
                ("weather", "conditions", "sky", "weather type"),
                choices={
                    "drizzle": ("drizzle", "drizzly", "light drizzle"),
                    "rain": ("rain", "rainy", "wet"),
                    "sun": ("sun", "sunny", "clear"),
                    "snow": ("snow", "snowy", "snowfall"),
                    "fog": ("fog", "foggy", "misty"),
                },
            ),
        },
    ),
    "stocks": Source(
        "stocks.csv",
        "f9953ac6693e587476b4ebf2f0b00d9bb95371ca8c39da4cc6155077b3e417cd",
        {
            "symbol": Column(
                "symbol",
                "text",
                ("symbol", "ticker", "stock", "company"),
                choices={
                    "MSFT": ("MSFT", "Microsoft"),
                    "AMZN": ("AMZN", "Amazon"),
                    "IBM": ("IBM", "I.B.M."),
                    "GOOG": ("GOOG", "Google"),
                    "AAPL": ("AAPL", "Apple"),
                },
            ),
            "month": Column("date", "month", _MONTH_HEADERS, _spelled_date),
            "price": Column("price", "number", ("price", "share price", "quote", "closing price"), unit="USD"),
        },
    ),
    "us-employment": Source(
        "us-employment.csv",
        "0fa5366929bf738ac420509b84ed120155f740b0fa9c265ca309dad4057d1b1b",
        {
            "month": Column("month", "month", _MONTH_HEADERS),
            "nonfarm": Column("nonfarm", "count", ("nonfarm", "nonfarm payrolls", "total jobs")),
            "nonfarm_change": Column(
                "nonfarm_change", "count", ("nonfarm change", "change in jobs", "monthly change", "jobs gained")
            ),
            "construction": Column("construction", "count", ("construction", "building trades", "builders")),
            "manufacturing": Column("manufacturing", "count", ("manufacturing", "factory jobs", "industry")),
            "government": Column("government", "count", ("government", "public sector", "state employees")),
            "utilities": Column("utilities", "number", ("utilities", "utility jobs", "power and water")),
            "hospitality": Column(
                "leisure_and_hospitality", "count", ("leisure and hospitality", "hotels and leisure", "tourism jobs")
            ),
        },
    ),
    "wheat": Source(
        "wheat.json",
        "f81aca0a91d8f60ea04526d03d7e878fce3dd01847e02e409cab63776b9a41b4",
        {
            "year": Column("year", "year", _YEAR_HEADERS),
            "wheat_price": Column("wheat", "number", ("wheat", "price of wheat", "wheat price"), unit="shillings"),
            "wages": Column("wages", "number", ("wages", "weekly wage", "pay of a workman"), unit="shillings"),
        },
    ),
}


def load(source: Source) -> list[Row]:
    """The file's rows as canonical text by canonical column, in the file's order; a missing value is ''.

    Raises:
        ModuleNotFoundError: if vega-datasets is not installed.
        ValueError: if the file is not the one that the sample was made from.
    """
    content = (importlib.resources.files("vega_datasets") / "_data" / source.file).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise ValueError(f"{source.file} has the SHA-256 {digest}, not {source.sha256}; use vega-datasets 0.9.0")
    text = content.decode("utf-8")
    records: list[dict[str, object]]
    if source.file.endswith(".csv"):
        records = list(csv.DictReader(io.StringIO(text)))
    else:
        # Decimal keeps the digits that the file has.
        records = json.loads(text, parse_float=Decimal)
    return [{name: _canonical(record.get(c.key), c) for name, c in source.columns.items()} for record in records]


def _canonical(value: object, column: Column) -> str:
    return "" if value is None or value == "" else column.read(str(value))
