"""One job under Brigade: find or make its image, stage it, start it, report."""
