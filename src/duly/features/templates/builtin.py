"""The built-in templates, in German and English; templates of an org take precedence.

Values of jobs: `job_id`, `job_type`, `subject_id`, `status`, `outcome`, `error_code`, `finished_at`; also
`job_url`, if the public URL of the service is set.
Values of alerts: `kind`, `target`, `severity`, `summary`, `measured`, `threshold`, `fired_at`, `resolved_at`.
Values of webhook endpoints: `endpoint_id`, `url`, `reason`, `disabled_at`.
"""

from __future__ import annotations

from types import MappingProxyType

from duly.features.templates.models import MessageText

_JOB_FACTS_DE = """{% if job_id %}Auftrag: {{ job_id }}
{% endif %}{% if subject_id %}Betreff: {{ subject_id }}
{% endif %}{% if finished_at %}Beendet: {{ finished_at|datetime }}
{% endif %}{% if error_code %}Fehler: {{ error_code }}
{% endif %}{% if job_url %}
{{ job_url }}
{% endif %}"""
_JOB_FACTS_EN = """{% if job_id %}Job: {{ job_id }}
{% endif %}{% if subject_id %}Subject: {{ subject_id }}
{% endif %}{% if finished_at %}Finished: {{ finished_at|datetime }}
{% endif %}{% if error_code %}Error: {{ error_code }}
{% endif %}{% if job_url %}
{{ job_url }}
{% endif %}"""
# Summaries are English, as logs and the command line are: German mail has its own.
_SUMMARY_DE = """{% if kind == 'queue_depth' %}Zu viele Aufträge warten in {{ target }}\
{% elif kind == 'oldest_age' %}Ein Auftrag in {{ target }} wartet zu lange\
{% elif kind == 'dead_rate' %}Zu viele neue Dead Letters innerhalb einer Stunde\
{% elif kind == 'no_worker' %}Kein Worker sendet Heartbeats\
{% elif kind == 'stale_runs' %}Verwaiste Aufträge wurden nicht korrigiert\
{% elif kind == 'relay_lag' %}Ereignisse werden zu spät zugestellt\
{% else %}{{ summary }}{% endif %}"""
_SEVERITY_DE = "{% if severity == 'critical' %}kritisch{% else %}Warnung{% endif %}"
_UNIT = "{% if kind in ['oldest_age', 'no_worker', 'relay_lag'] %} s{% endif %}"


def _alert_facts(kind: str, about: str, measured: str, threshold: str, since: str) -> str:
    return (
        f"{kind}: {{{{ kind }}}}\n{about}: {{{{ target }}}}\n"
        f"{{% if measured is not none %}}{measured}: {{{{ measured|number(0) }}}}{_UNIT}"
        f"{{% if threshold is not none %}} ({threshold} {{{{ threshold|number(0) }}}}{_UNIT}){{% endif %}}\n"
        f"{{% endif %}}{since}: {{{{ fired_at|datetime }}}}\n"
    )


_ALERT_FACTS_DE = _alert_facts("Art", "Ziel", "Gemessen", "Schwelle", "Seit")
_ALERT_FACTS_EN = _alert_facts("Kind", "Target", "Measured", "threshold", "Since")


def _job_template(german: str, english: str, de: str, en: str) -> dict[str, MessageText]:
    return {
        "de": MessageText(f"{{{{ job_type }}}} {german}", f"{de}\n\n{_JOB_FACTS_DE}"),
        "en": MessageText(f"{{{{ job_type }}}} {english}", f"{en}\n\n{_JOB_FACTS_EN}"),
    }


BUILTIN_TEMPLATES = MappingProxyType(
    {
        "job.completed": _job_template(
            "wurde erfolgreich beendet",
            "succeeded",
            "Der Auftrag {{ job_type }} wurde erfolgreich beendet"
            "{% if outcome == 'partially_succeeded' %}, aber einzelne Teile sind fehlgeschlagen{% endif %}.",
            "The job {{ job_type }} succeeded"
            "{% if outcome == 'partially_succeeded' %}, but some of its parts failed{% endif %}.",
        ),
        "job.failed": _job_template(
            "ist fehlgeschlagen",
            "failed",
            "Der Auftrag {{ job_type }} ist fehlgeschlagen.",
            "The job {{ job_type }} failed.",
        ),
        "job.dead": _job_template(
            "ist endgültig fehlgeschlagen",
            "failed for good",
            "Der Auftrag {{ job_type }} ist nach allen Versuchen fehlgeschlagen und jetzt ein Dead Letter: "
            "Wiederholen oder verwerfen Sie ihn.",
            "The job {{ job_type }} failed after all attempts and is now a dead letter: "
            "replay or discard it.",
        ),
        "job.canceled": _job_template(
            "wurde abgebrochen",
            "was canceled",
            "Der Auftrag {{ job_type }} wurde abgebrochen.",
            "The job {{ job_type }} was canceled.",
        ),
        "alert.firing": {
            "de": MessageText(f"[{_SEVERITY_DE}] {_SUMMARY_DE}", f"{_SUMMARY_DE}.\n\n{_ALERT_FACTS_DE}"),
            "en": MessageText("[{{ severity }}] {{ summary }}", f"{{{{ summary }}}}\n\n{_ALERT_FACTS_EN}"),
        },
        "alert.resolved": {
            "de": MessageText(
                f"[behoben] {_SUMMARY_DE}",
                f"Behoben: {_SUMMARY_DE}.\n\n{_ALERT_FACTS_DE}Bis: {{{{ resolved_at|datetime }}}}\n",
            ),
            "en": MessageText(
                "[resolved] {{ summary }}",
                f"Resolved: {{{{ summary }}}}\n\n{_ALERT_FACTS_EN}Until: {{{{ resolved_at|datetime }}}}\n",
            ),
        },
        "webhook.disabled": {
            "de": MessageText(
                "Webhook deaktiviert",
                "Der Webhook {{ endpoint_id }} wurde deaktiviert.\n\n"
                "Adresse: {{ url }}\nGrund: {{ reason }}\nSeit: {{ disabled_at|datetime }}\n",
            ),
            "en": MessageText(
                "Webhook disabled",
                "The webhook {{ endpoint_id }} was disabled.\n\n"
                "Address: {{ url }}\nReason: {{ reason }}\nSince: {{ disabled_at|datetime }}\n",
            ),
        },
    }
)
"""The built-in templates by key, then by locale."""
