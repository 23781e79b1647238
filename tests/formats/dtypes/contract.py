"""What every data type must do, whatever it is made of."""

import json
import pickle

import numpy as np

from zarrdask.formats.dtypes.fill_values import only_fill
from zarrdask.formats.dtypes.registry import parse_data_type


def in_bytes(value, dtype):
    """Return the bytes of a scalar; an object as it is."""
    return value if dtype.hasobject else np.asarray(value, dtype).tobytes()


def check_fills(data_type, *fills):
    """Check that fill values, and the default one, survive JSON to the last bit."""
    dtype = data_type.dtype
    for fill in (data_type.default, *fills):
        spelled = data_type.render_fill(fill)
        again = data_type.parse_fill(json.loads(json.dumps(spelled, allow_nan=False)))
        assert in_bytes(again, dtype) == in_bytes(fill, dtype), spelled
        assert data_type.render_fill(again) == spelled
        kept = data_type.cast(fill)
        assert in_bytes(kept, dtype) == in_bytes(fill, dtype)
        chunk = np.empty((2, 3), dtype)
        chunk[...] = fill
        assert only_fill(chunk, fill)


def check_metadata(data_type):
    """Check that the metadata of a data type give it back, and that it pickles and hashes."""
    document = json.loads(json.dumps(data_type.to_json()))
    assert parse_data_type(document) == data_type
    again = pickle.loads(pickle.dumps(data_type))
    assert again == data_type
    assert hash(again) == hash(data_type)
    assert data_type.dtype.isnative
