"""What comes in beside deliveries: people's answers, what no delivery told of, and old issues."""
