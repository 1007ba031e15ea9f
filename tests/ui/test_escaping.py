"""What a model writes is shown, and never becomes markup."""

import re

import pytest

from app.store.queries.rows import CompletionRow, GroupRow, ImageRow, RewardRow, SampleRow
from app.ui.completions import listed

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</pre><iframe src=//evil></iframe>",
    '"><svg/onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "&lt;script&gt; stays as written",
    "![](http://evil/leak)",
]


def group(text: str) -> GroupRow:
    reward = RewardRow(text, 1.0, text, text)
    completion = CompletionRow(1, 1, 1, 1, 0, text, False, 3, "stop", 1.0, 0.5, [reward])
    sample = SampleRow(1, "k", 0, [{"role": text, "content": text}], {"answer": text}, [ImageRow("a" * 64, 64, 48, 0)])
    return GroupRow(1, 1, 1, sample, [completion], 1.0, 0.0, False)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_tag_and_no_attribute(text):
    plain, hostile = listed([group("harmless")]), listed([group(text)])
    tags = re.compile(r"</?[a-zA-Z][^\s>/]*")
    assert tags.findall(hostile) == tags.findall(plain)
    assert hostile.count('"') == plain.count('"')
    assert "alert(1)>" not in hostile


def test_a_group_shows_everything_about_its_completions():
    html = listed([group("red")])
    assert f'src="/media/{"a" * 64}/thumb"' in html
    assert 'width="64" height="48"' in html
    assert "+0.50" in html
    assert "3 tokens" in html
    assert "stop" in html


def test_a_group_without_signal_says_so():
    row = group("red")
    quiet = GroupRow(1, 1, 1, row.sample, row.completions, 1.0, 0.0, True)
    assert "no signal" in listed([quiet])
    assert "no signal" not in listed([row])
