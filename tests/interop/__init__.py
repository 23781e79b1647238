"""zarrdask beside the libraries and services that it must agree with."""

import pytest

pytest.register_assert_rewrite("tests.interop.shared")
