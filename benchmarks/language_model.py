"""Throughput of the language model client with its store, beside the bare asynchronous client.

Run it from the repository root, with the package and its test dependencies installed, on an otherwise idle machine:

    python benchmarks/language_model.py

A server in a process of its own answers after a fixed time and counts. The same requests go, 32 in flight, through
openai's client alone (which stores nothing) and through ours (rate limits, retries, store), in turn, several times; the
rates are the server's own. Requirements: with replies after 50 ms at least 85 % of the bare client's median rate, with
replies after 200 ms at least 85 % of what 32 calls in flight allow (160 a second). The exit code is 1 if one is missed.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import openai

from evaluators.judge import Endpoint, LanguageModel, Request, Sampling, Store

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "judge"))
from language_model_server import server_process

IN_FLIGHT = 32
PASSAGE = "The statute of limitations had run before the claim was filed, so the appeal was dismissed with costs. " * 12
REQUIRED = 0.85


def requests(number: int) -> list[Request]:
    """Different requests with prompts of about 1,200 characters, as a judge makes them."""
    return [
        Request(
            "gpt-4o-mini",
            ({"role": "system", "content": "You rate passages."}, {"role": "user", "content": f"{i} {PASSAGE}"}),
            Sampling(top_logprobs=10),
        )
        for i in range(number)
    ]


async def bare(url: str, asked: list[Request]) -> None:
    """The requests through openai's client, 32 in flight."""
    queue = iter(asked)
    async with openai.AsyncOpenAI(base_url=url, api_key="benchmark-key", max_retries=0) as client:

        async def work() -> None:
            for request in queue:
                await client.chat.completions.create(**request.body())

        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


def ours(url: str, asked: list[Request]) -> None:
    """The requests through our client into a fresh store."""
    with tempfile.TemporaryDirectory() as folder:
        model = LanguageModel(
            Endpoint(url, api_key="benchmark-key", concurrency=IN_FLIGHT), Store(Path(folder) / "store.sqlite")
        )
        outcomes = model.ask(asked)
        assert all(o.failure is None for o in outcomes)
        model.store.close()


def rate(delay: float, asked: list[Request], with_store: bool) -> float:
    """Replies a second, by the server's count."""
    with server_process("--delay", str(delay)) as server:
        if with_store:
            ours(server.url, asked)
        else:
            asyncio.run(bare(server.url, asked))
        counts = server.counts()
    assert counts["max_in_flight"] <= IN_FLIGHT
    return float(counts["replies_per_second"])


def main() -> int:
    asked = requests(1500)
    pairs = [(rate(0.05, asked, False), rate(0.05, asked, True)) for _ in range(3)]
    bare_rate, our_rate = (statistics.median(column) for column in zip(*pairs, strict=True))
    share = our_rate / bare_rate
    print(f"50 ms replies: bare {bare_rate:.0f}/s, ours {our_rate:.0f}/s, {share:.0%} (required {REQUIRED:.0%})")
    limit = IN_FLIGHT / 0.2
    slow = statistics.median(rate(0.2, asked[:1500], True) for _ in range(3))
    print(f"200 ms replies: ours {slow:.0f}/s, {slow / limit:.0%} of {limit:.0f}/s (required {REQUIRED:.0%})")
    return 0 if share >= REQUIRED and slow / limit >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
