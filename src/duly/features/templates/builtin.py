"""The words that come with Duly, in German and English; an org's own words win over them.

Of jobs: `job_id`, `job_type`, `subject_id`, `status`, `outcome`, `error_code`, `finished_at`.
Of alerts: `kind`, `target`, `severity`, `summary`, `measured`, `threshold`, `fired_at`, `resolved_at`.
Of endpoints: `endpoint_id`, `url`, `reason`, `disabled_at`.
What is about a job has its `job_url`, too, if the installation says where its service is.
"""

from __future__ import annotations

from types import MappingProxyType

from duly.features.templates.lazy import Words

_ABOUT_DE = """{% if job_id %}Auftrag: {{ job_id }}
{% endif %}{% if subject_id %}Betrifft: {{ subject_id }}
{% endif %}{% if finished_at %}Beendet: {{ finished_at|datetime }}
{% endif %}{% if error_code %}Fehler: {{ error_code }}
{% endif %}{% if job_url %}
{{ job_url }}
{% endif %}"""
_ABOUT_EN = """{% if job_id %}Job: {{ job_id }}
{% endif %}{% if subject_id %}About: {{ subject_id }}
{% endif %}{% if finished_at %}Ended: {{ finished_at|datetime }}
{% endif %}{% if error_code %}Error: {{ error_code }}
{% endif %}{% if job_url %}
{{ job_url }}
{% endif %}"""
# A summary is English, as the log and the command line are: German mail says it anew.
_SUMMARY_DE = """{% if kind == 'queue_depth' %}Zu viele Aufträge warten in {{ target }}\
{% elif kind == 'oldest_age' %}Ein Auftrag in {{ target }} wartet zu lange\
{% elif kind == 'dead_rate' %}Zu viele Aufträge sind binnen einer Stunde endgültig fehlgeschlagen\
{% elif kind == 'no_worker' %}Kein Worker meldet sich\
{% elif kind == 'stale_runs' %}Aufträge geben kein Lebenszeichen, und niemand bereinigt sie\
{% elif kind == 'relay_lag' %}Ereignisse werden zu spät weitergegeben\
{% else %}{{ summary }}{% endif %}"""
_SEVERITY_DE = "{% if severity == 'critical' %}kritisch{% else %}Warnung{% endif %}"
_UNIT = "{% if kind in ['oldest_age', 'no_worker', 'relay_lag'] %} s{% endif %}"


def _figures(kind: str, about: str, measured: str, threshold: str, since: str) -> str:
    return (
        f"{kind}: {{{{ kind }}}}\n{about}: {{{{ target }}}}\n"
        f"{{% if measured is not none %}}{measured}: {{{{ measured|number(0) }}}}{_UNIT}"
        f"{{% if threshold is not none %}} ({threshold} {{{{ threshold|number(0) }}}}{_UNIT}){{% endif %}}\n"
        f"{{% endif %}}{since}: {{{{ fired_at|datetime }}}}\n"
    )


_FIGURES_DE = _figures("Art", "Betrifft", "Gemessen", "Schwelle", "Seit")
_FIGURES_EN = _figures("Kind", "About", "Measured", "threshold", "Since")


def _job(german: str, english: str, de: str, en: str) -> dict[str, Words]:
    return {
        "de": Words(f"{{{{ job_type }}}} {german}", f"{de}\n\n{_ABOUT_DE}"),
        "en": Words(f"{{{{ job_type }}}} {english}", f"{en}\n\n{_ABOUT_EN}"),
    }


BUILT_IN = MappingProxyType(
    {
        "job.completed": _job(
            "ist fertig",
            "is done",
            "Der Auftrag {{ job_type }} ist fertig"
            "{% if outcome == 'partially_succeeded' %}, aber einzelne Teile sind fehlgeschlagen{% endif %}.",
            "The job {{ job_type }} is done"
            "{% if outcome == 'partially_succeeded' %}, but some of its parts have failed{% endif %}.",
        ),
        "job.failed": _job(
            "ist fehlgeschlagen",
            "has failed",
            "Der Auftrag {{ job_type }} ist fehlgeschlagen.",
            "The job {{ job_type }} has failed.",
        ),
        "job.dead": _job(
            "ist endgültig fehlgeschlagen",
            "has failed for good",
            "Der Auftrag {{ job_type }} ist nach allen Versuchen fehlgeschlagen "
            "und wartet auf eine Entscheidung.",
            "The job {{ job_type }} has failed after all its attempts, and waits for somebody to decide.",
        ),
        "job.canceled": _job(
            "wurde abgebrochen",
            "was canceled",
            "Der Auftrag {{ job_type }} wurde abgebrochen.",
            "The job {{ job_type }} was canceled.",
        ),
        "alert.firing": {
            "de": Words(f"[{_SEVERITY_DE}] {_SUMMARY_DE}", f"{_SUMMARY_DE}.\n\n{_FIGURES_DE}"),
            "en": Words("[{{ severity }}] {{ summary }}", f"{{{{ summary }}}}\n\n{_FIGURES_EN}"),
        },
        "alert.resolved": {
            "de": Words(
                f"[vorbei] {_SUMMARY_DE}",
                f"Vorbei; es war: {_SUMMARY_DE}.\n\n{_FIGURES_DE}Bis: {{{{ resolved_at|datetime }}}}\n",
            ),
            "en": Words(
                "[resolved] {{ summary }}",
                f"It is over; it was: {{{{ summary }}}}\n\n{_FIGURES_EN}"
                "Until: {{ resolved_at|datetime }}\n",
            ),
        },
        "webhook.disabled": {
            "de": Words(
                "Webhook abgeschaltet",
                "Der Webhook {{ endpoint_id }} wurde abgeschaltet.\n\n"
                "Adresse: {{ url }}\nGrund: {{ reason }}\nSeit: {{ disabled_at|datetime }}\n",
            ),
            "en": Words(
                "Webhook disabled",
                "The webhook {{ endpoint_id }} was disabled.\n\n"
                "Address: {{ url }}\nReason: {{ reason }}\nSince: {{ disabled_at|datetime }}\n",
            ),
        },
    }
)
"""By key, then by locale."""
