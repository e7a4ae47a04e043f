"""Templates are not trusted: they render their payload, and can do nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from duly.core.errors import ContractError
from duly.features.templates.builtin import BUILTIN_TEMPLATES
from duly.features.templates.engine import check, render
from duly.features.templates.filters import MAX_TEXT_LENGTH
from duly.features.templates.models import MessageText

JOB = {
    "job_id": "0198c7a0-0000-7000-8000-000000000001",
    "job_type": "report.build",
    "subject_id": None,
    "status": "failed",
    "outcome": "failed",
    "error_code": "io.lost",
    "finished_at": "2026-03-17T08:15:00Z",
    "job_url": "",
}
ALERT = {
    "kind": "queue_depth",
    "target": "q:default",
    "severity": "warning",
    "summary": "too much waits",
    "measured": 1234.5,
    "threshold": 100,
    "fired_at": "2026-03-17T08:15:00Z",
    "resolved_at": "2026-03-17T09:15:00Z",
    "endpoint_id": "e1",
    "url": "https://example.com",
    "reason": "it failed for days",
    "disabled_at": "2026-03-17T08:15:00Z",
}


def render_body(
    body: str, payload: dict[str, Any] | None = None, locale: str = "en", *, strict: bool = False
) -> str:
    return render(MessageText("s", body), payload or {}, locale, strict=strict).body


def test_built_in_templates_use_documented_values_only() -> None:
    for key, locales in BUILTIN_TEMPLATES.items():
        assert set(locales) == {"de", "en"}
        for locale, text in locales.items():
            check(text)
            payload = JOB if key.startswith("job.") else ALERT
            subject, body = render(text, payload, locale, strict=True)
            assert subject
            assert "{" not in body
            assert "\n\n\n" not in body


def test_a_message_is_formatted_for_the_locale_of_its_recipient() -> None:
    german = render(BUILTIN_TEMPLATES["job.failed"]["de"], JOB, "de-AT")
    assert german.subject == "report.build ist fehlgeschlagen"
    assert "Beendet: 17.03.2026, 08:15 UTC" in german.body
    assert "17 March 2026, 08:15 UTC" in render(BUILTIN_TEMPLATES["job.failed"]["en"], JOB, "en").body
    figures = {"n": 1234567, "x": 0.5, "at": "2026-03-17T23:30:00Z"}
    text = "{{ n|number }} {{ x|number }} {{ x|number(0) }} {{ at|date('Europe/Berlin') }}"
    assert render_body(text, figures, "de") == "1.234.567 0,50 0 18.03.2026"
    assert render_body(text, figures, "en") == "1,234,567 0.50 0 18 March 2026"


def test_a_template_may_use_values_conditions_and_one_level_of_loops() -> None:
    payload = {"name": "Ann", "rows": [{"n": 1}, {"n": 2}], "items": "mine", "none": None}
    text = (
        "{% for row in rows %}{{ loop.index }}:{{ row.n }}{% if not loop.last %}, {% endif %}{% endfor %} "
        "{{ name|upper if name == 'Ann' and rows|length > 1 else 'x' }} {{ items }}{{ none }} "
        "{{ rows[1]['n'] }} "
        "{% if 'An' in name and none is none %}{{ 'a' ~ name }}{% elif name %}no{% else %}no{% endif %}"
    )
    assert render_body(text, payload, strict=True) == "1:1, 2:2 ANN mine 2 aAnn"


def test_a_missing_value_is_an_error_in_a_preview_and_empty_in_a_message() -> None:
    for text in ("{{ customer }}", "{{ customer.name|upper }}", "{% for x in customer %}{% endfor %}"):
        with pytest.raises(ContractError, match="'customer' is undefined"):
            render_body(f"a{text}", strict=True)
        assert render_body(f"a{text}") == "a"
    with pytest.raises(ContractError, match="'nane' is missing"):
        render_body("{{ customer.nane }}", {"customer": {}}, strict=True)
    assert render_body("{{ customer.name|default('-') }}", strict=True) == "-"


@pytest.mark.parametrize(
    "hostile",
    [
        "{{ ''.__class__ }}",
        "{{ x['__class__'].__mro__ }}",
        "{{ x.items() }}",
        "{{ x|attr('__class__') }}",
        "{{ '%s'|format(x) }}",
        "{{ x|map('upper') }}",
        "{{ range(10) }}",
        "{{ lipsum }}{{ lipsum.__globals__ }}",
        "{{ self }}",
        "{{ loop.changed }}",
        "{{ _deadline }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 'a' * 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ x + x }}",
        "{{ x[1:2] }}",
        "{{ -x }}",
        "{% set x = 1 %}",
        "{% macro m() %}{% endmacro %}",
        "{% include 'a' %}",
        "{% import 'a' as b %}",
        "{% extends 'a' %}",
        "{% block b %}{% endblock %}",
        "{% filter upper %}a{% endfilter %}",
        "{% with a = 1 %}{% endwith %}",
        "{% for a in x %}{% for b in x %}{% endfor %}{% endfor %}",
        "{% for a in x recursive %}{{ loop(a) }}{% endfor %}",
        "{% for a in [1, 2] %}{% endfor %}",
        "{% for a in x if a %}{% endfor %}",
        "{{ " + "(" * 5_000 + "x" + ")" * 5_000 + " }}",
        "{{ " + "not " * 200 + "x }}",
        "{{ x }}" * 2_000,
        "{% if x %}" * 60 + "{% endif %}" * 60,
        "{{ " + "9" * 5_000 + " }}",
        "{{ " + "9" * 400 + " }}",
        "{{ 1e999|upper }}",
        "{{ x == -1e999 }}",
        "{{ " + "~".join(["x"] * 101) + " }}",
        "{{ x",
        "{% if x %}",
        "a" * 40_000,
    ],
)
def test_forbidden_syntax_is_refused_when_the_template_is_set(hostile: str) -> None:
    with pytest.raises(ContractError) as refused:
        check(MessageText("s", hostile))
    assert refused.value.field == "body"


def test_values_have_items_and_no_attributes() -> None:
    payload = {"x": {"a": [1]}, "s": "text"}
    for text in ("{{ x.items }}", "{{ x.a.append }}", "{{ s.upper }}", "{{ s[0] }}", "{{ x['__class__'] }}"):
        assert render_body(text, payload) == ""
        with pytest.raises(ContractError):
            render_body(text, payload, strict=True)


def test_templates_are_limited_in_time_and_length() -> None:
    large = {"x": "ä" * 10_000, "xs": ["y"] * 10_000}
    heavy = "{% for y in xs %}" + "{% if (x ~ y)|title == '' %}{% endif %}" * 200 + "{% endfor %}"
    check(MessageText("s", heavy))
    began = time.thread_time()
    with pytest.raises(ContractError, match="takes too long"):
        render_body(heavy, large)
    assert time.thread_time() - began < 2
    costly = "{% if xs ~ xs ~ xs %}{% endif %}" * 380
    check(MessageText("s", costly))
    began = time.thread_time()
    with pytest.raises(ContractError, match="takes too long"):
        render_body(costly, {"xs": [["a", "b"]] * 1_000})
    assert time.thread_time() - began < 1
    for flood in (
        "{% for y in xs %}{{ x }}{% endfor %}",
        "{{ x ~ x ~ x ~ x ~ x ~ x ~ x }}",
        "{{ xs|join(x) }}",
    ):
        assert len(render_body(flood, large)) == MAX_TEXT_LENGTH
    assert render_body("{% for y in xs %}.{% endfor %}", large) == "." * 1_000


def test_a_subject_is_one_line() -> None:
    text = MessageText("{{ a }}\r\nBcc: x@example.com\n{{ b }}", "")
    subject = render(text, {"a": "one\ntwo", "b": "y" * 300}, "en").subject
    assert subject.startswith("one two Bcc: x@example.com yyy")
    assert len(subject) == 200


def test_a_template_that_fails_on_its_payload_names_the_error() -> None:
    with pytest.raises(ContractError, match="'<' not supported"):
        render_body("{{ a < b }}", {"a": 1, "b": "x"})
    odd = {"a": "x", "b": None, "c": {"k": "ü"}, "d": True}
    assert render_body("{{ '' ~ b ~ c ~ d }}", odd) == '{"k": "ü"}true'
    assert (
        render_body("{{ a|round }} {{ a|number }} {{ b|date }}|{{ c }}|{{ d }}", odd)
        == 'x x |{"k": "ü"}|true'
    )
    assert render_body("\N{ZERO WIDTH SPACE}{{ a }}", {"a": "\ud800"}).endswith("\N{REPLACEMENT CHARACTER}")
