"""The sample's questions: for each a query, the columns of its tables, and how a person would ask it.

The questions were written by hand, after the manner of the released ones. They name columns and values in other
words than the tables do.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcr_tasks.queries import Aggregate, Condition, Query


@dataclass(frozen=True)
class Question:
    """One question and the group of tables to make for it.

    Attributes:
        id: the query's id.
        source: key of ``sample_sources.SOURCES``.
        place: ``db_id/table_name`` of the group's tables.
        columns: the canonical columns of the target.
        query: in canonical columns.
        text: the question.
        only: a column and the values to which the source is restricted beforehand.
    """

    id: str
    source: str
    place: str
    columns: tuple[str, ...]
    query: Query
    text: str
    only: tuple[str, tuple[str, ...]] | None = None


def _em(target: str, *conditions: Condition) -> Query:
    return Query("EM", conditions, target)


def _sf(target: str, *conditions: Condition) -> Query:
    return Query("SF", conditions, target)


def _sa(aggregate: Aggregate, target: str, *conditions: Condition) -> Query:
    return Query("SA", conditions, target, aggregate)


QUESTIONS: tuple[Question, ...] = (
    Question(
        "em-01",
        "airports",
        "aviation/mountain_airports",
        ("iata", "name", "city", "state"),
        _em("city", Condition("iata", "=", "SUN")),
        "As a travel planner, could you tell me which town is served by the airfield with the code SUN?",
        only=("state", ("ID", "MT", "WY", "UT", "CO")),
    ),
    Question(
        "sf-01",
        "airports",
        "air_travel/northwest_airports",
        ("name", "city", "state", "latitude"),
        _sf("name", Condition("state", "=", "WA"), Condition("latitude", ">", 48.7)),
        "I'm planning flights along the Canadian border. Which airports in Washington lie beyond 48.7 degrees north?",
        only=("state", ("AK", "WA", "OR")),
    ),
    Question(
        "sa-01",
        "airports",
        "geography/pacific_landing_sites",
        ("city", "state", "latitude", "longitude"),
        _sa("MIN", "longitude", Condition("state", "=", "HI"), Condition("latitude", ">", 21.5)),
        "As a cartographer, could you give me the lowest longitude, that is the one furthest west, among the landing "
        "sites in Hawaii that are above 21.5 degrees of latitude?",
        only=("state", ("HI", "CA")),
    ),
    Question(
        "em-02",
        "barley",
        "agronomy/barley",
        ("yield", "variety", "year", "site"),
        _em(
            "yield",
            Condition("variety", "=", "Velvet"),
            Condition("site", "=", "Crookston"),
            Condition("year", "=", 1931),
        ),
        "Could you look up how much the Velvet barley grown at Crookston brought in per acre in 1931?",
    ),
    Question(
        "sa-02",
        "barley",
        "crop_trials/cultivar_trials",
        ("yield", "variety", "year", "site"),
        _sa(
            "AVG",
            "yield",
            Condition("variety", "=", "Trebi"),
            Condition("year", "=", 1932),
            Condition("site", "!=", "Waseca"),
        ),
        "For my thesis on field trials, what did the Trebi cultivar yield on average in 1932, leaving out Waseca?",
    ),
    Question(
        "em-03",
        "cars",
        "vehicles/cars",
        ("car", "cylinders", "horsepower", "model_year"),
        _em("horsepower", Condition("car", "=", "fiat 128"), Condition("model_year", "=", 1973)),
        "As a collector of old cars, I'd like to know how powerful the engine of the 1973 Fiat 128 was.",
    ),
    Question(
        "sf-02",
        "cars",
        "automotive/car_models",
        ("car", "mpg", "model_year", "origin"),
        _sf("car", Condition("origin", "=", "Europe"), Condition("mpg", ">", 43)),
        "Could you help me find the European cars that went more than 43 miles on a gallon?",
    ),
    Question(
        "sa-03",
        "cars",
        "showroom/specifications",
        ("cylinders", "horsepower", "weight_lbs", "model_year", "origin"),
        _sa(
            "AVG",
            "weight_lbs",
            Condition("origin", "=", "Japan"),
            Condition("cylinders", "=", 6),
            Condition("horsepower", ">=", 115),
        ),
        "How heavy, on average, were the six-cylinder cars from Japan whose engines gave 115 horsepower or more?",
    ),
    Question(
        "sf-03",
        "driving",
        "transport/driving_habits",
        ("year", "miles", "gas"),
        _sf("year", Condition("miles", ">=", 10000)),
        "As a traffic researcher, can you tell me in which years people drove at least ten thousand miles each?",
    ),
    Question(
        "sa-04",
        "driving",
        "energy/gasoline_prices",
        ("year", "miles", "gas"),
        _sa("AVG", "gas", Condition("year", ">=", 1979), Condition("year", "<=", 1982)),
        "What did a gallon of gasoline cost on average from 1979 up to and including 1982?",
    ),
    Question(
        "em-04",
        "iowa-electricity",
        "power_grid/electricity",
        ("year", "source", "net_generation"),
        _em("net_generation", Condition("source", "=", "Renewables"), Condition("year", "=", 2008)),
        "I'm preparing a talk on clean power in Iowa. How much electricity came from renewable sources in 2008?",
    ),
    Question(
        "sa-05",
        "iowa-electricity",
        "energy_office/plant_output",
        ("year", "source", "net_generation"),
        _sa("SUM", "net_generation", Condition("source", "=", "Nuclear Energy"), Condition("year", ">=", 2014)),
        "As an energy analyst, could you add up what Iowa's reactors generated from 2014 onwards?",
    ),
    Question(
        "sf-04",
        "iris",
        "botany/iris_flowers",
        ("petal_length", "petal_width", "sepal_length", "species"),
        _sf("petal_length", Condition("species", "=", "virginica"), Condition("petal_width", ">=", 2.5)),
        "As a botanist, could you show me how long the petals are of those virginica irises whose petals are at least "
        "2.5 cm wide?",
    ),
    Question(
        "sa-06",
        "iris",
        "herbarium/blossoms",
        ("sepal_length", "sepal_width", "petal_length", "species"),
        _sa("MAX", "sepal_width", Condition("species", "=", "versicolor"), Condition("petal_length", "<", 3.6)),
        "Looking only at versicolor flowers with petals shorter than 3.6 cm, how broad does a sepal get at most?",
    ),
    Question(
        "em-05",
        "ohlc",
        "markets/volatility_index",
        ("date", "open", "high", "low", "close"),
        _em("close", Condition("date", "=", "2009-07-10")),
        "I'm checking my trading journal. At what level did the volatility index finish on 10 July 2009?",
    ),
    Question(
        "sa-07",
        "ohlc",
        "trading/short_long_signals",
        ("date", "open", "low", "signal"),
        _sa("MIN", "low", Condition("signal", "=", "short"), Condition("open", "<", 26)),
        "On days when the advice was to sell short and the index opened under 26, how deep did it fall at its lowest?",
    ),
    Question(
        "em-06",
        "seattle-temps",
        "climate/seattle_hourly",
        ("time", "seattle_temp"),
        _em("seattle_temp", Condition("time", "=", "2010-07-09 15:00")),
        "How warm was it in Seattle at three in the afternoon on the ninth of July 2010?",
    ),
    Question(
        "sf-05",
        "seattle-temps",
        "meteorology/heat_records",
        ("time", "seattle_temp"),
        _sf("time", Condition("seattle_temp", ">", 75.7)),
        "As a weather enthusiast, I'd love to know at what moments Seattle was hotter than 75.7 degrees in 2010.",
    ),
    Question(
        "em-07",
        "sf-temps",
        "bay_area/san_francisco_hourly",
        ("time", "sf_temp"),
        _em("sf_temp", Condition("time", "=", "2010-10-03 06:00")),
        "Could you find out how many degrees San Francisco had at six in the morning on October 3rd, 2010?",
    ),
    Question(
        "sa-08",
        "sf-temps",
        "weather_station/san_francisco_readings",
        ("time", "sf_temp"),
        _sa("MAX", "sf_temp", Condition("time", ">=", "2010-02-14 09:00"), Condition("time", "<=", "2010-02-14 12:00")),
        "What was the warmest it got in San Francisco between nine o'clock and noon on Valentine's Day 2010?",
    ),
    Question(
        "em-08",
        "seattle-weather",
        "weather/seattle_daily_weather",
        ("date", "temp_max", "temp_min", "weather"),
        _em("temp_max", Condition("date", "=", "2014-08-11")),
        "As a journalist writing about a heat wave, can you tell me how hot Seattle got on August 11th, 2014?",
    ),
    Question(
        "sf-06",
        "seattle-weather",
        "hydrology/seattle_rain_gauge",
        ("date", "precipitation", "wind", "weather"),
        _sf("date", Condition("precipitation", ">", 50)),
        "Please help me find the days on which more than 50 millimetres of rain came down in Seattle.",
    ),
    Question(
        "sa-09",
        "seattle-weather",
        "road_service/winter_weather_log",
        ("date", "temp_max", "wind", "weather"),
        _sa("AVG", "wind", Condition("weather", "=", "snow"), Condition("temp_max", "<", 1.5)),
        "On snowy days that never got warmer than 1.5 degrees, how strongly did the wind blow on average?",
    ),
    Question(
        "em-09",
        "stocks",
        "finance/blue_chips",
        ("symbol", "month", "price"),
        _em("price", Condition("symbol", "=", "IBM"), Condition("month", "=", "2005-03-01")),
        "As an investor, could you retrieve what one share of IBM was worth in March 2005?",
        only=("symbol", ("IBM", "MSFT")),
    ),
    Question(
        "sf-07",
        "stocks",
        "exchange/internet_stocks",
        ("symbol", "month", "price"),
        _sf("month", Condition("symbol", "=", "GOOG"), Condition("price", ">", 640)),
        "In which months did Google's stock trade above 640 dollars?",
        only=("symbol", ("GOOG", "AMZN", "AAPL")),
    ),
    Question(
        "em-10",
        "us-employment",
        "labor/employment",
        ("month", "construction", "manufacturing", "utilities"),
        _em("construction", Condition("month", "=", "2010-12-01")),
        "As a labor economist, could you tell me how many people, in thousands, worked in building at the end of 2010, "
        "in December?",
    ),
    Question(
        "sf-08",
        "us-employment",
        "bureau/payrolls",
        ("month", "nonfarm", "nonfarm_change"),
        _sf("month", Condition("nonfarm_change", "<", -750)),
        "Show me the months in which American payrolls shrank by more than 750 thousand.",
    ),
    Question(
        "sa-10",
        "us-employment",
        "statistics/nonfarm_jobs",
        ("month", "government", "hospitality", "nonfarm_change"),
        _sa("SUM", "nonfarm_change", Condition("month", ">=", "2010-02-01"), Condition("month", "<=", "2010-05-01")),
        "By how many thousand jobs did employment outside farming change altogether from February through May of 2010?",
    ),
    Question(
        "sf-09",
        "wheat",
        "history/wheat",
        ("year", "wheat_price", "wages"),
        _sf("year", Condition("wheat_price", ">=", 79)),
        "As an economic historian, I'd like a list of the years when wheat cost 79 shillings or more.",
    ),
    Question(
        "sa-11",
        "wheat",
        "economics/workmen_wages",
        ("year", "wheat_price", "wages"),
        _sa("AVG", "wages", Condition("year", ">=", 1700), Condition("year", "<=", 1720)),
        "Please calculate what a good workman earned per week on average from 1700 to 1720.",
    ),
)
