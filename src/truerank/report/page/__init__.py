"""One HTML page that opens offline: sections with their sentences, charts and tables, and all that draws them."""
