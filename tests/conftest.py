"""Settings of all tests."""

from hypothesis import settings

# Machines differ in speed and share their cores; only results are tested.
settings.register_profile("tailcut", deadline=None, derandomize=True)
settings.load_profile("tailcut")
