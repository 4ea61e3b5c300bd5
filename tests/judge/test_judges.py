"""Reading scores from replies, filling prompts, and the judges that do both."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_model_faults import always, at_random
from language_model_server import LanguageModelServer

from evaluators.judge import (
    Endpoint,
    FacetJudge,
    FunctionJudge,
    LanguageModel,
    LLMJudge,
    Pair,
    Sampling,
    Store,
    as_judge,
)
from evaluators.judge import batch as batch_module
from evaluators.judge.batch import read_batch, write_batch
from evaluators.judge.grading import read_grade
from evaluators.judge.judges import Judgement
from evaluators.judge.prompt import Prompt, read_prompt
from evaluators.judge.reply import Reply, UnreadableReplyError, read_reply
from ifir_tasks.instfol import RUBRICS

pytest_plugins = ["judge_fixtures"]

KEY = "sk-test-0123456789"
SCORE_2 = {"score": 2, "reason": "Two of 3."}
# The server's distribution at the score 2: .62 x 2 + .22 x 1 + .10 x 3 over .94; 7 is off the scale, 0 under 0.01.
WEIGHTED_2 = 1.76 / 0.94


def pair(number: int = 0, level: int = 3, facet: int | None = None, passage: str = "A case.") -> Pair:
    return Pair(f"q{number}-v{level}", f"d{number}", f"instruction {number}", passage, "aila", level, facet)


def judge(server: LanguageModelServer, folder: Path, **settings: Any) -> LLMJudge:
    endpoint = Endpoint(server.url, api_key=KEY, backoff=0.01, timeout=2, attempts=2)
    asking = LanguageModel(endpoint, Store(folder / "store.sqlite"), progress=False)
    return LLMJudge(RUBRICS, language_model=asking, **settings)


# ---- replies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "score", "weighted"),
    [
        (None, WEIGHTED_2, True),
        ("text_around", WEIGHTED_2, True),
        ("code_fence", WEIGHTED_2, True),
        ("two_objects", WEIGHTED_2, True),
        ("score_leading_blank", WEIGHTED_2, True),
        ("score_quoted", WEIGHTED_2, True),
        ("score_joined_before", 2.0, False),
        ("score_joined_after", 2.0, False),
        ("no_logprobs", 2.0, False),
        ("null_logprobs", 2.0, False),
        ("logprobs_refused", 2.0, False),
    ],
)
def test_replies_with_a_score(
    server: LanguageModelServer, tmp_path: Path, fault: str | None, score: float, weighted: bool
) -> None:
    server.scorer = lambda messages: SCORE_2
    server.faults = lambda number, body: fault
    (found,) = judge(server, tmp_path).judge([pair()])
    assert found.score == pytest.approx(score) and found.paper_score == pytest.approx(score)
    assert (found.weighted, found.reason) == (weighted, "Two of 3.")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("cut_before_score", "no complete JSON object with a score and was cut off: allow more tokens"),
        ("cut_after_score", "no complete JSON object with a score and was cut off: allow more tokens"),
        ("prose_only", "no complete JSON object with a score: "),
        ("duplicate_score", "gives a key twice"),
        ("score_split", "the score 10 is no whole number in 0..3"),
        ("score_seven", "the score 7 is no whole number in 0..3"),
        ("score_negative", "the score -1 is no whole number in 0..3"),
        ("score_fraction", "the score 1.5 is no whole number in 0..3"),
        ("score_null", "the score None is no whole number"),
        ("score_word", "the score 'two' is no whole number"),
        ("score_true", "the score True is no whole number"),
        ("score_missing", "no complete JSON object with a score: "),
        ("null_content", "the reply is empty"),
        ("empty_content", "the reply is empty"),
        ("content_filter", "the reply is empty"),
        ("refusal", "the model refused: 'I cannot help with that.'"),
        ("no_choices", "the call failed: the reply has no choice"),
        ("server_error", "the call failed: HTTP 500"),
    ],
)
def test_replies_without_a_score_are_none_with_a_reason(
    server: LanguageModelServer, tmp_path: Path, fault: str, reason: str
) -> None:
    server.scorer = lambda messages: SCORE_2
    server.faults = always(fault)
    (found,) = judge(server, tmp_path).judge([pair()])
    assert found.score is None and found.paper_score is None and not found.weighted
    assert reason in found.reason


def reply(text: str, tokens: list[str] | None = None, top: dict[str, float] | None = None) -> Reply:
    content = [
        {"token": t, "logprob": 0.0, "top_logprobs": [{"token": k, "logprob": v} for k, v in (top or {}).items()]}
        for t in (tokens or [])
    ]
    body = {"choices": [{"message": {"content": text}, "logprobs": {"content": content}, "finish_reason": "stop"}]}
    return read_reply(body)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 2, "reason": {"score": 1}',
        '{"verdict": {"score": 1}, "score": 2',
        '{"score": 2, "note": {"a": 1}, "x"',
        "{'score': 2}",
        '{"Score": 2}',
    ],
)
def test_what_stands_in_a_broken_object_is_no_verdict(text: str) -> None:
    with pytest.raises(UnreadableReplyError):
        read_grade(reply(text), (0, 3), 5, 10)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ['"score": 3', '{"score": 0}', "}{", 'a "score" : 1 b', "\\", "```", "\u2019\U0001f600"]
)


@given(
    score=st.integers(0, 3),
    reason=TEXTS,
    before=st.sampled_from(["", "Thinking: 3 of 3.\n", "{reason} ", "```json\n"]),
    separators=st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]),
    score_first=st.booleans(),
    ascii_only=st.booleans(),
    cuts=st.none() | st.sets(st.integers(1, 200), max_size=60),
)
def test_the_integer_is_right_and_the_weighted_score_right_or_absent(
    score: int,
    reason: str,
    before: str,
    separators: tuple[str, str],
    score_first: bool,
    ascii_only: bool,
    cuts: set[int] | None,
) -> None:
    value = {"score": score, "reason": reason} if score_first else {"reason": reason, "score": score}
    text = before + json.dumps(value, separators=separators, ensure_ascii=ascii_only)
    places = sorted({0, len(text), *(c for c in cuts or () if c < len(text))})
    tokens = [text[a:b] for a, b in pairwise(places)] if cuts is not None else []
    # Every token carries the distribution of its own number; only that of the score's own place gives this value.
    content = [
        {"token": t, "top_logprobs": [{"token": t, "logprob": -0.1}, {"token": "1", "logprob": -2.0}]} for t in tokens
    ]
    found = read_grade(
        read_reply({"choices": [{"message": {"content": text}, "logprobs": {"content": content}}]}), (0, 3), 5, 10
    )
    assert (found.integer, found.reason) == (score, reason)
    a, b = 0.9048374180359595, 0.1353352832366127  # exp(-0.1), exp(-2)
    assert found.weighted is None or found.weighted == pytest.approx((score * a + b) / (a + b))


@pytest.mark.parametrize("value", [4, -1, 10**30, 0.5, True, None, "x", "2/3", [2], {"score": 2}])
def test_values_off_the_scale(value: Any) -> None:
    with pytest.raises(UnreadableReplyError, match="no whole number in"):
        read_grade(reply(json.dumps({"score": value})), (0, 3), 5, 10)


@pytest.mark.parametrize("text", ['{"x": {"score": 1}, "score": 10e-1}', '{"x": {"score": 1}, "\\u0073core": 1}'])
def test_a_score_that_is_not_the_object_s_own_gives_no_weight(text: str) -> None:
    at = text.index("1")
    tokens = [text[:at], "1", text[at + 1 :]]
    found = read_grade(reply(text, tokens, {"1": -0.1, "3": -2.0}), (0, 3), 5, 10)
    assert (found.integer, found.weighted) == (1, None)


@pytest.mark.parametrize("value", [2, 2.0, "2", " 2 "])
def test_ways_to_write_a_whole_number(value: Any) -> None:
    assert read_grade(reply(json.dumps({"score": value})), (0, 3), 5, 10).integer == 2


# ---- prompts -----------------------------------------------------------------------------------------------------

PROMPT = Prompt("p", {"scale": "0-3"}, "System.", '<passage>\n{passage}\n</passage>\n<x>{instruction}</x> {"score": 1}')


@pytest.mark.parametrize(
    "value",
    ["</passage>", "< / Passage >", "a<passage>b", "</x ><x>", "{instruction}", "{passage}", "\\1 \\g<0>", "&lt;", ""],
)
def test_data_cannot_end_its_place(value: str) -> None:
    (_, user) = PROMPT.messages(passage=value, instruction=value)
    text = user["content"]
    for tag in ("<passage>", "</passage>", "<x>", "</x>"):
        assert text.count(tag) == 1
    shown = text.removeprefix("<passage>\n").partition("\n</passage>")[0]
    assert shown.replace("&lt;", "<") == value.replace("&lt;", "<")
    assert text.endswith('</x> {"score": 1}')


def test_text_without_the_prompt_s_tags_stays_as_it_is() -> None:
    text = "<b>p < 0.05</b> {x} <passages>"
    assert text in PROMPT.messages(passage=text, instruction="i")[1]["content"]


@pytest.mark.parametrize("values", [{"passage": "p"}, {"passage": "p", "instruction": "i", "more": "m"}])
def test_fields_without_value_and_values_without_field(values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="has the fields"):
        PROMPT.messages(**values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"scale: 0-3\n---\nonly a system text", r"found 2 part"),
        (b"scale: 0-3\n---\ns\n---\n{passage}", "expected the fields"),
        (b"scale: 0-3\n---\ns\n---\n{passage} {instruction} {more}", "expected the fields"),
        (b"scale: 3-0\n---\ns\n---\n{passage} {instruction}", "the scale '3-0'"),
        (b"scale: some\n---\ns\n---\n{passage} {instruction}", "the scale 'some'"),
        (b"scale\n---\ns\n---\n{passage} {instruction}", "not of the form 'key: value'"),
        (b"\xff\n---\ns\n---\n{passage} {instruction}", "not UTF-8"),
    ],
)
def test_bad_prompt_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"bad.txt.*{message}"):
        read_prompt(path, ("instruction", "passage"))


def test_every_rubric_of_the_package() -> None:
    files = sorted(RUBRICS.glob("*.txt"))
    assert len(files) == 20
    versions = set()
    for file in files:
        prompt = read_prompt(file, ("instruction", "passage"))
        level = file.stem.rpartition("-level-")[2]
        expected = (1, 5) if file.stem == "likert" else (0, int(level) if level.isdigit() else 3)
        assert prompt.scale == expected, file.name
        assert all(prompt.user.count(f"<{t}>") == prompt.user.count(f"</{t}>") == 1 for t in ("instruction", "passage"))
        versions.add(prompt.version)
    assert len(versions) == 20


# ---- judges ------------------------------------------------------------------------------------------------------


def test_what_the_model_is_asked(server: LanguageModelServer, tmp_path: Path) -> None:
    made = judge(server, tmp_path)
    made.judge([pair(), pair(), pair(1), pair(2, level=1)])
    assert len(server.counts.requests) == 3  # the same pair once
    body = server.counts.requests[0].body
    assert {k: body[k] for k in ("model", "temperature", "top_p", "max_tokens", "logprobs", "top_logprobs")} == {
        "model": "gpt-4o-mini",
        "temperature": 0.0,
        "top_p": 0.7,
        "max_tokens": 512,
        "logprobs": True,
        "top_logprobs": 10,
    }
    system, user = body["messages"]
    assert system["role"] == "system" and "law" in system["content"]
    assert "<instruction>\ninstruction 0\n</instruction>" in user["content"]
    assert "<passage>\nA case.\n</passage>" in user["content"]
    record = json.loads(json.dumps(made.record()))
    assert record["sampling"]["top_logprobs"] == 10 and record["top_logprobs"] == 5 and KEY not in str(record)


def test_two_queries_with_equal_texts_are_asked_once(server: LanguageModelServer, tmp_path: Path) -> None:
    first, second = (Pair(f"q{n}-v1", "d", "same", "same", "fiqa", 1) for n in (1, 2))
    one, other = judge(server, tmp_path).judge([first, second])
    assert one == other and len(server.counts.requests) == 1


def test_five_log_probabilities_for_us_ten_for_the_paper(server: LanguageModelServer, tmp_path: Path) -> None:
    server.scorer = lambda messages: SCORE_2
    # Likeliest first: 2, four words that are no score, then 1 and 3.
    server.distribution = lambda digits: {"2": 0.3, "a": 0.2, "b": 0.15, "c": 0.1, "d": 0.08, "1": 0.06, "3": 0.03}
    (found,) = judge(server, tmp_path).judge([pair()])
    assert found.score == pytest.approx(2)
    assert found.paper_score == pytest.approx((2 * 0.3 + 0.06 + 3 * 0.03) / 0.39)
    (plain,) = judge(server, tmp_path, top_logprobs=0).judge([pair()])
    assert (plain.score, plain.weighted) == (2.0, False)
    assert "logprobs" not in server.counts.requests[-1].body


def test_unreadable_replies_are_kept_and_asked_again_on_demand(server: LanguageModelServer, tmp_path: Path) -> None:
    server.scorer = lambda messages: SCORE_2 if "instruction 1" in messages[1]["content"] else "no idea"
    asked = [pair(0), pair(1)]
    assert [j.score is None for j in judge(server, tmp_path).judge(asked)] == [True, False]
    judge(server, tmp_path).judge(asked)
    assert len(server.counts.requests) == 2
    server.scorer = lambda messages: SCORE_2
    found = judge(server, tmp_path, again=True).judge(asked)
    assert [j.score is None for j in found] == [False, False]
    assert len(server.counts.requests) == 3


def test_scores_are_those_of_a_run_without_faults(server: LanguageModelServer, tmp_path: Path) -> None:
    pairs = [pair(n) for n in range(80)]
    right = judge(server, tmp_path / "right").judge(pairs)
    assert len({j.score for j in right}) == 4
    names = ("rate_limited", "server_error", "overloaded", "dropped_before", "dropped_in_body", "connection_reset")
    server.faults = at_random(dict.fromkeys((*names, "truncated_json", "html_page", "no_choices"), 0.3 / 9), seed=5)
    # Two attempts: .3 x .3 of the calls fail, and each time of asking leaves such a share of what was left.
    for _ in range(8):
        made = judge(server, tmp_path / "faulty").judge(pairs)
        assert all(
            m == r or (m.score is None and "the call failed" in m.reason) for m, r in zip(made, right, strict=True)
        )
        if made == right:
            break
    assert made == right and sum(server.counts.faults.values()) > 15


def test_rubrics_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "aila-level-3.txt").write_text("scale: 0-2\n---\ns\n---\n{instruction} {passage}")
    with pytest.raises(ValueError, match=r"aila-level-3.txt: its scale must be 0-3, found '0-2'"):
        LLMJudge(tmp_path).requests([pair()])
    with pytest.raises(FileNotFoundError, match=r"aila-level-1\.txt"):
        LLMJudge(tmp_path).requests([pair(level=1)])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        LLMJudge(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="0 <= top_logprobs <= paper_top_logprobs"):
        LLMJudge(RUBRICS, top_logprobs=6, paper_top_logprobs=5)
    theirs, ours = LLMJudge(tmp_path), LLMJudge(RUBRICS)
    (tmp_path / "aila-level-3.txt").write_text("scale: 0-3\n---\n\n---\n{instruction} {passage}")
    assert theirs.requests([pair()])[0].key != ours.requests([pair()])[0].key
    assert [m["role"] for m in theirs.requests([pair()])[0].messages] == ["user"]


@pytest.mark.parametrize(
    ("facet", "level", "score"), [(3, 1, 1), (3, 2, 2), (3, 3, 3), (1, 3, 1), (0, 2, 0), (3, 0, 3), (2, 0, 2)]
)
def test_facets(facet: int, level: int, score: float) -> None:
    assert FacetJudge().judge([pair(level=level, facet=facet)]) == [Judgement(score, score)]


def test_functions_and_other_things_as_judges() -> None:
    made = as_judge(lambda p: 0.5)
    assert isinstance(made, FunctionJudge) and made.judge([pair()])[0].score == 0.5
    assert as_judge(made) is made
    with pytest.raises(ValueError, match="a judge has the methods judge and record"):
        as_judge(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected a number in 0\.\.1 or None"):
        as_judge(lambda p: 2).judge([pair(level=1)])


# ---- the Batch API -----------------------------------------------------------------------------------------------


def result_line(request: dict[str, Any], content: str, status: int = 200, error: Any = None) -> str:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]}
    response = {"status_code": status, "request_id": "r", "body": body if status == 200 else {"error": "bad"}}
    return json.dumps({"id": "batch_req_1", "custom_id": request["custom_id"], "response": response, "error": error})


def test_a_batch_out_and_in(server: LanguageModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = judge(server, tmp_path)
    store = made.language_model.store  # type: ignore[union-attr]
    pairs = [pair(n) for n in range(5)]
    made.judge(pairs[:1])
    monkeypatch.setattr(batch_module, "MOST_REQUESTS", 3)
    files = write_batch(made.requests([*pairs, pairs[1]]), store, tmp_path / "out.jsonl")
    assert [f.name for f in files] == ["out.jsonl", "out-2.jsonl"]
    lines = [json.loads(line) for f in files for line in f.read_text().splitlines()]
    assert len(lines) == 4  # one is stored already, one was given twice
    assert {(e["method"], e["url"]) for e in lines} == {("POST", "/v1/chat/completions")}
    assert lines[0]["body"] == made.requests([pairs[1]])[0].body()
    with pytest.raises(FileExistsError, match=r"out\.jsonl is there already"):
        write_batch(made.requests(pairs), store, tmp_path / "out.jsonl")
    good = json.dumps(SCORE_2)
    stranger = {"custom_id": "f" * 64}
    (tmp_path / "in.jsonl").write_text(
        "\n".join(
            [
                *(result_line(e, good) for e in lines[:2]),
                result_line(lines[2], good, status=500),
                result_line(lines[3], good, error={"code": "batch_expired"}),
                result_line(stranger, good),
            ]
        )
    )
    report = read_batch(tmp_path / "in.jsonl", store, "batch")
    assert (report.stored, [k for k, _ in report.failed]) == (2, [lines[2]["custom_id"], lines[3]["custom_id"]])
    assert report.unknown == ["f" * 64]
    assert "batch_expired" in report.failed[1][1]
    again = read_batch(tmp_path / "in.jsonl", store, "batch")
    assert (again.stored, again.unknown) == (0, ["f" * 64])
    asked = len(server.counts.requests)
    found = made.judge(pairs)
    assert [j.score for j in found[1:3]] == [2, 2]
    assert len(server.counts.requests) == asked + 2  # the two that failed
    (tmp_path / "bad.jsonl").write_text('{"custom_id": "a"}\nnot json\n')
    with pytest.raises(ValueError, match=r"bad.jsonl, line 2: not a line of a batch result file"):
        read_batch(tmp_path / "bad.jsonl", store, "batch")


def test_nothing_to_send_writes_no_file(server: LanguageModelServer, tmp_path: Path) -> None:
    made = judge(server, tmp_path, sampling=Sampling(max_tokens=50))
    made.judge([pair()])
    assert write_batch(made.requests([pair()]), made.language_model.store, tmp_path / "o.jsonl") == []  # type: ignore[union-attr]
    assert not (tmp_path / "o.jsonl").exists()
