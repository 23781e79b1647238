"""The crash matrix; its assertions say what differs."""

import pytest

pytest.register_assert_rewrite("tests.crashes.matrix")
