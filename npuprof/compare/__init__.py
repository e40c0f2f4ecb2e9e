"""Two configs or two revisions, compared and told."""
