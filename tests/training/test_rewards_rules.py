"""The rule rewards on single completions, the inputs that published functions get wrong among them."""

import time

import pytest

from training.config import RewardConfig
from training.records import RewardValue
from training.rewards import build_rewards, catalogue

UNSCORED = None


def judge(name: str, completion: str, answer: object = None, *, settings: dict | None = None, **columns) -> RewardValue:
    rewards = build_rewards([RewardConfig(name=name, options=settings or {})], max_error_share=1.0)
    [[value]] = rewards.score(
        prompts=[[]],
        completions=[completion],
        completion_ids=[[]],
        images=[[]],
        columns=[{"answer": answer} | columns],
        step=1,
    )
    assert value.error is None
    return value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        # the right number in the reasoning, a wrong one in the answer
        ("<think>3 + 4 = 7</think><answer>8</answer>", "7", 0),
        ("<think>it is 7</think>", "7", 0),
        # 7.0 for 7; 1,000 for 1000; -3 for 3; 15 for 1.5
        ("7.0", "7", 1),
        ("1,000", "1000", 1),
        ("-3", "3", 0),
        ("15", "1.5", 0),
        # <answer> with newlines inside
        ("<answer>\nred\n</answer>", "red", 1),
        # a gold answer that cannot be read
        ("red", None, UNSCORED),
        ("red", "", UNSCORED),
        ("red", {"label": "red"}, UNSCORED),
        ("red", [], UNSCORED),
        # an empty completion and one that was cut are wrong, not unscored
        ("", "red", 0),
        ("<answer>red", "red", 0),
        ("<think>it is red", "red", 0),
        # two answer blocks: the last one counts
        ("<answer>red</answer><answer>blue</answer>", "blue", 1),
        ("<answer>red</answer><answer>blue</answer>", "red", 0),
        # the template may have opened the reasoning already
        ("hm, red</think>blue", "blue", 1),
        # tag before box before last line
        (r"\boxed{blue} <answer>red</answer>", "red", 1),
        (r"so it is \boxed{\frac{1}{2}}, done", "0.5", 1),
        (r"\boxed{x_{1}}", "x_{1}", 1),
        (r"\boxed{red", "red", 0),
        ("Let me look.\n\nRed.\n", "red", 1),
        ("Red it is\nblue", "red", 0),
        # numbers in other clothes
        ("\u22123", "-3", 1),
        ("\uff17", "7", 1),
        ("5²", "52", 0),
        ("50%", "0.5", 1),
        ("50%", "50", 1),
        ("50%", "5", 0),
        ("1 1/2", "1.5", 1),
        ("3/0", "3", 0),
        ("Seven", "7", 1),
        ("1e3", "1000", 1),
        ("1e999999999", "1", 0),
        ("9" * 5000, "9", 0),
        ("$12$", "12", 1),
        ("0.1", "0.10", 1),
        ("0.30000000000000004", "0.3", 0),
        # a gold answer of another type, or with the tags of published datasets
        ("7", 7, 1),
        ("7", 7.0, 1),
        ("true", True, 1),
        ("3", "<answer> 3 </answer>", 1),
        ("12", r"Thus \boxed{12}", 1),
        # any accepted answer
        ("grey", ["gray", "grey"], 1),
        ("green", ["gray", "grey"], 0),
        # case, width and white space
        ("  dark   RED ", "dark red", 1),
        ("red herring", "red", 0),
    ],
)
def test_accuracy(completion, gold, value):
    assert judge("accuracy", completion, gold).value == value


def test_accuracy_shows_what_it_read():
    assert judge("accuracy", "<think>a</think><answer> Red </answer>", "red").parsed == "Red"
    assert judge("accuracy", "<answer>Red", "red").parsed is None
    assert judge("accuracy", "blue", None).parsed == "blue"


