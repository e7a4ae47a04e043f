"""The texts of the audit trail."""

WORDS = {
    "audit.title": ("Audit", "Audit"),
    "audit.hint": ("Who changed what, when and why.", "Wer was wann und warum geändert hat."),
    "audit.everywhere": (
        "This is the audit trail of the installation itself. Choose an org to see its own.",
        "Das ist das Audit-Protokoll der Installation selbst. Für das einer Organisation wählen Sie diese.",
    ),
    "audit.none": ("No entry fits.", "Kein Eintrag passt."),
    "audit.short": (
        "So far nothing else fits. There may be older entries that do.",
        "Bis hierher passt sonst nichts. Es kann ältere Einträge geben, die passen.",
    ),
    "audit.actor": ("Who", "Wer"),
    "audit.action": ("Action", "Vorgang"),
    "audit.target": ("What", "Was"),
    "audit.since": ("From (UTC)", "Von (UTC)"),
    "audit.until": ("Before (UTC)", "Vor (UTC)"),
    "audit.show": ("Show", "Anzeigen"),
    "audit.when": ("When", "Wann"),
    "audit.reason": ("Reason", "Grund"),
    "audit.detail": ("Detail", "Einzelheiten"),
    "audit.request": ("Request", "Anfrage"),
    "audit.correlation": ("Correlation", "Zusammenhang"),
    "audit.entry": ("Entry", "Eintrag"),
    "audit.verify": ("Verify the trail", "Protokoll prüfen"),
    "audit.verify.hint": (
        "Every entry is compared with its seal, and every seal with the one before. A job does it.",
        "Jeder Eintrag wird mit seinem Siegel verglichen, jedes Siegel mit dem davor. Ein Auftrag tut das.",
    ),
    "audit.verify.expect": (
        "A head kept elsewhere, if there is one",
        "Ein anderswo bewahrter Kopf, falls vorhanden",
    ),
    "audit.verifying": ("The trail is being verified.", "Das Protokoll wird geprüft."),
    "audit.verification": ("Verification", "Prüfung"),
    "audit.ok": (
        "Nothing was changed: all {sealed} sealed entries are as they were written.",
        "Nichts wurde verändert: Alle {sealed} versiegelten Einträge sind, wie sie geschrieben wurden.",
    ),
    "audit.broken": (
        "The trail was changed after it was sealed.",
        "Das Protokoll wurde nach dem Versiegeln verändert.",
    ),
    "audit.failed": ("It could not be verified: {error}", "Es konnte nicht geprüft werden: {error}"),
    "audit.seals": ("Seals", "Siegel"),
    "audit.sealed": ("Sealed entries", "Versiegelte Einträge"),
    "audit.unsealed": ("Not sealed yet", "Noch nicht versiegelt"),
    "audit.gone": ("No longer kept", "Nicht mehr aufbewahrt"),
    "audit.head": ("Head", "Kopf"),
    "audit.head.hint": (
        "Keep it elsewhere, and expect it next time: a trail that was cut off is found by it.",
        "Bewahren Sie ihn anderswo auf, und erwarten Sie ihn nächstes Mal: So fällt ein gekürztes auf.",
    ),
    "audit.problem.seal": ("Seal", "Siegel"),
    "audit.problem.kind": ("What is wrong", "Was nicht stimmt"),
    "audit.job": ("Its job", "Ihr Auftrag"),
}
