"""Named corner cases."""

CORNERS = ()


def corner_environment(name):
    raise NotImplementedError
