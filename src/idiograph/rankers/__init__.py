"""Ways to compare texts without a trained model."""
