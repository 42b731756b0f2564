"""Pictures of models and tuning runs, in the style of the papers. This package needs matplotlib."""
