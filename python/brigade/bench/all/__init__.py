"""Every benchmark of the project, one after another, and one page of what they say."""
