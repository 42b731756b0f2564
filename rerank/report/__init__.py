"""What people read of the results."""