@pytest.mark.parametrize(
    ("completion", "value"),
    [
        ("<answer>red</answer>", 1),
        (" \n<answer>\nred\nor so\n</answer>\n", 1),
        ("<answer>red</answer> text after it", 0),
        ("text before <answer>red</answer>", 0),
        ("<answer>red</answer><answer>red</answer>", 0),
        ("<answer><answer>red</answer></answer>", 0),
        ("<answer> \n </answer>", 0),
        ("<answer>red", 0),
        ("</answer>red<answer>", 0),
        ("<think>x</think><answer>red</answer>", 0),
        ("red", 0),
        ("", 0),
    ],
)
def test_format_answer(completion, value):
    assert judge("format_answer", completion).value == value


@pytest.mark.parametrize(
    ("completion", "value"),
    [
        ("<think>a</think><answer>b</answer>", 1),
        ("\n<think>\na\n\nb\n</think>\n\n<answer>\nc\n</answer>\n", 1),
        ("<think></think><answer>b</answer>", 1),
        ("<think>a</think><answer>b</answer> text after it", 0),
        ("<think>a</think> so <answer>b</answer>", 0),
        ("<answer>b</answer><think>a</think>", 0),
        ("<think>a</think><answer></answer>", 0),
        ("<think>a</think><answer>b</answer><answer>c</answer>", 0),
        ("<think>a<think>b</think><answer>c</answer>", 0),
        ("<think>a <answer>b</answer></think><answer>c</answer>", 0),
        ("<think>a</think><answer>b", 0),
        ("<answer>b</answer>", 0),
        ("", 0),
    ],
)
def test_format_think_answer(completion, value):
    assert judge("format_think_answer", completion).value == value


@pytest.mark.parametrize(
    ("completion", "value"),
    [
        (r"<think>a</think> It is \boxed{7}.", 1),
        (r"<think>\boxed{7}</think> It is 7.", 0),
        (r"\boxed{7}", 0),
        (r"<think>a</think>\boxed{}", 0),
        (r"<think>a</think>\boxed{7", 0),
        (r"hm <think>a</think>\boxed{7}", 0),
        ("", 0),
    ],
)
def test_format_boxed(completion, value):
    assert judge("format_boxed", completion).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        ("7.0", "7", 1),
        ("1,000", "1000", 1),
        ("-3", "3", 0),
        ("15", "1.5", 0),
        ("It is 7.", "7", 1),
        ("Between 2-3", "2", 0),
        ("x = -3", "-3", 1),
        ("7 or 8", "7", 0),
        ("7, so 7", "7", 1),
        ("B12", "12", 0),
        ("1,5", "5", 0),
        ("about 50 %", "0.5", 1),
        ("two or three", "3", 0),
        ("none", "3", 0),
        ("", "3", 0),
        ("3", "red", UNSCORED),
        ("3", None, UNSCORED),
        ("3", "between 3 and 4", UNSCORED),
        ("5", "5 cm", 1),
    ],
)
def test_numeric(completion, gold, value):
    assert judge("numeric", completion, gold).value == value


