import pytest

from tailcut.cli.common import key_and_value


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("traffic.load=0.3", "traffic.load", "0.3"),
        ("a = b = c", "a", "b = c"),
        ('schemes."N=4".x=9packets', 'schemes."N=4".x', "9packets"),
        ("schemes.'N=4'.x=9packets", "schemes.'N=4'.x", "9packets"),
        (r'"say \"=\"".x=1', r'"say \"=\"".x', "1"),
        ('a="x=1"', "a", '"x=1"'),
        ("it's=3", "it's", "3"),
        ("=3", "", "3"),
        ("traffic.load", "traffic.load", None),
        ('"a=b"', '"a=b"', None),
    ],
)
def test_a_key_ends_at_the_first_equals_sign_outside_of_quotes(text: str, key: str, value: str | None) -> None:
    assert key_and_value(text) == (key, value)
