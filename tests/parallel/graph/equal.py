"""Objects that are equal but not the same."""


class Equal:
    """Objects of this class are equal, whatever they hold."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Equal)

    def __hash__(self):
        return 1

    def __dask_tokenize__(self):
        return self.value
