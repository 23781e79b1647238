"""Two writers of any pair of verbs: each stands still at each store operation while the other runs.

`verbs` has one row for each verb; a new verb that writes gets a row there.
"""
