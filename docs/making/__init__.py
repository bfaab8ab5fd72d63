"""What makes the documentation, and is no page of it.

`site` and `examples` are what mkdocs.yml calls (`make docs`); `steps` reads what a page tells to run. A module with `made()` makes
files of docs (`python -m docs.making NAME`): it gives each by its place in docs, a page as text, a picture as a chart or as it is.
"""