@pytest.mark.parametrize(
    ("settings", "completion", "value"),
    [
        ({"absolute_tolerance": 0.5}, "10.5", 1),
        ({"absolute_tolerance": 0.5}, "10.51", 0),
        ({"relative_tolerance": 0.1}, "11", 1),
        ({"relative_tolerance": 0.1}, "9", 1),
        ({"relative_tolerance": 0.1}, "11.1", 0),
        ({}, "10.000001", 1),
        ({}, "10.1", 0),
    ],
)
def test_numeric_tolerances_include_their_bound(settings, completion, value):
    assert judge("numeric", completion, "10", settings=settings).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        ("3", "3", 1),
        ("There are three dogs.", 3, 1),
        ("3.0", 3, 1),
        ("3.5", 3, 0),
        ("2 cats and 1 dog", 3, 0),
        ("4", "3", 0),
        ("-3", 3, 0),
        ("", 3, 0),
        ("3", "2.5", UNSCORED),
        ("3", "many", UNSCORED),
    ],
)
def test_counting(completion, gold, value):
    assert judge("counting", completion, gold).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        ("B", "B", 1),
        ("(B)", "B", 1),
        ("B.", "B", 1),
        ("b", "B", 1),
        ("B: the dog", "B", 1),
        ("(B) Vitamin C", "B", 1),
        ("The answer is (B).", "(B)", 1),
        ("<think>A or C</think><answer>B</answer>", "B", 1),
        ("Banana", "B", 0),
        ("A and B", "B", 0),
        ("A and B", "A", 0),
        ("A, B", "B", 0),
        ("(A) or (B)", "A", 0),
        ("A. B. C. D.", "A", 0),
        ("A: or B", "A", 0),
        ("A dog", "A", 0),
        ("Option A is right", "A", 1),
        ("I think it is C", "C", 1),
        ("", "B", 0),
        ("B", "banana", UNSCORED),
        ("B", "A or B", UNSCORED),
        ("B", None, UNSCORED),
    ],
)
def test_choice_by_letter(completion, gold, value):
    assert judge("choice", completion, gold).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        ("dog", "B", 1),
        ("Dog.", "B", 1),
        ("cat", "B", 0),
        ("B. dog", "B", 1),
        ("B. cat", "B", 0),
        ("B", "dog", 1),
        ("a dog", "B", 0),
        ("same", "C", 0),
        ("dog", "none of these", UNSCORED),
    ],
)
@pytest.mark.parametrize("column", ["options", "choices"])
@pytest.mark.parametrize(
    "options",
    [
        ["cat", "dog", "same", "same"],
        ["A. cat", "B. dog", "C. same", "D. same"],
        {"A": "cat", "B": "dog", "C": "same", "D": "same"},
    ],
)
def test_choice_by_the_text_of_an_option(completion, gold, value, column, options):
    assert judge("choice", completion, gold, **{column: options}).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        ("unknown", "no", 0),
        ("perhaps", "unclear", UNSCORED),
        ("yes", "unclear", UNSCORED),
        ("No.", "no", 1),
        ("Yes, it is.", "yes", 1),
        ("yesterday", "yes", 0),
        ("yes and no", "yes", 0),
        ("yes and no", "no", 0),
        ("yes", True, 1),
        ("yes", False, 0),
        ("<think>no</think>yes", "yes", 1),
        ("", "no", 0),
    ],
)
def test_yes_no(completion, gold, value):
    assert judge("yes_no", completion, gold).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        (" STOP\n", "stop", 1),
        ("<answer>Stop</answer>", "stop", 1),
        ("two\nlines", "Two\nlines", 1),
        ("two\nlines", "lines", 0),
        ("7.0", "7", 0),
        ("", "", 1),
        ("stop", None, UNSCORED),
        ("go", ["stop", "go"], 1),
    ],
)
def test_exact_text(completion, gold, value):
    assert judge("exact_text", completion, gold).value == value


@pytest.mark.parametrize(
    ("completion", "gold", "value"),
    [
        ("kitten", "sitting", 1 - 3 / 7),
        ("Flaw", "lawn", 0.5),
        ("stop", "STOP", 1),
        ("", "abc", 0),
        ("", "", 1),
        ("stop", None, UNSCORED),
        ("<answer>abcd</answer>", ["zzzz", "abcx"], 0.75),
    ],
)
def test_fuzzy_text(completion, gold, value):
    assert judge("fuzzy_text", completion, gold).value == value


def test_every_entry_has_a_summary_and_scores_what_it_is_given():
    for info in catalogue():
        assert info.summary.endswith(".")
        assert judge(info.name, "<think>x</think><answer>no</answer>", "no").name == info.name


HOSTILE = [
    "<answer>" * 20_000,
    "</think><answer>" * 10_000,
    "<think>" * 20_000 + "</think>" * 20_000,
    "\\boxed{" * 20_000,
    "1," * 50_000,
    "A. " * 30_000,
    " " * 100_000 + "x",
    "9/" * 50_000,
]


@pytest.mark.parametrize("name", [info.name for info in catalogue()])
def test_no_completion_takes_long(name):
    start = time.process_time()
    for completion in HOSTILE:
        judge(name, completion, "7")
    assert time.process_time() - start < 5
