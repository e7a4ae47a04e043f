"""The doctor: looks at an installation, says what is wrong with it, and what to do.

`finding` is what a look comes to, `patient` what is looked at; then a file for each part, with a function for
each check, and `doctor` with the table of them. Nothing is changed, and no broken check stops the others.
"""

from duly.control.doctor.doctor import Doctor
from duly.control.doctor.finding import Line, Report, Verdict
from duly.control.doctor.patient import Circumstances

__all__ = ["Circumstances", "Doctor", "Line", "Report", "Verdict"]
