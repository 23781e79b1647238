"""Text, tables and drawings, made from values.

Pure: this room reads no store and knows no Dask. It imports `zarrdask.errors` only. The other
rooms take the builders of reports (`report`, `words`), drawings (`svg`, `box`, `mosaic`, `tree`,
`thumbnail`) and HTML (`html`), and the names that other packages have for what is here
(`other_names`).
"""
