"""Terminal output: progress, tables, plans, errors."""
