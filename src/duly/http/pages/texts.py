"""Every text of the pages, English and German side by side. `{name}` is filled in by the page."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from duly.http.pages.analysis_texts import ANALYSIS
from duly.http.pages.document_texts import DOCUMENTS
from duly.http.pages.managing_texts import MANAGING
from duly.http.pages.reading_texts import READING

LANGUAGES = ("en", "de")


class Text(NamedTuple):
    """One text in each language."""

    en: str
    de: str


_TEXTS = {
    "language": ("English", "Deutsch"),
    "skip": ("Skip to the content", "Zum Inhalt springen"),
    "noscript": (
        "This page needs JavaScript. The API works without: see /openapi.json.",
        "Diese Seite braucht JavaScript. Die API geht auch ohne: siehe /openapi.json.",
    ),
    "nav.label": ("Main menu", "Hauptmenü"),
    "nav.submit": ("New job", "Neuer Auftrag"),
    "nav.jobs": ("Jobs", "Aufträge"),
    "nav.console": ("Console", "Konsole"),
    "nav.logout": ("Log out", "Abmelden"),
    "footer": ("Every job, duly done.", "Jeder Auftrag, ordentlich erledigt."),
    # Logging in
    "login.title": ("Log in", "Anmelden"),
    "login.credential": ("API key or token", "API-Schlüssel oder Token"),
    "login.hint": (
        "Keys begin with duly_. Yours is sent to this server once and not kept in the browser; "
        "you stay logged in for 12 hours.",
        "Schlüssel beginnen mit duly_. Ihrer geht einmal an diesen Server und bleibt nicht im Browser; "
        "Sie bleiben 12 Stunden angemeldet.",
    ),
    "login.button": ("Log in", "Anmelden"),
    "login.brought": (
        "This link brings a key. Log in with it?",
        "Dieser Link bringt einen Schlüssel mit. Damit anmelden?",
    ),
    "login.already": (
        "You are already logged in.",
        "Sie sind bereits angemeldet.",
    ),
    "login.already.org": (
        "You are already logged in, for the org “{org}”.",
        "Sie sind bereits angemeldet, für die Organisation „{org}“.",
    ),
    "login.change": (
        "If you log in with another key, you will work in the org of that key.",
        "Melden Sie sich mit einem anderen Schlüssel an, arbeiten Sie in dessen Organisation weiter.",
    ),
    "login.busy": ("Logging in …", "Anmeldung läuft …"),
    "login.unknown": (
        "This key or token is not known, or it has ended.",
        "Dieser Schlüssel oder Token ist unbekannt oder abgelaufen.",
    ),
    "login.wait": (
        "Too many attempts. Try again in a moment.",
        "Zu viele Versuche. Bitte gleich noch einmal.",
    ),
    "login.sso": ("Log in with {label}", "Mit {label} anmelden"),
    "login.or": ("or with a key", "oder mit einem Schlüssel"),
    "signin.title": ("You are not logged in", "Sie sind nicht angemeldet"),
    "signin.again": ("Back to the log-in", "Zurück zur Anmeldung"),
    "signin.stale": (
        "This log-in was not begun in this browser, or too long ago. Begin it again.",
        "Diese Anmeldung wurde nicht in diesem Browser begonnen, oder vor zu langer Zeit. Bitte noch einmal.",
    ),
    "signin.denied": (
        "The log-in was declined where you were asked.",
        "Die Anmeldung wurde dort abgelehnt, wo Sie gefragt wurden.",
    ),
    "signin.refused": (
        "Your identity provider did not let you in. It said:",
        "Ihr Anmeldedienst hat Sie nicht angemeldet. Er sagt:",
    ),
    "signin.unreachable": (
        "Your identity provider cannot be reached, or did not answer as it should. Try again in a moment.",
        "Ihr Anmeldedienst ist nicht erreichbar oder antwortet nicht richtig. Bitte gleich noch einmal.",
    ),
    "signin.unknown": (
        "You were recognized, but you belong to no org here. Ask an admin of your org to make you a member; "
        "they need the id below.",
        "Sie wurden erkannt, gehören hier aber zu keiner Organisation. Bitten Sie deren Verwaltung, Sie "
        "aufzunehmen; sie braucht die Kennung unten.",
    ),
    "signin.unbelieved": (
        "What your identity provider said of you cannot be believed here.",
        "Was Ihr Anmeldedienst über Sie sagt, kann hier nicht geglaubt werden.",
    ),
    "insecure.title": ("Not over plain http", "Nicht über einfaches http"),
    "insecure.text": (
        "Your key would travel where others can read it. Open this page over https, or on the machine of the "
        "service as localhost.",
        "Ihr Schlüssel wäre unterwegs für andere lesbar. Öffnen Sie diese Seite über https oder auf dem "
        "Rechner des Dienstes als localhost.",
    ),
    # Asking for a job
    "submit.title": ("New job", "Neuer Auftrag"),
    "submit.readonly": (
        "Your key may look at jobs, but not have any done.",
        "Ihr Schlüssel darf Aufträge ansehen, aber keine erteilen.",
    ),
    "submit.button": ("Have it done", "Auftrag erteilen"),
    "submit.sending": ("Sending the job …", "Auftrag wird gesendet …"),
    "other.title": ("Any job type", "Beliebige Auftragsart"),
    "other.intro": (
        "For job types of your own: its name, and its arguments as a JSON object.",
        "Für eigene Auftragsarten: der Name und die Argumente als JSON-Objekt.",
    ),
    "other.type": ("Job type", "Auftragsart"),
    "other.subject": ("Subject (optional)", "Betrifft (optional)"),
    "other.subject.hint": ("What it is about, as in order-7.", "Worum es geht, etwa auftrag-7."),
    "other.payload": ("Payload (JSON)", "Nutzdaten (JSON)"),
    "other.no_object": ("This is not a JSON object: {why}", "Das ist kein JSON-Objekt: {why}"),
    # Statuses
    "status.queued": ("Waiting", "Wartet"),
    "status.running": ("Working", "In Arbeit"),
    "status.partial": ("Working, partial results", "In Arbeit, Teilergebnisse"),
    "status.completed": ("Done", "Erledigt"),
    "status.failed": ("Failed", "Fehlgeschlagen"),
    "status.canceled": ("Canceled", "Abgebrochen"),
    "says.queued": ("Accepted; it waits for its turn.", "Angenommen; wartet, bis er an der Reihe ist."),
    "says.retrying": (
        "It is tried again from {time}.",
        "Ab {time} wird es noch einmal versucht.",
    ),
    "says.retried": ("It waits to be tried again.", "Wartet auf den nächsten Versuch."),
    "says.resumes": ("It goes on from {time}.", "Geht ab {time} weiter."),
    "says.scheduled": ("It begins at {time}.", "Beginnt am {time}."),
    "says.running": ("It is being worked on.", "Wird bearbeitet."),
    "says.partial": (
        "First results are below; the work goes on.",
        "Erste Ergebnisse stehen unten; die Arbeit läuft weiter.",
    ),
    "says.completed": ("Done. The result follows …", "Erledigt. Das Ergebnis folgt …"),
    "says.failed": ("This job failed.", "Dieser Auftrag ist fehlgeschlagen."),
    "says.canceled": ("This job was canceled.", "Dieser Auftrag wurde abgebrochen."),
    "says.stopping": (
        "It was asked to stop; its worker stops at the next good moment.",
        "Abbruch verlangt; die Bearbeitung endet an der nächsten passenden Stelle.",
    ),
    # One job
    "job.title": ("Job", "Auftrag"),
    "job.stay": (
        "You may close this page and come back: the work goes on, and the address stays the same.",
        "Sie können diese Seite schließen und wiederkommen: Die Arbeit läuft weiter, die Adresse bleibt.",
    ),
    "job.progress": ("Progress", "Fortschritt"),
    "job.stale": (
        "No sign of life since {time}. If that lasts, it is put right by itself.",
        "Kein Lebenszeichen seit {time}. Hält das an, wird der Auftrag von selbst bereinigt.",
    ),
    "job.offline": (
        "No connection to the service. The page tries again by itself.",
        "Keine Verbindung zum Dienst. Die Seite versucht es von selbst wieder.",
    ),
    "job.created": ("Asked for", "Erteilt"),
    "job.started": ("Begun", "Begonnen"),
    "job.ended": ("Ended", "Beendet"),
    "job.subject": ("Subject", "Betrifft"),
    "job.attempt": ("Attempt", "Versuch"),
    "job.attempt.of": ("{n} of {most}", "{n} von {most}"),
    "job.attempt.failed": ("Attempt {n} failed: {message}", "Versuch {n} ist misslungen: {message}"),
    "job.counts": ("Counts", "Zähler"),
    "count.total": ("total", "gesamt"),
    "count.processed": ("processed", "bearbeitet"),
    "count.succeeded": ("succeeded", "gelungen"),
    "count.failed": ("failed", "misslungen"),
    "count.skipped": ("skipped", "übersprungen"),
    "count.created": ("created", "angelegt"),
    "count.updated": ("updated", "geändert"),
    "count.deleted": ("deleted", "gelöscht"),
    "count.unchanged": ("unchanged", "unverändert"),
    "count.imported": ("imported", "importiert"),
    "count.exported": ("exported", "exportiert"),
    "count.sent": ("sent", "gesendet"),
    "count.warnings": ("warnings", "Warnungen"),
    "count.errors": ("errors", "Fehler"),
    "count.pages": ("pages", "Seiten"),
    "count.chunks": ("chunks", "Teile"),
    "count.bytes": ("bytes", "Bytes"),
    "job.cancel": ("Cancel", "Abbrechen"),
    "cancel.title": ("Cancel this job?", "Diesen Auftrag abbrechen?"),
    "cancel.text": (
        "It cannot be resumed. Results that are already there stay readable.",
        "Er lässt sich nicht fortsetzen. Schon vorhandene Ergebnisse bleiben lesbar.",
    ),
    "cancel.reason": ("Reason (optional)", "Grund (optional)"),
    "cancel.default": ("canceled in the browser", "im Browser abgebrochen"),
    "cancel.yes": ("Cancel the job", "Auftrag abbrechen"),
    "cancel.no": ("Let it run", "Weiterlaufen lassen"),
    "failed.class": ("Kind of error", "Art des Fehlers"),
    "failed.message": ("Message", "Meldung"),
    "failed.retryable": (
        "Nobody declared this error permanent. Once its cause is gone, trying again may help.",
        "Niemand hat diesen Fehler für dauerhaft erklärt. Ist die Ursache behoben, kann ein neuer Versuch "
        "gelingen.",
    ),
    "failed.final": (
        "The same job would fail again. Change what it is given, then ask anew.",
        "Derselbe Auftrag würde wieder fehlschlagen. Ändern Sie die Eingaben und fragen Sie neu an.",
    ),
    "failed.blocked": (
        "It was refused before it could do anything: a right, a consent or a quota is missing.",
        "Er wurde abgelehnt, bevor er etwas tun konnte: Recht, Zustimmung oder Kontingent fehlt.",
    ),
    "failed.dead": (
        "All attempts are used up. It is kept for the operators, who can have it replayed.",
        "Alle Versuche sind verbraucht. Er liegt für den Betrieb bereit, der ihn wiederholen lassen kann.",
    ),
    "failed.reconciled": (
        "It was ended because nobody could tell any more whether it was being worked on.",
        "Er wurde beendet, weil nicht mehr feststellbar war, ob noch jemand daran arbeitet.",
    ),
    "canceled.why": ("Reason: {reason}", "Grund: {reason}"),
    "canceled.anew": (
        "A canceled job is not resumed. You can ask for it anew.",
        "Ein abgebrochener Auftrag wird nicht fortgesetzt. Sie können ihn neu erteilen.",
    ),
    "again.button": ("Try again", "Noch einmal versuchen"),
    "again.reason": ("tried again in the browser", "im Browser noch einmal versucht"),
    "again.new": ("Ask anew", "Neuen Auftrag erteilen"),
    "partials.title": ("Results so far", "Ergebnisse bisher"),
    "partials.kept": ("Results until then", "Ergebnisse bis dahin"),
    "partials.open": (
        "Open the permanent page of these results",
        "Dauerhafte Seite dieser Ergebnisse öffnen",
    ),
    "partials.earlier": ("and {n} earlier ones", "und {n} frühere"),
    "partials.large": ("Too large for this page: as JSON", "Zu groß für diese Seite: als JSON"),
    "partials.part": ("Part {n}", "Teil {n}"),
    "log.title": ("Log", "Protokoll"),
    "log.attempt": ("attempt {n}", "Versuch {n}"),
    # A result
    "result.title": ("Result", "Ergebnis"),
    "result.final": ("Final", "Endgültig"),
    "result.partial": ("Partial", "Teilergebnis"),
    "result.running": (
        "The job is still at work: this is what there is so far.",
        "Der Auftrag ist noch in Arbeit: Das ist der Stand bisher.",
    ),
    "result.failed": (
        "The job failed. What it had found until then stays readable.",
        "Der Auftrag ist fehlgeschlagen. Was er bis dahin gefunden hat, bleibt lesbar.",
    ),
    "result.canceled": (
        "The job was canceled. What it had found until then stays readable.",
        "Der Auftrag wurde abgebrochen. Was er bis dahin gefunden hat, bleibt lesbar.",
    ),
    "result.incomplete": (
        "The job is done, but some of its parts failed.",
        "Der Auftrag ist erledigt, aber einzelne Teile sind fehlgeschlagen.",
    ),
    "result.none": ("There is nothing to show yet.", "Es gibt noch nichts zu zeigen."),
    "result.nothing": ("The job left no value.", "Der Auftrag hat keinen Wert hinterlassen."),
    "result.created": ("Made", "Erstellt"),
    "result.expires": ("Kept at least until", "Aufbewahrt mindestens bis"),
    "result.job": ("To the job", "Zum Auftrag"),
    "result.files": ("Files", "Dateien"),
    "result.raw": ("All values", "Alle Werte"),
    # The list
    "jobs.title": ("Jobs", "Aufträge"),
    "jobs.filter": ("Status", "Status"),
    "jobs.all": ("All", "Alle"),
    "jobs.show": ("Show", "Anzeigen"),
    "jobs.type": ("Job type", "Auftragsart"),
    "jobs.created": ("Asked for", "Erteilt"),
    "jobs.progress": ("Progress", "Fortschritt"),
    "jobs.none": ("No jobs here yet.", "Hier gibt es noch keine Aufträge."),
    "jobs.on": (
        "None found so far: look among the older ones.",
        "Bisher nichts gefunden: weiter bei den älteren.",
    ),
    "jobs.more": ("Older jobs", "Ältere Aufträge"),
    "jobs.first": ("Newest jobs", "Neueste Aufträge"),
    # What goes wrong
    "missing.title": ("Not found", "Nicht gefunden"),
    "missing.text": (
        "There is nothing at this address for you: it may never have been there, belong to somebody else, or "
        "no longer be kept.",
        "Unter dieser Adresse gibt es nichts für Sie: Vielleicht gab es das nie, vielleicht gehört es jemand "
        "anderem, vielleicht ist die Aufbewahrung vorbei.",
    ),
    "refused.title": ("Not now", "So nicht"),
    "refused.403": ("Your key does not allow this.", "Ihr Schlüssel erlaubt das nicht."),
    "refused.429": ("Too many requests. Wait a moment.", "Zu viele Anfragen. Bitte kurz warten."),
    "refused.503": (
        "The service cannot reach its database. Try again in a moment.",
        "Der Dienst erreicht seine Datenbank nicht. Bitte gleich noch einmal versuchen.",
    ),
    "refused.other": (
        "The service does not accept this request.",
        "Der Dienst nimmt diese Anfrage nicht an.",
    ),
    "error.offline": ("The service cannot be reached.", "Der Dienst ist nicht erreichbar."),
    "tree.more": ("show {n} more", "{n} weitere zeigen"),
    "tree.empty": ("empty", "leer"),
    "yes": ("yes", "ja"),
    "no": ("no", "nein"),
}

TEXTS = {key: Text(*said) for key, said in {**_TEXTS, **ANALYSIS, **DOCUMENTS, **READING, **MANAGING}.items()}


@cache
def texts(language: str) -> dict[str, str]:
    """All texts in one language."""
    return {key: getattr(said, language) for key, said in TEXTS.items()}
