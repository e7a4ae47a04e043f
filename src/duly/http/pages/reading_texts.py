"""The texts about reading documents and searching them, English and German side by side."""

from __future__ import annotations

READING = {
    # Being read
    "reading.title": ("Reading", "Lesen"),
    "reading.progress": ("Pages read", "Gelesene Seiten"),
    "reading.queued": ("It waits to be read.", "Wartet darauf, gelesen zu werden."),
    "reading.running": (
        "It is being read; what is there is shown below.",
        "Wird gelesen; was da ist, steht unten.",
    ),
    "reading.pages": ("Pages read so far", "Bisher gelesene Seiten"),
    "reading.job": ("To the job", "Zum Auftrag"),
    "reading.never": ("Nobody has read it yet.", "Es wurde noch nicht gelesen."),
    "reading.history": ("How it was read", "Wie es gelesen wurde"),
    "reading.cost": ("Cost", "Kosten"),
    "reading.cents": ("{n} cents", "{n} Cent"),
    "reading.again": ("Read it again", "Noch einmal lesen"),
    "reading.how": ("How", "Wie"),
    "reading.start": ("Read it", "Lesen"),
    "reading.consent": (
        "I agree that the file is sent to a service outside of this installation.",
        "Ich bin einverstanden, dass die Datei an einen Dienst außerhalb dieser Installation gesendet wird.",
    ),
    "reading.no_consent": (
        "This engine sends the file elsewhere: agree to that first.",
        "Dieser Leser sendet die Datei an einen fremden Dienst: Dem müssen Sie erst zustimmen.",
    ),
    "reading.estimate": (
        "Estimated cost: {cents} cents for {pages} pages.",
        "Geschätzte Kosten: {cents} Cent für {pages} Seiten.",
    ),
    "reading.price": (
        "Estimated cost: {cents} cents a page; how many pages it has is not known yet.",
        "Geschätzte Kosten: {cents} Cent je Seite; wie viele es hat, ist noch nicht bekannt.",
    ),
    "reading.pictures": (
        "These pages are only pictures, and cannot be found by their words yet: {pages}.",
        "Diese Seiten sind nur Bilder und über ihre Wörter noch nicht zu finden: {pages}.",
    ),
    "reading.recognize": ("Recognize their text", "Ihren Text erkennen"),
    "engine.fast": ("Fast", "Schnell"),
    "engine.fast.about": (
        "the text that the file has; pictures are not read",
        "der Text, den die Datei hat; Bilder werden nicht gelesen",
    ),
    "engine.hires": ("Thorough", "Gründlich"),
    "engine.hires.about": (
        "also recognizes the text of pictures; seconds a page",
        "erkennt auch Text in Bildern; Sekunden je Seite",
    ),
    "engine.unstructured_fast": ("Unstructured, fast", "Unstructured, schnell"),
    "engine.unstructured_fast.about": (
        "by a service outside of this installation",
        "durch einen Dienst außerhalb dieser Installation",
    ),
    "engine.unstructured_hires": ("Unstructured, thorough", "Unstructured, gründlich"),
    "engine.unstructured_hires.about": (
        "by a service outside of this installation",
        "durch einen Dienst außerhalb dieser Installation",
    ),
    # Its text
    "text.title": ("Text", "Text"),
    "text.none": ("There is no text to show.", "Es gibt keinen Text zu zeigen."),
    "text.page": ("Page {n}", "Seite {n}"),
    "text.go": ("Go to page", "Zu Seite"),
    "text.show": ("Show", "Anzeigen"),
    "text.of": ("of {n}", "von {n}"),
    "text.before": ("Earlier pages", "Frühere Seiten"),
    "text.after": ("Further pages", "Weitere Seiten"),
    "page.ocr": ("recognized in a picture", "in einem Bild erkannt"),
    "page.blank": ("empty", "leer"),
    "page.needs_ocr": ("only a picture, not read yet", "nur ein Bild, noch nicht gelesen"),
    # Why something could not be read, and what was done to pages
    "reason.document.empty": ("There is nothing in it.", "Es ist nichts darin."),
    "reason.document.unsupported": (
        "It is of a kind that is not read.",
        "Diese Dateiart wird nicht gelesen.",
    ),
    "reason.document.encrypted": ("It asks for a password.", "Es verlangt ein Passwort."),
    "reason.document.broken": ("It is damaged.", "Es ist beschädigt."),
    "reason.document.too_large": (
        "It is larger, or needs more memory, than a file may.",
        "Es ist größer oder braucht mehr Speicher, als eine Datei darf.",
    ),
    "reason.document.too_slow": (
        "It takes longer than a file may.",
        "Es dauert länger, als eine Datei darf.",
    ),
    "reason.document.too_deep": (
        "Its parts lie deeper within one another than a file needs.",
        "Seine Teile liegen tiefer ineinander, als eine Datei es braucht.",
    ),
    "reason.document.bomb": (
        "It unpacks to far more than it is.",
        "Beim Entpacken würde es um ein Vielfaches größer.",
    ),
    "reason.document.hostile": (
        "It holds what only an attack needs.",
        "Es enthält etwas, das nur ein Angriff braucht.",
    ),
    "reason.document.unknown": (
        "It may not be changed by whoever asked for this, or it is gone.",
        "Wer das verlangt hat, darf es nicht ändern, oder es ist nicht mehr da.",
    ),
    "reason.document.subject_missing": (
        "Its folder is not for everybody, and the job did not say what it is about.",
        "Sein Ordner ist nicht für alle, und der Auftrag sagte nicht, worum es geht.",
    ),
    "reason.extraction.no_consent": (
        "Nobody has agreed that the file is sent elsewhere. Nothing was sent.",
        "Niemand hat zugestimmt, dass die Datei an einen fremden Dienst geht. Es wurde nichts gesendet.",
    ),
    "reason.extraction.not_configured": (
        "No outside service is set up. Nothing was sent.",
        "Kein fremder Dienst ist eingerichtet. Es wurde nichts gesendet.",
    ),
    "reason.remote.refused": (
        "The outside service does not take it.",
        "Der fremde Dienst nimmt es nicht an.",
    ),
    "reason.remote.nonsense": (
        "The outside service answered something that makes no sense.",
        "Der fremde Dienst hat etwas geantwortet, das keinen Sinn ergibt.",
    ),
    "reason.remote.unavailable": (
        "The outside service cannot be reached.",
        "Der fremde Dienst ist nicht erreichbar.",
    ),
    "reason.job.gone": ("Its job is no longer kept.", "Sein Auftrag wird nicht mehr aufbewahrt."),
    "reason.page.plain": (
        "Its structure could not be told; it was read line by line.",
        "Der Aufbau war nicht zu erkennen; gelesen wurde Zeile für Zeile.",
    ),
    "reason.page.unreadable": (
        "It could not be read, and the others could.",
        "Sie war nicht lesbar, die anderen schon.",
    ),
    "reason.page.layout_missing": (
        "The parts of the page could not be told; its text is as it was found.",
        "Die Teile der Seite waren nicht zu erkennen; der Text steht da, wie er gefunden wurde.",
    ),
    "reason.office.pictures": (
        "It has pictures beside its text, which were not read.",
        "Neben dem Text stehen Bilder, die nicht gelesen wurden.",
    ),
    "reason.page.picture": (
        "Most of it is a picture, which was not read.",
        "Das meiste ist ein Bild, das nicht gelesen wurde.",
    ),
    "reason.page.unsure": (
        "The recognition was not sure of what it read.",
        "Die Erkennung war sich nicht sicher.",
    ),
    "reason.page.fonts_broken": (
        "Its text layer is no language; its picture was read instead.",
        "Die Textebene ergibt keine Sprache; gelesen wurde das Bild.",
    ),
    "reason.mail.attachments": (
        "It has attachments, which are named but not read.",
        "Es hat Anhänge, die genannt, aber nicht gelesen werden.",
    ),
    # Search
    "search.title": ("Search", "Suche"),
    "search.label": ("Search the documents", "Dokumente durchsuchen"),
    "search.hint": (
        'Words, "a phrase", -without, one OR another.',
        'Wörter, "eine Wortfolge", -ohne, eines ODER anderes.',
    ),
    "search.button": ("Search", "Suchen"),
    "search.folder": ("Folder", "Ordner"),
    "search.language": ("Language", "Sprache"),
    "search.any": ("All", "Alle"),
    "search.none": ("Nothing found.", "Nichts gefunden."),
    "search.passages": ("passages found.", "Fundstellen."),
    "search.one": ("One passage found.", "Eine Fundstelle."),
    "search.least": ("At least", "Mindestens"),
    "search.absent": ("Nothing has", "Nirgends steht"),
    "search.instead": ("Looked for instead:", "Gesucht wurde stattdessen:"),
    "search.refused": ("This search cannot be done:", "So lässt sich nicht suchen:"),
    "search.more": ("Further passages", "Weitere Fundstellen"),
    "search.first": ("Best passages", "Beste Fundstellen"),
}
