"""What this machine allows, what `brigade run` would choose, and why."""
