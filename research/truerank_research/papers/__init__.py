"""Reproductions of the experiments of papers; `pages.PAPERS` lists the papers."""
