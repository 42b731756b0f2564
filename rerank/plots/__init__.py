"""Pictures of what models and runs of tuning do, as the papers have them; needs matplotlib."""
