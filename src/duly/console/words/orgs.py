"""The texts of the orgs' page."""

WORDS = {
    "orgs.title": ("Orgs", "Organisationen"),
    "orgs.active": ("Active now", "Jetzt aktiv"),
    "orgs.all": ("All", "Alle"),
    "orgs.hint": (
        "{running} of {slots} slots are taken; orgs that want some: {active}",
        "{running} von {slots} Plätzen sind belegt; Organisationen, die welche wollen: {active}",
    ),
    "orgs.fair": (
        "A fair share is {part} % each, {slots} slots; the mark in the bars is there.",
        "Ein fairer Anteil sind je {part} %, {slots} Plätze; dort ist der Strich in den Balken.",
    ),
    "orgs.shorts": ("Waiting below their share: {n}", "Wartend unter ihrem Anteil: {n}"),
    "orgs.more": (
        "There are more; those that wait are shown first.",
        "Es gibt mehr; zuerst sind die gezeigt, die warten.",
    ),
    "orgs.none": (
        "No org has jobs running or waiting.",
        "Keine Organisation hat laufende oder wartende Aufträge.",
    ),
    "orgs.col.name": ("Org", "Organisation"),
    "orgs.col.share": ("Share of the workers", "Anteil an den Workern"),
    "orgs.col.running": ("Running", "In Arbeit"),
    "orgs.col.waiting": ("Waiting", "Wartend"),
    "orgs.col.oldest": ("Oldest wait", "Längste Wartezeit"),
    "orgs.col.limits": ("Limits", "Grenzen"),
    "orgs.share": (
        "{part} % of the slots, {fair} % would be fair",
        "{part} % der Plätze, fair wären {fair} %",
    ),
    "orgs.short": ("below its share", "unter seinem Anteil"),
    "orgs.suspended": ("suspended", "gesperrt"),
    "orgs.paused": ("paused", "angehalten"),
    "orgs.full": ("at its limit", "an ihrer Grenze"),
    "orgs.limit.running": ("{n} running", "{n} laufend"),
    "orgs.limit.starts": ("{n} starts/s", "{n} Starts/s"),
    "orgs.limit.waiting": ("{n} waiting", "{n} wartend"),
    "orgs.jobs": ("Jobs", "Aufträge"),
}
