"""A scenario: whom to ask, what, and how hard, as TOML; one case for each point of its grid.

Knows nothing of how requests are sent.
"""

import itertools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from tailrace.bench.errors import BadScenario
from tailrace.bench.units import Amount
from tailrace.latency.cost import Prices

CASES_MAX = 64
"""The most points of one grid."""
SECONDS_MAX = 3600.0
"""The longest that one block of a case may last."""
REQUESTS_MAX = 1_000_000
"""The most requests of one block."""
RATE_MAX = 20_000.0
"""The most requests a second."""
CLIENTS_MAX = 1024
"""The most clients of a closed loop, and the most requests of one burst."""
ROUNDS_MAX = 100
"""How often cases may take turns."""
SHIPPED = "tailrace.bench.scenarios"

Protocol = Literal[
    "openai-chat",
    "openai-embeddings",
    "tei",
    "cohere-rerank",
    "jina-rerank",
    "tei-rerank",
    "door",
    "plain",
]
Kind = Literal["poisson", "constant", "staircase", "burst", "replay", "closed"]
Effort = Literal["off", "minimal", "low", "medium", "high"]


T = TypeVar("T", bound="Table")


def _time(amount: Amount) -> Amount:
    if amount.unit == "%":
        raise ValueError("a share of what? say 10s or 10req")
    return amount


Typed = Annotated[Amount, BeforeValidator(Amount.parse), PlainSerializer(str, return_type=str)]
TimeOrCount = Annotated[
    Amount,
    BeforeValidator(Amount.parse),
    AfterValidator(_time),
    PlainSerializer(str, return_type=str),
]


class Table(BaseModel):
    """A table of a scenario: what it does not know is a mistake."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class TargetTable(Table):
    """Whom to ask."""

    protocol: Protocol = "plain"
    url: str = "http://127.0.0.1:8080/v1"
    """As the protocol wants it: ".../v1" for OpenAI, ".../api" for doors; `{text}` in a plain one."""
    model: str = ""
    key_env: str = ""
    """The environment variable that holds the key; the key itself is kept nowhere."""
    batch: int = Field(1, ge=1, le=2048)
    """Texts in one embedding request, documents in one rerank."""
    door: Literal["naive", "limited", "batched", "queue"] = "limited"
    reasoning: Effort | None = None
    """How much thinking to ask for; None says nothing of it."""
    output_max: int = Field(64, ge=1)
    """The most tokens of a chat's answer."""
    stream: bool = True


class AskTable(Table):
    """What to ask."""

    texts: Literal["reviews", "questions"] = "reviews"
    file: Path | None = None
    """One text a line, instead of the shipped ones."""
    distinct: int = Field(4096, ge=1, le=100_000)
    """So many different texts are asked in turn; a number makes one of what would repeat."""
    fresh: bool = True
    """Whether a sign is added that no earlier run has asked with, so that no cache answers."""
    query: str = "조용하고 주차가 편한 곳"
    """What documents are ranked for."""


class LoadTable(Table):
    """How hard. Open loops send by the clock, whatever comes back; only `closed` waits for answers."""

    kind: Kind = "poisson"
    seed: int = 7
    rate: float = Field(10.0, gt=0, le=RATE_MAX)
    """Requests a second: of poisson and constant."""
    rates: tuple[Annotated[float, Field(gt=0, le=RATE_MAX)], ...] = ()
    """Steps of a staircase of rate, each for an equal share of the length; Poisson inside."""
    steps: tuple[Annotated[int, Field(ge=1, le=CLIENTS_MAX)], ...] = ()
    """Steps of a staircase of concurrency (a closed loop)."""
    clients: int = Field(1, ge=1, le=CLIENTS_MAX)
    """Of a closed loop: each asks again once it has its answer."""
    think: TimeOrCount = Amount(0.0, "s")
    """Mean pause of a client between two requests, exponential."""
    size: int = Field(10, ge=1, le=CLIENTS_MAX)
    """Requests that a burst sends at the same moment."""
    every: TimeOrCount = Amount(2.0, "s")
    """From one burst to the next."""
    trace: Path | None = None
    """Of a replay: the rows.jsonl of a run, or one moment in seconds a line."""
    speed: float = Field(1.0, gt=0, le=1000)
    """How much faster than recorded a trace is replayed."""
    length: TimeOrCount = Amount(10.0, "s")
    """Of one block of a case, its warm-up included: seconds or requests."""
    cold: TimeOrCount = Amount(1.0, "req")
    """The first requests, kept apart: connections, caches and pages are not there yet."""
    warm_up: Typed = Amount(10.0, "%")
    """What follows them and is in no figure either."""
    timeout: TimeOrCount = Amount(60.0, "s")
    """How long an answer is waited for; one that takes longer is a lower bound, not a time."""

    @model_validator(mode="after")
    def _fits(self) -> "LoadTable":
        for name in ("think", "every", "timeout"):
            amount: Amount = getattr(self, name)
            if amount.unit != "s":
                raise ValueError(f"{name} is a time: say {name} = '1s'")
        if self.length.unit == "s" and not 0 < self.length.value <= SECONDS_MAX:
            raise ValueError(f"length is above 0 and at most {SECONDS_MAX:g}s")
        if self.length.unit == "req" and not 0 < self.length.value <= REQUESTS_MAX:
            raise ValueError(f"length is 1 to {REQUESTS_MAX} requests")
        if self.timeout.value <= 0 or self.every.value <= 0:
            raise ValueError("timeout and every are above 0s")
        if self.kind == "staircase" and bool(self.rates) == bool(self.steps):
            raise ValueError("a staircase has either rates (open loop) or steps (closed loop)")
        if self.kind == "staircase" and self.length.unit != "s":
            raise ValueError("a staircase has a length in seconds, shared by its steps")
        if self.kind == "replay" and self.trace is None:
            raise ValueError("a replay needs a trace")
        return self

    @property
    def closed(self) -> bool:
        """Whether who sends waits for answers."""
        return self.kind == "closed" or bool(self.steps)


