"""What people look at: the page (`html`), and the same in a terminal (`terminal`)."""

from __future__ import annotations
