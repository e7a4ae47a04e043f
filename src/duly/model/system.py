"""The org that Duly's own work belongs to."""

from __future__ import annotations

from uuid import UUID

SYSTEM_ORG = UUID("00000000-0000-7000-8000-00000000d017")
"""Made by the migrations, under the name Duly. Its jobs are maintenance; no tenant reads them."""
