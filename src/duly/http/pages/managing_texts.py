"""The texts about looking after documents, English and German side by side."""

from __future__ import annotations

MANAGING = {
    "tabs.label": ("Within documents", "Innerhalb der Dokumente"),
    # Changing a document
    "change.title": ("Rename, move, metadata", "Umbenennen, verschieben, Metadaten"),
    "change.metadata": ("Metadata", "Metadaten"),
    "change.metadata.hint": (
        "One a line, as in year=2026. Nothing secret.",
        "Eine je Zeile, etwa year=2026. Nichts Geheimes.",
    ),
    "change.metadata.wrong": (
        "Write each line as NAME=VALUE: “{line}” is none.",
        "Jede Zeile als NAME=WERT schreiben: „{line}“ ist keine.",
    ),
    "change.apply": ("Apply", "Übernehmen"),
    "version.new": ("New version: choose it, or drop it here", "Neue Version: auswählen oder hierher ziehen"),
    "version.hint": (
        "It takes the place of the current one, which can still be had.",
        "Sie ersetzt die aktuelle, die weiter zu haben ist.",
    ),
    "version.same": (
        "This is the current version: nothing was changed.",
        "Das ist die aktuelle Version: nichts wurde geändert.",
    ),
    "version.there": (
        "Another document is this file already: ",
        "Ein anderes Dokument ist bereits diese Datei: ",
    ),
    "version.open": ("open it", "öffnen"),
    "elsewhere.title": ("Ask a service outside", "Einen fremden Dienst fragen"),
    "elsewhere.consent": (
        "I agree that the beginning of its text is sent to a service outside of this installation.",
        "Ich bin einverstanden, dass der Anfang des Textes an einen Dienst außerhalb der Installation geht.",
    ),
    "elsewhere.ask": ("Ask", "Fragen"),
    "media.application/pdf": ("PDF", "PDF"),
    "media.application/rtf": ("RTF", "RTF"),
    "media.application/vnd.openxmlformats-officedocument.wordprocessingml.document": ("Word", "Word"),
    "media.application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ("Excel", "Excel"),
    "media.application/vnd.openxmlformats-officedocument.presentationml.presentation": (
        "PowerPoint",
        "PowerPoint",
    ),
    "media.application/vnd.oasis.opendocument.text": ("OpenDocument text", "OpenDocument-Text"),
    "media.application/vnd.oasis.opendocument.spreadsheet": ("OpenDocument table", "OpenDocument-Tabelle"),
    "media.application/vnd.oasis.opendocument.presentation": (
        "OpenDocument slides",
        "OpenDocument-Präsentation",
    ),
    "media.application/octet-stream": ("unknown", "unbekannt"),
    "media.message/rfc822": ("E-mail", "E-Mail"),
    "media.text/html": ("Web page", "Webseite"),
    "media.text/plain": ("Text", "Text"),
    # What may be refused
    "problem.folder.name_taken": (
        "There is a folder of that name here already: choose another name.",
        "Hier gibt es schon einen Ordner dieses Namens: einen anderen wählen.",
    ),
    "problem.folder.not_empty": (
        "There is still something in it: move or delete that first.",
        "Es liegt noch etwas darin: das erst verschieben oder löschen.",
    ),
    "problem.folder.unknown": (
        "There is no such folder, or it is closed to you.",
        "Diesen Ordner gibt es nicht, oder er ist für Sie geschlossen.",
    ),
    "problem.document.unknown": (
        "There is no such document, or it is closed to you.",
        "Dieses Dokument gibt es nicht, oder es ist für Sie geschlossen.",
    ),
    "problem.connector.name_taken": (
        "There is an account of that name already: choose another name.",
        "Es gibt schon ein Konto dieses Namens: einen anderen wählen.",
    ),
    "problem.auth.forbidden": (
        "You may not do that here: ask an admin of the org.",
        "Das dürfen Sie hier nicht: Admins der Organisation können helfen.",
    ),
    # A folder
    "folder.title": ("Folder", "Ordner"),
    "folder.manage": ("Rename, move, who may see it", "Umbenennen, verschieben, wer ihn sieht"),
    "folder.back": ("To its documents", "Zu seinen Dokumenten"),
    "folder.change": ("Name and place", "Name und Ort"),
    "folder.in": ("Lies in", "Liegt in"),
    "folder.top": ("At the top", "Ganz oben"),
    "folder.remove": ("Remove the folder", "Ordner entfernen"),
    "folder.sure": ("Remove this folder?", "Diesen Ordner entfernen?"),
    "folder.empty": (
        "Only an empty one can be removed: move or delete first what lies in it.",
        "Nur ein leerer lässt sich entfernen: erst verschieben oder löschen, was darin liegt.",
    ),
    "folder.yes": ("Remove", "Entfernen"),
    "grants.title": ("Who may see it", "Wer ihn sieht"),
    "grants.about": (
        "Nobody named: it is for those whom the folder above is for, and at the top for the whole org. "
        "Admins of the org see everything.",
        "Niemand genannt: Er ist für alle, für die der Ordner darüber ist, und ganz oben für die ganze "
        "Organisation. Ihre Admins sehen alles.",
    ),
    "grants.who": ("Who", "Wer"),
    "grants.who.hint": ("As in user:anna or api_key:k1.", "Etwa user:anna oder api_key:k1."),
    "grants.level": ("May", "Darf"),
    "grants.read": ("read", "lesen"),
    "grants.write": ("read and change", "lesen und ändern"),
    "grants.manage": ("say who may, too", "auch bestimmen, wer darf"),
    "grants.add": ("Name somebody", "Jemanden nennen"),
    "grants.drop": ("Take {who} off the list", "{who} von der Liste nehmen"),
    "grants.nobody": ("a line without a name", "eine Zeile ohne Namen"),
    "grants.reason": ("Reason (kept in the audit trail)", "Grund (steht im Prüfprotokoll)"),
    "grants.apply": ("Say so", "So festlegen"),
    "grants.saved": ("It is so from now on.", "Das gilt ab jetzt."),
    # What nobody is sure of
    "review.title": ("To review", "Zu prüfen"),
    "review.about": (
        "What they are could not be told surely enough. What you say counts, and is learned from.",
        "Was sie sind, war nicht sicher genug zu erkennen. Was Sie sagen, zählt, und daraus wird gelernt.",
    ),
    "review.none": ("Nothing to review.", "Nichts zu prüfen."),
    "review.more": ("Further documents", "Weitere Dokumente"),
    "review.perhaps": ("Perhaps:", "Vielleicht:"),
    "review.nothing": ("Nothing spoke for any type.", "Für keine Art sprach etwas."),
    "review.is": ("It is", "Es ist"),
    "review.saved": ("Put down as {type}.", "Festgehalten als {type}."),
    # Where types belong
    "filing.title": ("Filing", "Ablage"),
    "filing.about": (
        "Documents of a type are suggested for the folder that is said here.",
        "Dokumente einer Art werden für den Ordner vorgeschlagen, der hier steht.",
    ),
    "filing.none": ("Nothing is said yet.", "Noch ist nichts festgelegt."),
    "filing.remove": ("Remove", "Entfernen"),
    "filing.new": ("Say where a type belongs", "Festlegen, wohin eine Art gehört"),
    "filing.own": ("Or one of your own", "Oder eine eigene"),
    "filing.own.hint": ("In small letters, as in delivery_note.", "Klein geschrieben, etwa delivery_note."),
    "filing.choose": (
        "Choose a type from the list, or name one of your own.",
        "Eine Art wählen oder eine eigene nennen.",
    ),
    # Bringing in
    "connectors.title": ("Imports", "Importe"),
    "connectors.about": (
        "Documents are brought in from accounts elsewhere: all of a folder, and then what has changed.",
        "Dokumente werden aus Konten anderswo geholt: erst ein ganzer Ordner, danach, was sich geändert hat.",
    ),
    "connectors.none": ("No account is connected yet.", "Noch ist kein Konto verbunden."),
    "connectors.into": ("Into", "Nach"),
    "connectors.last": ("Last import", "Letzter Import"),
    "connectors.never": ("never", "noch nie"),
    "connectors.disabled": ("Disabled", "Abgeschaltet"),
    "connectors.path": ("Folder there (empty: all of it)", "Ordner dort (leer: alles)"),
    "connectors.keep": ("Keep its folders", "Seine Ordner behalten"),
    "connectors.keep.hint": (
        "Else everything goes into one folder.",
        "Sonst kommt alles in einen Ordner.",
    ),
    "connectors.start": ("Bring in", "Holen"),
    "connectors.look": ("Look after it", "Verwalten"),
    "connectors.disable": ("Disable", "Abschalten"),
    "connectors.enable": ("Enable", "Wieder zulassen"),
    "connectors.forget": ("Disconnect", "Trennen"),
    "connectors.new": ("Connect an account", "Ein Konto verbinden"),
    "connectors.provider": ("Provider", "Anbieter"),
    "connectors.name": ("What to call it", "Wie es heißen soll"),
    "connectors.secret": ("What its secret is called", "Wie sein Geheimnis heißt"),
    "connectors.secret.hint": (
        "As in file:dropbox or env:DROPBOX; never the secret itself.",
        "Etwa file:dropbox oder env:DROPBOX; nie das Geheimnis selbst.",
    ),
    "connectors.account": ("Account, as people know it", "Konto, wie man es kennt"),
    "connectors.connect": ("Connect", "Verbinden"),
    # Giving out
    "exports.title": ("Exports", "Exporte"),
    "exports.about": (
        "Documents are written to files that only you and admins see: those listed, or what a search finds.",
        "Dokumente werden in Dateien geschrieben, die nur Sie und Admins sehen: nach Ordner und Art, oder "
        "was eine Suche findet.",
    ),
    "exports.query": ("Only what this search finds", "Nur, was diese Suche findet"),
    "exports.format": ("As", "Als"),
    "exports.csv": ("Table (CSV)", "Tabelle (CSV)"),
    "exports.csv.about": ("a row a document or passage", "eine Zeile je Dokument oder Fundstelle"),
    "exports.jsonl": ("JSON Lines", "JSON Lines"),
    "exports.jsonl.about": ("with the text, for programs", "mit dem Text, für Programme"),
    "exports.pdf": ("PDF", "PDF"),
    "exports.pdf.about": ("the pages drawn, with their text", "die Seiten gezeichnet, mit ihrem Text"),
    "exports.bom": ("The table is for Excel", "Die Tabelle ist für Excel"),
    "exports.start": ("Export", "Exportieren"),
    "exports.these": ("Export these", "Diese exportieren"),
    "exports.recent": ("Your last exports", "Ihre letzten Exporte"),
}
