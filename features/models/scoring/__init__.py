"""What a trained model says of given translations."""