class Scenario(Table):
    """One question, and how to have it answered."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")
    question: str
    """What the figures are to tell, in one sentence."""
    target: TargetTable = TargetTable()
    against: dict[str, dict[str, Any]] = Field(default_factory=dict, max_length=8)
    """Other targets by name, each with what differs; they take turns with the first, A/A first."""
    ask: AskTable = AskTable()
    load: LoadTable = LoadTable()
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    """Settings by dotted path, each with several values: every combination is a case."""
    rounds: int = Field(1, ge=1, le=ROUNDS_MAX)
    """How often the cases take turns, A/B/A/B, so that what drifts hits all of them."""
    cost: Prices | None = None
    """Prices, where the report is to say what the calls cost."""
    best_before: int = Field(30, ge=1, le=3650)
    """Days until the answer should be asked for again."""

    @property
    def compares(self) -> bool:
        """Whether the same cases are asked of several targets."""
        return bool(self.against)


class Case(Table):
    """One point of the grid at one target: what becomes one run."""

    name: str
    """"target.batch=8, load.clients=4"; empty where the scenario has one case only."""
    place: str = ""
    """Which target, where there are several."""
    target: TargetTable
    ask: AskTable
    load: LoadTable


def shipped() -> list[str]:
    """The names of the scenarios that come with the package."""
    folder = resources.files(SHIPPED)
    return sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml"))


def read_scenario(name: str, changes: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario of a file or of a shipped name, with `changes` by dotted path.

    Raises:
        BadScenario: no such file or name, no TOML, or a setting that cannot be.

    """
    path = Path(name)
    if name in shipped():
        text = (resources.files(SHIPPED) / f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadScenario(f"{name} cannot be read: {error}") from None
    else:
        raise BadScenario(
            f"there is no scenario {name}; name a .toml file or {', '.join(shipped())}"
        )
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario(f"{name} is no TOML: {error}") from None
    for dotted, value in (changes or {}).items():
        body.get("grid", {}).pop(dotted, None)  # who fixes a setting wants no grid over it
        _put(body, dotted, value)
    return _checked(Scenario, body, name)


def cases(scenario: Scenario) -> list[Case]:
    """Every combination of the grid at every target; raises BadScenario."""
    points = [dict(zip(scenario.grid, values, strict=True)) for values in _combinations(scenario)]
    places = {"": {}} if not scenario.against else {"A": {}, **scenario.against}
    made = []
    for point in points:
        for place, differs in places.items():
            body = scenario.model_dump(mode="json", include={"target", "ask", "load"})
            for dotted, value in point.items():
                _put(body, dotted, value)
            body["target"] |= differs
            words = ", ".join(f"{key.split('.')[-1]} {value}" for key, value in point.items())
            name = ", ".join(word for word in (place, words) if word)
            made.append(_checked(Case, {**body, "name": name, "place": place}, scenario.name))
    return made


def _combinations(scenario: Scenario) -> list[tuple[Any, ...]]:
    if any(not values for values in scenario.grid.values()):
        raise BadScenario("a line of the grid has no values")
    found = list(itertools.islice(itertools.product(*scenario.grid.values()), CASES_MAX + 1))
    if len(found) > CASES_MAX:
        raise BadScenario(f"the grid has more than {CASES_MAX} cases")
    return found


def _put(body: dict[str, Any], dotted: str, value: Any) -> None:
    *tables, last = dotted.split(".")
    for table in tables:
        body = body.setdefault(table, {})
        if not isinstance(body, dict):
            raise BadScenario(f"{dotted} names no setting")
    body[last] = value


def _checked(kind: type[T], body: Mapping[str, Any], name: str) -> T:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "as a whole"
        said = re.sub(r"^Value error, ", "", first["msg"])
        more = f" (and {len(error.errors()) - 1} more)" if len(error.errors()) > 1 else ""
        raise BadScenario(f"{name}, {where}: {said}{more}") from None
