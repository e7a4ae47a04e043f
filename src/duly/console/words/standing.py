"""The texts of how documents stand."""

WORDS = {
    "standing.hint": (
        "What waits for somebody, what is read, what is kept.",
        "Was auf jemanden wartet, was gelesen und was aufbewahrt wird.",
    ),
    "standing.everywhere": (
        "These are documents of the installation itself. Choose an org to see how its own stand.",
        "Das sind Dokumente der Installation selbst. Wählen Sie eine Organisation, um ihre zu sehen.",
    ),
    "standing.review": ("Wait for review", "Warten auf Durchsicht"),
    "standing.review.go": ("Review them", "Durchsehen"),
    "standing.reading": ("Being read", "Werden gelesen"),
    "standing.failed": ("Failed (7 days)", "Fehlgeschlagen (7 Tage)"),
    "standing.needs_ocr": ("Need OCR (7 days)", "Brauchen Texterkennung (7 Tage)"),
    "standing.done": ("Read (7 days)", "Gelesen (7 Tage)"),
    "standing.documents": ("Documents", "Dokumente"),
    "standing.bytes": ("Stored", "Gespeichert"),
    "standing.of": ("{part} of {whole}", "{part} von {whole}"),
    "standing.search": ("Search in documents", "In Dokumenten suchen"),
    "standing.search.go": ("Search", "Suchen"),
    "standing.pages": ("All documents", "Alle Dokumente"),
    "standing.lately": (
        "Under way, and what did not end well lately",
        "Unterwegs, und was zuletzt nicht gut endete",
    ),
    "standing.lately.none": (
        "Nothing is being read, and nothing went wrong.",
        "Nichts wird gelesen, und nichts ging schief.",
    ),
    "standing.name": ("Document", "Dokument"),
    "standing.status": ("Status", "Status"),
    "standing.engine": ("Engine", "Verfahren"),
    "standing.at": ("When", "Wann"),
    "standing.job": ("Job", "Auftrag"),
    "standing.error": ("Error", "Fehler"),
    "standing.status.queued": ("waiting", "wartet"),
    "standing.status.running": ("being read", "wird gelesen"),
    "standing.status.failed": ("failed", "fehlgeschlagen"),
    "standing.status.needs_ocr": ("needs OCR", "braucht Texterkennung"),
    "standing.status.blocked": ("blocked", "gesperrt"),
}
