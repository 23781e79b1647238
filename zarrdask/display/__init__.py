"""Text, tables and drawings, made from values.

Pure: this room reads no store and does not import Dask. It imports `zarrdask.errors` only. The
other rooms take the builders of reports (`report`, `words`), drawings (`svg`, `box`, `mosaic`,
`tree`, `thumbnail`) and HTML (`html`), and the names of other packages with their equivalents here
(`other_names`).
"""
