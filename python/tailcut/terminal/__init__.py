"""What a person sees in the terminal: progress, tables, plans, errors."""
