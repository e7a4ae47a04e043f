"""Stop words of German and English, and the local language of a text by its stop words."""

from __future__ import annotations

from functools import cached_property

from duly.apps.analyze.modules.dates import MONTH_NAMES
from duly.apps.analyze.text import WORD

_MAX_DISTANCE = 200
_MAX_READ = 20_000

_GERMAN_LIST = """
aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes anhand
anstatt april auch auf august aus außer außerdem bei beide beiden beim bereits betreff bin bis bisher bist
bitte bzw chf da dabei dadurch dafür dagegen daher dahin damals damen damit danach daneben dank dann daran
darauf daraus darf darin darum darunter darüber das dass davon davor dazu dein deine deinem deinen deiner
dem den denen denn dennoch der deren des deshalb dessen dezember dich die dies diese diesem diesen dieser
dieses dir doch dort du durch dürfen eben ebenfalls ebenso ein eine einem einen einer eines einige einigen
einiger einiges einmal entweder er erst erste ersten es etwa etwas euch euer eur eure euro falls fast
februar ferner frau freundlichen für gab ganz gar gbp geehrte geehrten geehrter gegen gegenüber gehen
gemäß gern gibt gilt grüße grüßen gut habe haben hat hatte hatten herr herren hier hierbei hiermit hin
hinaus hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem infolge innerhalb ins
insbesondere inzwischen ist ja jahr jahre jahren jahres januar je jede jedem jeden jeder jedes jedoch
jener jetzt jeweils juli juni kann kannst kein keine keinem keinen keiner können könnte könnten künftig
lassen liegt lässt mai mal man manche mehr mein meine meinem meinen meiner mich mindestens mir mit monat
monate monaten monats muss musste märz möchte möchten möglich müssen nach nachdem nein nicht nichts nie
niemand noch november nun nur nächste nächsten ob obwohl oder ohne oktober per pro sache sehr sei seien
sein seine seinem seinen seiner seit seitdem selbst september sich sie sind so sobald sofern sofort sogar
solche solchen sollen sollte sollten somit sondern sonst soweit sowie sowohl statt tag tage tagen tages
uhr um und uns unser unsere unserem unseren unserer unter usd usw viel viele vielen vielleicht vom von vor
vorher wann war waren warum was wegen weil weiter weitere weiteren weiterer weiterhin welche welchem
welchen welcher welches wenn wer werde werden weshalb wessen wie wieder will wir wird wirst wo wobei woche
wochen wodurch wofür wohl wollen worden wurde wurden würde würden zu zudem zuerst zugleich zum zunächst
zur zurück zusammen zuvor zwar zwei zwischen über überhaupt
"""
_ENGLISH_LIST = """
a able about above after again against all almost alone along already also although always am among an and
another any anyone anything april are aren't around as at august away back be became because become been
before behind being below best better between beyond both but by can can't cannot chf could couldn't day
days dear december did didn't do does doesn't doing don't done down due during each either else enough etc
eur euro even ever every everyone everything february few first for from further gbp get gets give given
gives go goes going got had has hasn't have haven't having he her here hers herself him himself his how
however i i'm i've if in indeed instead into is isn't it it's its itself january july june just keep kind
know known last later least less let like likely made make makes many march may me might mine month months
more most mr mrs ms much must my myself near need needs neither never next no nobody nor not nothing
november now october of off often on once one only onto or other others otherwise ought our ours ourselves
out over own per perhaps please put quite rather re really regards same say says second see seem seems
sent september several shall she should shouldn't since sincerely so some someone something soon still
subject such sure take taken than thank thanks that that's the their theirs them themselves then there
thereafter thereby therefore these they they're this those though three through throughout thus till to
together too toward towards two under unless until up upon us usd use used using various very via was
wasn't way we we'll we're we've week weeks well were weren't what whatever when where whether which while
who whole whom whose why will with within without won't would year years yes yet you you'll you're your
yours yourself
"""
_GERMAN = frozenset(_GERMAN_LIST.split())
_ENGLISH = frozenset(_ENGLISH_LIST.split())
_ONLY_GERMAN, _ONLY_ENGLISH = _GERMAN - _ENGLISH, _ENGLISH - _GERMAN
# Of the other language, which a text may quote. Only a few: `Kind` and `Last` are German terms.
_COMMON_LIST = """
a all an and are as at be by for from has have in is it its of on or our that the this to was we with you
your auf aus bei das dem den der des die durch ein eine einem einen einer für ihre im ist mit nicht sich
sie sind und von werden wir wird zu zum zur über
"""
_COMMON = frozenset(_COMMON_LIST.split())


# Days, units and words before numbers: frequent, but no key terms.
_UNINFORMATIVE_LIST = """
montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag montags dienstags mittwochs donnerstags
freitags samstags sonntags monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur
thurs fri sat
abs abb bps cbm ccm ct cts ext fax fig ggf ggfs inkl exkl incl excl kap kwh kwp mwh max min mind mob nr pkt
pos qkm rev sec sek seq std stk str tel telefon tsd usf usw vgl vol ziff zzgl approx dept est iban bic swift
cent cents eur euros teur meur keur mio mia mrd mill tausend thousand million millionen milliarde milliarden
billion billionen dollar dollars franken pfund rappen pence
prozent percent meter metern kilometer kilometern zentimeter millimeter millimetern gramm kilogramm liter
litern kilowatt gmbh folgenden folgender genannt genannte four five
stunde stunden minute minuten sekunde sekunden hour hours minutes metres meters kilometres kilometers
millimetres millimeters grams kilograms litres liters
"""
_UNINFORMATIVE = frozenset(_UNINFORMATIVE_LIST.split()) | MONTH_NAMES


def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language with the most common ones of the other; by default all."""
    return _UNINFORMATIVE | _COMMON | {"de": _GERMAN, "en": _ENGLISH}.get(language, _GERMAN | _ENGLISH)


class LocalLanguage:
    """Tells whether a part of a text is German or English by its stop words, without a model."""

    def __init__(self, text: str, requested: str = "auto") -> None:
        self._text = text
        self._requested = requested

    def at(self, position: int) -> str:
        """Return `de`, `en` or "": by the words nearby in the paragraph, else by the whole text."""
        return _majority_language(self._nearby(position)) or self._overall

    @cached_property
    def _overall(self) -> str:
        if self._requested in ("de", "en"):
            return self._requested
        return _majority_language(self._text[:_MAX_READ])

    def _nearby(self, position: int) -> str:
        left, right = max(0, position - _MAX_DISTANCE), position + _MAX_DISTANCE
        start = self._text.rfind("\n\n", left, position)
        end = self._text.find("\n\n", position, right)
        return self._text[start if start > 0 else left : end if end > 0 else right]


def _majority_language(text: str) -> str:
    words = [word.lower() for word in WORD.findall(text)]
    german, english = (sum(word in stops for word in words) for stops in (_ONLY_GERMAN, _ONLY_ENGLISH))
    return "" if german == english else "de" if german > english else "en"
